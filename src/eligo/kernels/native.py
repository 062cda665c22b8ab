"""Numba's inside: all that this project uses of it beyond what Numba documents.

Numba compiles a function that Python calls into a library of its own: wrappers, the function, and a copy of all that it
calls, optimised; and each of those functions once more for itself, with machine code that never runs. Here instead

    a body     is the LLVM form of one function, not optimised, without machine code
    an entry   is what Python calls: a wrapper, a body and all bodies below it, linked, optimised once, an object file

An entry is code for a kind of processor, not for one: `target`. Its object file names nothing but C functions of Python
and Numba, so that it can be loaded by another process, on another machine, from another path.
"""

# What Numba does not document has no types either.
# mypy: disable-error-code="attr-defined,assignment,union-attr,untyped-decorator,no-untyped-call,misc,unused-ignore"

from __future__ import annotations

import ctypes
import importlib
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import llvmlite.binding as llvm
import numba
from numba import _dynfunc, types
from numba.core import config, postproc, transforms, typing
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import Environment, lookup_environment
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.runtime import _nrt_python, rtsys

_ENVIRONMENT = "_ZN08NumbaEnv"
_V3 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2", "cx16", "sahf")
_V2 = ("popcnt", "sse3", "ssse3", "sse4.1", "sse4.2", "cx16", "sahf")


@dataclass(frozen=True)
class Entry:
    """What Python calls, as it is kept: an object file, and what its code looks up in Python."""

    name: str  # of the kernel, with its module, and the types of its arguments: for people
    symbol: str
    environments: tuple[tuple[str, str, bytes], ...]  # symbol, module whose globals it has, constants as a pickle
    code: bytes


@cache
def target() -> tuple[str, str]:
    """Returns the kind of processor that code is made for, and features beyond it. If this processor is of no known
    kind, code is made for it alone.
    """
    if config.CPU_NAME or config.CPU_FEATURES:
        return str(config.CPU_NAME or llvm.get_host_cpu_name()), str(config.CPU_FEATURES or "")
    if llvm.get_process_triple().startswith("x86_64"):
        has = llvm.get_host_cpu_features()
        for name, features in (("x86-64-v3", _V3), ("x86-64-v2", _V2)):
            if all(has.get(feature) for feature in features):
                return name, ""
    elif llvm.get_process_triple().startswith("aarch64"):
        return "generic", ""
    return str(llvm.get_host_cpu_name()), str(llvm.get_host_cpu_features().flatten())


class Body(JITCodeLibrary):
    """The LLVM form of one function, and which others it calls."""

    def add_llvm_module(self, module: Any) -> None:
        self._final_module.link_in(module)

    def add_linking_library(self, library: Any) -> None:
        if not isinstance(library, Body):
            library._ensure_finalized()
        self._linking_libraries.append(library)

    def finalize(self) -> None:
        self._finalized = True

    def below(self) -> list[Any]:
        """Returns the library and all that it needs, each once."""
        found: dict[Any, None] = {self: None}
        waiting: list[Any] = [self]
        while waiting:
            for library in waiting.pop()._linking_libraries:
                if library not in found:
                    found[library] = None
                    if isinstance(library, Body):
                        waiting.append(library)
        return list(found)

    def module(self) -> Any:
        """Returns the function alone, for linking: others may define it as well, and unused it is dropped."""
        if self._shared_module is None:
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.external:
                    function.linkage = "linkonce_odr"
            self._shared_module = self._final_module
        return self._shared_module

    def _get_module_for_linking(self) -> Any:
        """Returns all that is needed in one module, for Numba's own libraries, which know no bodies."""
        whole = self.module().clone()
        for library in self.below()[1:]:
            whole.link_in(_module_of(library), preserve=True)
        return whole


def _module_of(library: Any) -> Any:
    return library.module() if isinstance(library, Body) else library._get_module_for_linking()


