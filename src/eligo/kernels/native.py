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
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numba
from numba import _dynfunc, types
from numba.core import cgutils, config, imputils, interpreter, ir, postproc, transforms, typing
from numba.core.base import BaseContext
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import Environment, lookup_environment
from numba.core.lowering import Lower
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.runtime import _nrt_python, nrtdynmod, rtsys
from numba.core.runtime.context import NRTContext

_ENVIRONMENT = "_ZN08NumbaEnv"
# What a processor of each kind has. Instructions of v3 are scheduled as for Zen 3, whose other features are put off: by
# LLVM's own idea of v3, which is Haswell's, index and grouping take 4 % longer on Zen 5 than with code made for it.
_V3 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2", "cx16", "sahf")
_V2 = ("popcnt", "sse3", "ssse3", "sse4.1", "sse4.2", "cx16", "sahf")
_BEYOND_V3 = "sse4a aes vaes pclmul vpclmulqdq sha adx prfchw clflushopt clwb fsgsbase invpcid rdrnd rdseed"
# Intel's processors before Ice Lake have these dependencies.
_V3_AS_ZEN_3 = "".join(f"-{feature}," for feature in _BEYOND_V3.split()) + "+false-deps-popcnt"


@dataclass(frozen=True)
class Entry:
    """What Python calls, as it is kept: an object file, and what its code looks up in Python."""

    name: str  # of the kernel, with its module, and the types of its arguments: for people
    symbol: str
    environments: tuple[tuple[str, str, bytes], ...]  # symbol, module whose globals it has, constants as a pickle
    code: bytes


class Target(NamedTuple):
    """A kind of processor, and how LLVM is told to make code for it."""

    kind: str
    processor: str
    features: str


@cache
def target() -> Target:
    """Returns what code is made for. If this processor is of no known kind, code is made for it alone."""
    if config.CPU_NAME or config.CPU_FEATURES:
        name = str(config.CPU_NAME or llvm.get_host_cpu_name())
        return Target(name, name, str(config.CPU_FEATURES or ""))
    if llvm.get_process_triple().startswith("x86_64"):
        has = llvm.get_host_cpu_features()
        for needed, known in (
            (_V3, Target("x86-64-v3", "znver3", _V3_AS_ZEN_3)),
            (_V2, Target("x86-64-v2", "x86-64-v2", "")),
        ):
            if all(has.get(feature) for feature in needed):
                return known
    elif llvm.get_process_triple().startswith("aarch64"):
        return Target("generic", "generic", "")
    name = str(llvm.get_host_cpu_name())
    return Target(name, name, str(llvm.get_host_cpu_features().flatten()))


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

    def _optimize_final_module(self) -> None:
        """Optimises once. Numba does so twice, for a pass between that removes what counts references."""
        manager: Any = self._codegen._module_pass_manager()
        manager, *builder = manager if isinstance(manager, tuple) else (manager,)
        manager.run(self._final_module, *builder)

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
        return target().processor

    def _get_host_cpu_features(self) -> str:
        return target().features


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
    for owner, name, ours, _ in _OURS:
        setattr(owner, name, ours)
    try:
        yield
    finally:
        del codegen._library_class
        del context.get_executable
        for owner, name, _, theirs in _OURS:
            setattr(owner, name, theirs)


_OURS: list[tuple[Any, str, Any, Any]] = []  # class, method, what it is while bodies are compiled, and otherwise


def _instead_of(owner: Any, name: str) -> Callable[[Any], Any]:
    """Makes the decorated function a method of a class of Numba's while bodies are compiled."""

    def noted(ours: Any) -> Any:
        _OURS.append((owner, name, ours, getattr(owner, name)))
        return ours

    return noted


_resolved_call = types.BaseFunction.get_call_type
_calls: dict[tuple[Any, ...], Any] = {}


@_instead_of(types.BaseFunction, "get_call_type")
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


@_instead_of(postproc.PostProcessor, "run")
def _brief_run(self: Any, emit_dels: bool = False, **options: Any) -> None:
    """Does what follows each pass over a function, except what no kernel needs: finding the variables that live at the
    start of each block, and the ends of variables before the last pass, which alone says how long they live.
    """
    function = self.func_ir
    if function.is_generator:
        _whole_run(self, emit_dels, **options)
        return
    function.blocks = transforms.canonicalize_cfg(function.blocks)
    function.variable_lifetime = postproc.VariableLifetime(function.blocks)
    function.generator_info = None
    if emit_dels and "extend_lifetimes" in options:
        self._insert_var_dels(**options)


# These look through every function for what is in no kernel: `with`, and dictionaries.
for _search in ("peep_hole_delete_with_exit", "peep_hole_fuse_dict_add_updates"):
    _instead_of(interpreter, _search)(lambda function: function)


# Numba writes about a hundred instructions for `handle.field[i]`, for it copies each array to memory to look at it, and
# counts references at each name that an array gets. What follows writes ten.

_lower_getitem, _lower_setitem = Lower.lower_getitem, Lower.lower_setitem
_lower_function = Lower.lower_normal_function
_get_getattr = BaseContext.get_getattr
_get_meminfos = NRTContext.get_meminfos
_counting = NRTContext.incref, NRTContext.decref, Lower.delvar


