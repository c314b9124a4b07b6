"""Machine code from LLVM text, at run time.

The text is code generation's input as it stands: no optimiser runs, so whoever prints it prints
vectors of the host's width. Objects are kept in memory and on disk by the hash of the text, the
processor and LLVM's version; loading a kept object costs a fraction of making it, and where this
package can load it by itself (`objects.py`), LLVM is not even there.

    code = assemble(text)
    address = code.address("kernel")     # lives as long as `code`
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import re
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from contextvars import copy_context
from operator import length_hint
from typing import Any, Self

from funct.device import disk_cache
from funct.device.fork import Uncut, in_child, whole
from funct.device.half_conversion import NAMES, TEXT
from funct.device.host import Host, host
from funct.device.llvm import (
    LEAN,
    binding,
    emit_object,
    machine,
    release_in_pauses,
    version,
)
from funct.device.meanwhile import Meanwhile
from funct.device.objects import LOADS, Mapped, mapped
from funct.events import tell

__all__ = [
    "LEAN", "Code", "Text", "assemble", "assemble_all", "assembly", "begin", "beside", "emit",
    "load_object", "offer", "offer_all", "recalled", "text_key", "wanted", "wanted_by",
]  # fmt: skip

Text = str | Callable[[], str]  # or what prints it

# Who asks for the interpreter's lock has it within a tenth of the usual time: between two calls of
# LLVM's, which are as short, others hold it.
_turns = Meanwhile(sys.getswitchinterval, sys.setswitchinterval, lambda now: min(now, 5e-4))
_lock = whole(threading.Lock())  # of what is known of texts; nothing is made while it is held
_loaded: weakref.WeakValueDictionary[str, Code] = weakref.WeakValueDictionary()
_offered: dict[str, Callable[[], int | None]] = {}
_families: dict[str, Callable[[str], None]] = {}  # by what names begin with, up to "_"
_addresses: dict[str, int] = {}  # of what is offered, as it said last
_working = Uncut()  # blocks in which LLVM is at work
_under_way: dict[str, _Making] = {}  # by text: what a thread makes now that others may ask for
_begun: dict[str, threading.Thread] = {}  # who makes the code of a text that was begun
_ready: dict[str, bytes] = {}  # what they made and nobody has asked for yet


class _Making:
    """made: the object of a text, once it is done; None where it is wrong."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.made: bytes | None = None


in_child(_under_way.clear)  # which has none of those threads