class Linked(Body):
    """A wrapper and all that it calls, optimised for the target."""

    symbol = ""  # the name of the wrapper, which alone is seen from outside

    def finalize(self) -> None:
        whole = self._final_module
        for library in self.below()[1:]:
            whole.link_in(_module_of(library), preserve=True)
        for function in whole.functions:
            if not function.is_declaration:
                function.linkage = "internal" if function.name != self.symbol else "external"
        self._optimize_final_module()
        # Not earlier: Numba's optimiser knows these functions by their calls.
        whole.link_in(rtsys.library._get_module_for_linking(), preserve=True)
        for function in whole.functions:
            if not function.is_declaration and function.name != self.symbol:
                function.linkage = "internal"
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        whole.verify()
        self._finalized = True


class _Codegen(JITCPUCodegen):
    """A code generator of our own: its processor is the target, and no other code sees its symbols."""

    _library_class = Linked

    def _get_host_cpu_name(self) -> str:
        return target()[0]

    def _get_host_cpu_features(self) -> str:
        return target()[1]


@cache
def _codegen() -> Any:
    return _Codegen("eligo.kernels")


def _never() -> int:
    """Returns the address of a function that may be called like any of CPython's, and fails."""
    address = ctypes.cast(ctypes.pythonapi.PyErr_NoMemory, ctypes.c_void_p).value
    assert address is not None
    return address


@contextmanager
def _bodies_only() -> Iterator[None]:
    """Makes Numba compile everything to bodies within the block. Numba's compiler lock must be held, so that no other
    thread compiles meanwhile.
    """
    context = cpu_target.target_context
    codegen = context.codegen()
    before = codegen.__dict__.get("_library_class")

    def executable(library: Any, description: Any, environment: Any) -> Any:
        # A key by which bodies find each other; it is never called.
        return _dynfunc.make_function(
            description.lookup_module(), description.qualname.split(".")[-1], "", _never(), environment, (library,)
        )

    if before is Body:
        yield
        return
    codegen._library_class = Body
    context.get_executable = executable
    types.BaseFunction.get_call_type = _remembered_call
    postproc.PostProcessor.run = _brief_run
    try:
        yield
    finally:
        del codegen._library_class
        del context.get_executable
        types.BaseFunction.get_call_type = _resolved_call
        postproc.PostProcessor.run = _whole_run


_resolved_call = types.BaseFunction.get_call_type
_calls: dict[tuple[Any, ...], Any] = {}


def _remembered_call(function: Any, context: Any, args: Any, kws: Any) -> Any:
    """Returns the signature of a call of an operator or of a function that Numba knows. Numba tries all that it knows
    of `+` each time that it meets one, which is a third of what compiling takes; the answer is the same each time.
    """
    key = function, context, tuple(args), *kws.items()
    found = _calls.get(key)
    if found is None:
        found = _calls[key] = _resolved_call(function, context, args, kws)
    return found


_whole_run = postproc.PostProcessor.run


def _brief_run(self: Any, emit_dels: bool = False, **options: Any) -> None:
    """Does what follows each pass over a function, except finding the variables that live at the start of each block:
    only generators need them.
    """
    function = self.func_ir
    if function.is_generator:
        _whole_run(self, emit_dels, **options)
        return
    function.blocks = transforms.canonicalize_cfg(function.blocks)
    function.variable_lifetime = postproc.VariableLifetime(function.blocks)
    function.generator_info = None
    if emit_dels:
        self._insert_var_dels(**options)


