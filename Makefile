# Every target makes the environment it needs: `make test` works on a fresh clone.
# `make test PYTHON=python3.13` uses an environment of its own, .venv-python3.13.

.DEFAULT_GOAL := test
.PHONY: demo test test-slow test-wider commutation lint types contract bench clean

runs = $(shell $(1) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(1))
first_that_runs = $(firstword $(foreach python,$(1),$(call runs,$(python))))

# pyenv's shims answer for the selected version only; an installed one is found by its folder
in_pyenv = $(lastword $(sort $(wildcard $(HOME)/.pyenv/versions/$(patsubst python%,%,$(1)).*/bin/$(1))))

ifdef PYTHON
VENV := .venv-$(notdir $(PYTHON))
override PYTHON := $(or $(call runs,$(PYTHON)),$(call in_pyenv,$(PYTHON)))
else
PYTHON := $(call first_that_runs,python3.11 python3 python3.12 python3.13 python3.14)
VENV := .venv
endif
BIN := $(VENV)/bin
READY := $(VENV)/.ready

demo: $(READY)
	$(BIN)/python examples/digits.py

# One process per core (pytest-xdist); `.venv/bin/python -m pytest` runs them in one. Where a machine
# exports PYTHONDONTWRITEBYTECODE, each process that a test starts would compile all of funct.
test: $(READY)
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -q -n auto --dist worksteal

test-slow: $(READY)
	$(BIN)/python -m pytest -q -m slow

# As on a processor with other vectors and instructions: FUNCT_WIDER names it (tests/wider.py).
test-wider: $(READY)
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -q -n auto --dist worksteal -p tests.wider

# The commutation matrix, docs/COMMUTATION.md: some minutes.
commutation: $(READY)
	$(BIN)/python -m tests.commutation

lint: $(READY)
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

contract: $(READY)
	$(BIN)/lint-imports --no-logo

# OPENBLAS_CORETYPE, where a machine exports it, can halve the speed of BLAS.
bench: $(READY)
	env -u OPENBLAS_CORETYPE $(BIN)/python -m benchmarks

# The stamp comes last, so that an interrupted installation is made again.
$(READY): pyproject.toml
	$(if $(PYTHON),,$(error no Python >= 3.11 found; name one with PYTHON=...))
	@echo "making $(VENV) with $(PYTHON): once, about a minute"
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

clean:
	rm -rf .venv .venv-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf .import_linter_cache
	find funct tests -name __pycache__ -type d -prune -exec rm -rf {} +