class Code:
    """Loaded machine code. The addresses of its functions hold while it lives.

    Example:
        >>> from funct import device
        >>> code = device.assemble("define i32 @one() { ret i32 1 }")
        >>> code.has("one"), code.has("two"), len(code.object_file) > 0
        (True, False, True)
    """

    __slots__ = ("__weakref__", "_held", "object_file")

    def __init__(self, held: Any, object_file: bytes) -> None:
        self._held = held  # Mapped, or an engine of LLVM's
        self.object_file = object_file

    def address(self, name: str) -> int:
        """Where the function of that name starts.

        Raises: KeyError: if the text defines none.
        """
        found = self._found(name)
        if not found:
            raise KeyError(name)
        return found

    def has(self, name: str) -> bool:
        """Whether there is a function of that name."""
        return bool(self._found(name))

    def _found(self, name: str) -> int:
        held = self._held
        of_ours = held.__class__ is Mapped
        return int(held.names.get(name, 0) if of_ours else held.get_function_address(name))

    def keep(self) -> Self:
        """Hold the code until the process ends: for what other threads may be in."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._held))
        return self


def offer(name: str, address: Callable[[], int | None]) -> None:
    """Text that declares a function of this name may call it; the address is asked for then. None:
    it is not there, and nobody prints such text.
    """
    _offered[name] = address


def offer_all(prefix: str, offers: Callable[[str], None]) -> None:
    """This function offers names that begin so, up to "_", when code kept on disk wants one."""
    _families[prefix] = offers


def assemble(text: str, *, opt: int = 1) -> Code:
    """Machine code for the functions that the text defines.

    opt: LLVM's level for code generation, 0 (fastest to make) to 3, or LEAN.
    Raises: RuntimeError: with LLVM's message, where the text is not well formed.
    Example:
        >>> import ctypes
        >>> from funct import device
        >>> text = "define double @twice(double %x) { %y = fadd double %x, %x ret double %y }"
        >>> code = device.assemble(text)
        >>> ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("twice"))(2.5)
        5.0
    """
    return assemble_all([(text, opt)])[0]


def assemble_all(texts: Sequence[tuple[Text, int]]) -> list[Code]:
    """`assemble` for each text, opt: what has to be made is made side by side, on threads.

    A text may be given as what prints it: one is printed while code is made of those before.
    What a text declares and others offer is asked for after that, so the code of whoever offers it
    may be among the texts. What another thread is making is waited for.
    Example:
        >>> from funct import device
        >>> texts = [f"define i32 @n{n}() {{ ret i32 {n} }}" for n in (1, 2)]
        >>> [code.has("n2") for code in device.assemble_all([(text, 1) for text in texts])]
        [False, True]
    """
    batch = _Batch(texts)
    try:
        batch.make()
        return _loaded_in_order(batch)
    finally:  # until it is loaded, others have what was made from here
        for k in batch.fresh:
            _under_way.pop(k, None)


def _loaded_in_order(batch: _Batch) -> list[Code]:
    held, given, fresh = batch.held, batch.given, batch.fresh
    for k, making in batch.others.items():
        making.done.wait()
        held[k] = making.made or emit(given[k][0], host(), opt=given[k][1])  # or its error
    wants = {k: wanted(text) for k, (text, _) in given.items()}
    found: dict[str, Code] = {}
    for k in sorted(held, key=lambda k: len(wants[k])):
        _ask(wants[k])
        code = held[k]
        assert code is not None, "read or made above"
        made = k in fresh or k in batch.others
        found[k] = code if isinstance(code, Code) else _readable(k, code, given[k], made)
    return [found[k] for k in batch.keys]


class _Batch:
    """Texts of which objects are made side by side.

    keys: in the order that is asked for. By key there are: given, the text and its level; held,
    code that is loaded, or its object; fresh, what was made here; others, what other threads make.
    """

    def __init__(self, texts: Sequence[tuple[Text, int]]) -> None:
        self.texts = texts
        self.keys = [""] * len(texts)
        self.given: dict[str, tuple[str, int]] = {}
        self.held: dict[str, Code | bytes | None] = {}
        self.fresh: set[str] = set()
        self.others: dict[str, _Making] = {}
        self._rest = iter(range(len(texts)))
        self._printing = threading.Lock()  # two at once would both be there later
        self._helpers: list[threading.Thread] = []
        self._errors: list[BaseException] = []

    def make(self) -> None:
        """Find or make all of them. Raises: what printing a text or making its code raised."""
        self._work()
        for thread in self._helpers:  # which may become more
            thread.join()
        for error in self._errors:
            raise error

    def _work(self) -> None:
        for k in self._rest:
            try:
                self._one(k)
            except BaseException as error:
                self._errors.append(error)

    def _one(self, k: int) -> None:
        text, opt = self.texts[k]
        if not isinstance(text, str):
            with self._printing:
                text = text()
        key = self.keys[k] = text_key(text, opt)
        if (thread := _begun.pop(key, None)) is not None:
            thread.join()
        with _lock:
            if key in self.given:
                return
            self.given[key] = text, opt
            if key in _under_way:
                self.others[key] = _under_way[key]
                return
            found = _loaded.get(key) or _ready.pop(key, None) or disk_cache.read(key)
            self.held[key] = found
            if found is not None:
                return
            making = _under_way[key] = _Making()
        self._help()
        try:
            made = emit(text, host(), opt=opt)
            disk_cache.write(key, made)
            self.fresh.add(key)
            self.held[key] = making.made = made
        finally:
            if making.made is None:
                _under_way.pop(key, None)
            making.done.set()

    def _help(self) -> None:
        """LLVM lets go of the interpreter's lock: another thread goes on with the next text."""
        if length_hint(self._rest) and len(self._helpers) < host().cores - 1:
            thread = threading.Thread(target=copy_context().run, args=(_turns(self._work),))
            with suppress(RuntimeError):  # the system has no thread for that
                thread.start()
                self._helpers.append(thread)


def _readable(key: str, object_file: bytes, given: tuple[str, int], made: bool) -> Code:
    """The object's code; where a file held something else under the text's key, code made anew."""
    try:
        code = _load_once(key, object_file, made=made)
        if made or all(map(code.has, _defined(given[0]))):
            return code
    except ValueError:
        if made:
            raise
    _loaded.pop(key, None)
    object_file = emit(given[0], host(), opt=given[1])
    disk_cache.write(key, object_file)
    return _load_once(key, object_file, made=True)


def begin(texts: Sequence[str], opt: int) -> None:
    """Start to make code that will be asked for soon, where a core may do that meanwhile."""
    if host().cores < 2:
        return
    keys = {text_key(text, opt): text for text in texts}
    new = {k: t for k, t in keys.items() if k not in _loaded and k not in _begun}

    def work() -> None:
        for key, text in new.items():
            with suppress(RuntimeError):  # it is wrong again where it is asked for
                if disk_cache.read(key) is None:
                    made = _ready[key] = emit(text, host(), opt=opt)
                    disk_cache.write(key, made)

    if new:
        thread = beside(work)
        thread.start()  # before anybody can wait for it
        _begun.update(dict.fromkeys(new, thread))


def beside(work: Callable[[], object]) -> threading.Thread:
    """A thread for work that has code made: others need not wait long for the interpreter's lock
    meanwhile. It is to be started.
    """
    return threading.Thread(target=_turns(work))