def _item(lower: Any, array: str, index: str, signature: Any) -> Any:
    """Returns a pointer to an item of an array, or None if Numba has to say where it is."""
    kind, place, context, builder = lower.typeof(array), signature.args[1], lower.context, lower.builder
    if not (
        isinstance(kind, types.Array)
        and kind.ndim == 1
        and kind.layout == "C"
        and kind.aligned
        and isinstance(kind.dtype, types.Number | types.Boolean)
        and isinstance(place, types.Integer)
        and not context.enable_boundscheck
    ):
        return None
    model = context.data_model_manager[kind]
    items = lower.loadvar(array)
    at = context.cast(builder, lower.loadvar(index), lower.typeof(index), place)
    at = context.cast(builder, at, place, types.intp)
    if place.signed:
        length = builder.extract_value(items, [model.get_field_position("shape"), 0])
        negative = builder.icmp_signed("<", at, at.type(0))
        at = builder.select(negative, builder.add(at, length), at)
    return builder.gep(builder.extract_value(items, model.get_field_position("data")), [at])


@_instead_of(Lower, "lower_getitem")
def _get_item(self: Any, kind: Any, expression: Any, array: Any, index: Any, signature: Any) -> Any:
    item = _item(self, array.name, index.name, signature)
    if item is None:
        return _lower_getitem(self, kind, expression, array, index, signature)
    value = self.context.unpack_value(self.builder, self.typeof(array.name).dtype, item)
    return self.context.cast(self.builder, value, signature.return_type, kind)


@_instead_of(Lower, "lower_setitem")
def _set_item(self: Any, array: Any, index: Any, value: Any, signature: Any) -> Any:
    given, dtype = self.typeof(value.name), getattr(self.typeof(array.name), "dtype", None)
    item = _item(self, array.name, index.name, signature) if isinstance(given, types.Number | types.Boolean) else None
    if item is None:
        return _lower_setitem(self, array, index, value, signature)
    stored = self.context.cast(self.builder, self.loadvar(value.name), given, signature.args[2])
    stored = self.context.cast(self.builder, stored, signature.args[2], dtype)
    self.context.pack_value(self.builder, dtype, stored, item)
    return None


@_instead_of(BaseContext, "get_getattr")
def _get_field(self: Any, kind: Any, name: str) -> Any:
    return _field if isinstance(kind, types.StructRef) else _get_getattr(self, kind, name)


def _field(context: Any, builder: Any, kind: Any, handle: Any, name: str) -> Any:
    """Loads a field of a handle. Numba calls a function to find it, which the optimiser does not see through."""
    model = context.data_model_manager[kind.get_data_type()]
    held = builder.bitcast(builder.extract_value(handle, 0), nrtdynmod._meminfo_struct_type.as_pointer())
    fields = builder.load(cgutils.gep_inbounds(builder, held, 0, 3))
    fields = builder.bitcast(fields, model.get_value_type().as_pointer())
    value = builder.load(cgutils.gep_inbounds(builder, fields, 0, model.get_field_position(name)))
    return imputils.impl_ret_borrowed(context, builder, kind.field_dict[name], value)


@_instead_of(Lower, "lower_normal_function")
def _lower_uncounted(self: Any, description: Any) -> None:
    """Compiles a function that only borrows without counting references: who called it holds what it was given."""
    before = NRTContext.incref, NRTContext.decref, Lower.delvar
    NRTContext.incref, NRTContext.decref, Lower.delvar = (_nothing,) * 3 if _borrows(self) else _counting
    try:
        _lower_function(self, description)
    finally:
        NRTContext.incref, NRTContext.decref, Lower.delvar = before


def _nothing(*args: Any) -> None:
    pass


_BORROWED = "getattr", "cast", "phi", "build_tuple", "exhaust_iter", "getiter", "iternext", "pair_first", "pair_second"


def _borrows(lower: Any) -> bool:
    """Tests whether a function neither makes nor returns arrays or handles: all it has are parts of its arguments."""

    def counted(kind: Any) -> bool:
        return bool(lower.context.data_model_manager[kind].contains_nrt_meminfo())

    def borrowed(value: Any) -> bool:
        if not isinstance(value, ir.Expr) or value.op in _BORROWED:
            return True
        if value.op not in ("getitem", "static_getitem"):
            return False
        index = value.index if value.op == "getitem" else value.index_var
        whole = lower.typeof(value.value.name)
        place = lower.typeof(index.name) if isinstance(index, ir.Var) else None
        return isinstance(whole, types.BaseTuple) or (
            isinstance(whole, types.Array) and isinstance(place, types.Integer | types.SliceType)
        )

    if lower.func_ir.is_generator or counted(lower.fndesc.restype):
        return False
    for block in lower.blocks.values():
        for one in block.body:
            if isinstance(one, ir.SetAttr | ir.DynamicRaise | ir.DynamicTryRaise):
                return False
            if isinstance(one, ir.Assign) and counted(lower.typeof(one.target.name)) and not borrowed(one.value):
                return False
    return True


@_instead_of(NRTContext, "get_meminfos")
def _what_counts(self: Any, builder: Any, kind: Any, value: Any) -> Any:
    if not isinstance(kind, types.Array):
        return _get_meminfos(self, builder, kind, value)
    place = self._context.data_model_manager[kind].get_field_position("meminfo")
    return [(kind, builder.extract_value(value, place))]


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
