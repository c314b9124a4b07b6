"""Tests of programs that leave the process."""