def recalled(key: str, wants: Iterable[str]) -> Code | None:
    """The code that was made for the text with that key and wants, if it is loaded or on disk.

    None as well where nobody has offered what it wants so far: whoever prints the text does.
    """
    held = _loaded.get(key) or disk_cache.read(key)
    if held is None or isinstance(held, Code):
        return held
    for name in set(wants).difference(_offered):
        if (family := _families.get(name.partition("_")[0])) is not None:
            family(name)
        if name not in _offered:
            return None
    _ask(wants)
    with suppress(ValueError):
        return _load_once(key, held)
    return None


def text_key(text: str, opt: int) -> str:
    """Under what the code of a text is kept: the text, the processor, LLVM and its level."""
    target = host()
    told = [text, target.name, target.flags, str(opt), version()]
    return hashlib.sha256("\0".join(told).encode()).hexdigest()


def wanted(text: str) -> list[str]:
    """What is offered of that which the text declares."""
    declared = re.findall(r"^declare [^@\n]*@([\w.]+)\(", text, re.MULTILINE)
    return [name for name in declared if name in _offered]


def _ask(names: Iterable[str]) -> None:
    """Ask for addresses that are offered: outside of the lock, since some of them are code too."""
    for name in names:
        found = _offered[name]()
        assert found is not None, f"{name} is wanted by text that is printed only where it is"
        _addresses[name] = found


def wanted_by(object_file: bytes) -> list[str]:
    """What is offered of that which an object file may want."""
    return [name for name in _offered if name.encode() in object_file]


def load_object(object_file: bytes, wants: Sequence[str] | None = None) -> Code:
    """Machine code from an object file that `emit` made for this processor.

    wants: what `wanted_by` says of it, where that is known: to search it takes longer than to load.
    Raises: ValueError: for anything that is none, where that can be told.
    Example:
        >>> from funct import device
        >>> code = device.assemble("define i32 @one() { ret i32 1 }")
        >>> device.load_object(code.object_file).has("one")
        True
    """
    key = hashlib.sha256(object_file).hexdigest()
    _ask(wanted_by(object_file) if wants is None else wants)
    return _load_once(key, object_file)


def emit(text: str, target: Host, *, opt: int = 1) -> bytes:
    """The object file for a processor, which need not be this one."""
    start = time.perf_counter()
    with _working:
        made = emit_object(text, target.name, target.flags, opt)
    release_in_pauses()
    tell("code", lambda: _line(text, made, time.perf_counter() - start))
    return made


def _defined(text: str) -> list[str]:
    """The functions that the text defines for others."""
    return re.findall(r"^define (?!internal)[^@\n]*@([\w.]+)", text, re.MULTILINE)


def _line(text: str, made: bytes, seconds: float) -> str:
    return f"{', '.join(_defined(text))}: {len(made)} bytes in {1e3 * seconds:.1f} ms"


def assembly(text: str, target: Host | None = None, *, opt: int = 1) -> str:
    """The assembly that the text becomes, for people."""
    target = target or host()
    by = machine(target.name, target.flags, opt)
    return str(by.emit_assembly(binding().parse_assembly(text)))


def _load_once(key: str, object_file: bytes, *, made: bool = False) -> Code:
    _ask_conversions(object_file)
    with _lock:
        code = _loaded.get(key)
        if code is None:
            code = _loaded[key] = _load(object_file, made)
    return code


def _ask_conversions(object_file: bytes) -> None:
    """Let the object find the conversions that its processor lacks: outside of the lock, as all
    that is made.
    """
    names = [n for n in NAMES if n.encode() in object_file and _found(n) is None]
    if names:
        key = text_key(TEXT, 1)
        made = disk_cache.read(key) or emit(TEXT, host())
        disk_cache.write(key, made)
        code = _load(made, made=True).keep()
        _addresses.update({n: code.address(n) for n in NAMES})


def _load(object_file: bytes, made: bool) -> Code:
    """made: whether LLVM has just made it. Its linker follows whatever an object says, anywhere in
    memory: one that was read, and that our own lines could load but do not, is not handed to it.
    """
    try:
        ours = mapped(object_file, _found)
    except Exception as error:
        raise ValueError(f"this is no object file, or not all of it: {error}") from None
    if ours is not None:
        return Code(ours, object_file)
    if not made and LOADS:
        raise ValueError("this is an object file of another kind")
    llvm = binding()
    for name, address in _addresses.items():
        llvm.add_symbol(name, address)
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(""), machine(host().name, host().flags, 1)
    )
    engine.add_object_file(llvm.ObjectFileRef.from_data(object_file))
    engine.finalize_object()
    return Code(engine, object_file)


def _found(name: str) -> int | None:
    """The address of a function that is offered, or one of the libraries of the process."""
    if name in _addresses:
        return _addresses[name]
    there = getattr(_libraries(), name, None)
    return None if there is None else ctypes.cast(there, ctypes.c_void_p).value


@functools.cache
def _libraries() -> ctypes.CDLL:
    """Whatever the process has loaded with its names for everybody: to say so takes 30 µs."""
    return ctypes.CDLL(None)