class Kernel(CPUDispatcher):
    """A dispatcher with two kinds of versions: bodies for kernels, and entries for Python."""

    def __init__(
        self, function: Callable[..., Any], find: Callable[[Kernel, tuple[Any, ...]], Any], nogil: bool = True
    ) -> None:
        super().__init__(function, targetoptions={"nopython": True, "nogil": nogil, "boundscheck": None})
        self.nogil = nogil
        self._bodies: dict[tuple[Any, ...], Any] = {}
        self._find = find

    # -- called by kernels

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Returns one version for all whole numbers: Numba would make one for each literal, and one for a variable."""
        plain: Callable[[Any], Any] = types.unliteral
        given, named = tuple(map(plain, args)), {name: plain(kind) for name, kind in kws.items()}
        signature, folded = self._compiler.fold_argument_types(given, named)
        self.body(tuple(folded))
        name = self.py_func.__name__
        template = typing.make_concrete_template(f"CallTemplate({name})", key=name, signatures=self.nopython_signatures)
        return template, signature, folded, {}

    @property
    def nopython_signatures(self) -> list[Any]:
        return [body.signature for body in self._bodies.values()]

    def get_overload(self, signature: Any) -> Any:
        return self._bodies[tuple(signature)].entry_point

    def body(self, args: tuple[Any, ...]) -> Any:
        """Returns the body for these types, which is compiled the first time."""
        if args not in self._bodies:
            with global_compiler_lock, _bodies_only(), self._compiling_counter:
                self._compiler.targetoptions.update(no_cpython_wrapper=True, no_cfunc_wrapper=True)
                self._bodies[args] = self._compiler.compile(args, None)
        return self._bodies[args]

    # -- called by Python

    def compile(self, signature: Any) -> Any:
        args = tuple(signature)
        with global_compiler_lock:
            found = self.overloads.get(args)
            if found is None:
                found = self.overloads[args] = SimpleNamespace(entry_point=self._find(self, args))
                self._insert([kind._code for kind in args], found.entry_point, False)
            return found.entry_point


@global_compiler_lock
def make_entry(kernel: Kernel, args: tuple[Any, ...], symbol: str) -> Entry:
    """Compiles what Python calls with arguments of these types. Raises a RuntimeError if it depends on this process."""
    body = kernel.body(args)
    context = body.target_context  # one that counts references: without them an array that is returned would be freed
    library = _codegen().create_library(kernel.py_func.__qualname__)
    library.symbol = symbol
    library.add_linking_library(body.library)
    wrapper = body.fndesc.llvm_cpython_wrapper_name
    with _bodies_only(), context.push_code_library(library):
        context.create_cpython_wrapper(
            library, body.fndesc, body.environment, body.call_helper, release_gil=kernel.nogil
        )
    library._final_module.get_function(wrapper).name = symbol
    library.finalize()
    module = library._final_module
    environments = []
    for number, variable in enumerate(list(module.global_variables)):
        name = variable.name
        if name.startswith(_ENVIRONMENT):
            environment = lookup_environment(name)
            variable.name = f"{symbol}.{number}"
            if environment is not None and environment.can_cache():
                constants = pickle.dumps(list(environment.consts), 5)
                environments.append((variable.name, environment.globals["__name__"], constants))
    if library._dynamic_globals or any(getattr(one, "_reload_init", ()) for one in library.below()):
        raise RuntimeError(f"{kernel.py_func.__qualname__} holds what is of this process alone")
    name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__} {args}"
    return Entry(name, symbol, tuple(environments), _codegen()._tm.emit_object(module))


@cache
def _c_functions() -> None:
    """Lets object files find the functions of Numba's runtime, and others that its context makes known."""
    assert cpu_target.target_context is not None
    for name, address in _nrt_python.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


_alive: list[Any] = []  # environments, to whose addresses machine code points


@global_compiler_lock
def load_entry(entry: Entry, function: Callable[..., Any]) -> Any:
    """Loads an entry and returns its callable. `function` is the Python function that it was compiled from."""
    _c_functions()
    engine = _codegen()._engine._ee
    engine.add_object_file(llvm.ObjectFileRef.from_data(entry.code))
    engine.finalize_object()
    environments = []
    for symbol, module, constants in entry.environments:
        environment = Environment(vars(importlib.import_module(module)))
        environment.consts[:] = pickle.loads(constants)
        environment.env_name = symbol
        ctypes.c_void_p.from_address(engine.get_global_value_address(symbol)).value = id(environment)
        environments.append(environment)
    own = environments[0] if environments else Environment(function.__globals__)
    _alive.append((environments, own))
    return _dynfunc.make_function(
        importlib.import_module(function.__module__),
        function.__name__,
        "",
        engine.get_function_address(entry.symbol),
        own,
        (),
    )


def versions() -> tuple[str, ...]:
    """Returns the versions and settings of Numba that decide what code is made."""
    settings = (config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE, config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT)
    return numba.__version__, repr(llvm.llvm_version_info), *map(str, settings), *target()
