"""Break kernels on purpose, and count how many of the mutants the differential test notices.

    python tests/differential/mutants.py [--count 200] [--seconds 60] [--seed 0] [--processes 2] [--only PART] [--again LOG]

A mutant is one kernel with one change: a comparison flipped, a bound moved by one, a flag dropped, `and` for `or`, a
condition turned round. The parent process loads every kernel and draws rules and events; each mutant is a forked child
in which the kernel, and all kernels that call it, are compiled anew and put in the place of the old ones. So nothing is
written anywhere, and a mutant costs seconds. A child that sees a difference, crashes or hangs is killed; one that sees
none in the time given survives, and is printed with its change: somebody has to look at it.
"""

from __future__ import annotations

import argparse
import ast
import gc
import inspect
import os
import random
import signal
import sys
import textwrap
import time
from collections import defaultdict
from collections.abc import Iterator
from copy import copy, deepcopy
from dataclasses import dataclass
from itertools import count
from types import CellType, FunctionType
from typing import Any

from numba.core.dispatcher import Dispatcher

from eligo.evaluate.registry import EVALUATORS
from eligo.index.registry import INDEXES
from eligo.kernels.native import Kernel, load_entry, make_entry
from eligo.prove.draw import THEMES
from eligo.prove.rounds import Round
from eligo.prove.walks import Walk

numbers = count()  # of what was compiled
KILLED, SURVIVED, INVALID = 10, 11, 12
FIRST, NEXT = 90, 25  # seconds after which a comparison hangs: the first, which compiles, and any other
# What chooses between ways that all give the right answer, watches, measures or draws; and what no matcher calls.
NO_ANSWERS = (
    "access_predicates", "rank", "adapt", "recycling", "selectivity", "statistics", "draw", "eligo_lab.bench", "eligo_lab.workload",
    "eligo_lab.intervals", "op_kept", "spark", "signature", "integers", "exchange", "prove", "renumber", "pieces", "naming",
)  # fmt: skip
# The setups that try a kernel, by the module it stands in; the first that fits.
SETUPS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("segments.living", (("be-tree", "interval"),)),
    ("index.be_tree", (("be-tree", "interval"), ("be-tree-batch", "interval"))),
    ("index.ps_tree.bloom", (("pst-bloom", "interval"),)),
    ("index.ps_tree.pst_bloom", (("pst-bloom", "interval"),)),
    ("index.ps_tree.hash", (("pst-hash", "interval"),)),
    ("index.ps_tree.pst_hash", (("pst-hash", "interval"),)),
    ("index.ps_tree", (("pst-hash", "interval"), ("pst-bloom", "interval"))),
    ("index.rows", (("be-tree", "interval"), ("be-tree-batch", "shared"))),
    ("eligo_lab.rivals.counting", (("counting", "interval"),)),
    ("eligo_lab.rivals.postings", (("counting", "interval"), ("k-index", "interval"))),
    ("eligo_lab.rivals.k_index", (("k-index", "interval"),)),
    ("eligo_lab.rivals.op_", (("op-index", "interval"),)),
    ("eligo_lab.rivals.gryphon", (("gryphon", "interval"),)),
    ("index.stabbing.ordered", (("interval-tree", "interval"),)),
    ("index.stabbing", (("stab-hybrid", "interval"), ("segment-tree", "interval"), ("interval-tree", "interval"))),
    ("index.scan", (("scan", "interval"),)),
    ("index", (("propagation", "interval"), ("k-index", "interval"))),
    ("evaluate.dewey", (("scan", "dewey"),)),
    ("evaluate.dnf", (("scan", "dnf"),)),
    ("evaluate.interval", (("scan", "interval"),)),
    ("evaluate.trees", (("scan", "walk"), ("scan", "scan"))),
    ("evaluate.programs", (("scan", "walk"), ("scan", "shared"))),
    ("evaluate.leaf", (("scan", "interval"), ("scan", "dewey"))),
    ("evaluate.leaves", (("scan", "interval"), ("scan", "dewey"))),
    ("evaluate.sharing", (("scan", "shared"),)),
    ("evaluate.labels", (("scan", "interval"), ("scan", "dewey"))),
    ("evaluate", (("scan", "shared"), ("scan", "walk"))),
    ("", (("propagation", "interval"), ("scan", "interval"))),
)


@dataclass(frozen=True)
class Mutant:
    """A kernel with one change."""

    kernel: str  # module and name
    line: int
    change: str
    function: ast.FunctionDef

    def __str__(self) -> str:
        return f"{self.kernel}:{self.line}  {self.change}"


def kernels() -> dict[str, Any]:
    """Every kernel and helper that is loaded, by module and name."""
    found: dict[str, Any] = {}
    for module in list(sys.modules.values()):
        name = getattr(module, "__name__", "")
        if not name.startswith(("eligo.", "eligo_lab.")):
            continue
        methods = [method for kind in vars(module).values() if isinstance(kind, type) for method in vars(kind).values()]
        for thing in (*vars(module).values(), *methods):
            value = getattr(thing, "__func__", thing)
            if isinstance(value, Dispatcher) and value.py_func.__module__ == name:
                found[f"{name.removeprefix('eligo.')}.{value.py_func.__name__}"] = value
    return found


def callers(of: Any, everyone: dict[str, Any]) -> list[Any]:
    """The kernel and all that call it, directly or not, callees first."""
    calls: dict[int, list[Any]] = defaultdict(list)
    for kernel in everyone.values():
        code, names = kernel.py_func.__code__, kernel.py_func.__globals__
        enclosed = [cell.cell_contents for cell in kernel.py_func.__closure__ or ()]
        for called in (*(names.get(name) for name in code.co_names), *enclosed):
            if isinstance(called, Dispatcher):
                calls[id(called)].append(kernel)
    found, waiting = [of], [of]
    while waiting:
        for kernel in calls[id(waiting.pop())]:
            if not any(kernel is one for one in found):
                found.append(kernel)
                waiting.append(kernel)
    return found


# -- changes

_FLIPPED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip


def places(tree: ast.FunctionDef) -> Iterator[tuple[int, int]]:
    """Every place where the function can be changed: the number of a node, and the way to change it."""
    for number, node in enumerate(ast.walk(tree)):
        for way in range(2):
            if _change(copy(node), way):
                yield number, way


def changed(tree: ast.FunctionDef, number: int, way: int) -> tuple[int, str, ast.FunctionDef]:
    """The function with one change: its line, what was changed, and the function."""
    made = deepcopy(tree)
    node = list(ast.walk(made))[number]
    before = _shown(node)
    _change(node, way)
    ast.fix_missing_locations(made)
    return getattr(node, "lineno", 0), f"{before}  →  {_shown(node)}", made


def _shown(node: ast.AST) -> str:
    return ast.unparse(node).split("\n")[0][:90]


def _change(node: Any, way: int) -> bool:
    """Change a node in place; False where there is nothing to change in this way."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in _FLIPPED:
            if way == 1 and isinstance(op, ast.Eq | ast.NotEq):
                return False
            flip = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt}
            node.ops = [(_FLIPPED if way == 0 else flip)[type(op)]()]
            return True
        case ast.BoolOp() if way == 0:
            node.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
            return True
        case ast.If() | ast.While() if way == 0 and isinstance(node, ast.If):
            node.test = ast.UnaryOp(ast.Not(), node.test)
            return True
        case ast.BinOp(op=ast.Add() | ast.Sub(), right=ast.Constant(value=1)) if way == 0:
            node.right = ast.Constant(0)
            return True
        case ast.BinOp(op=ast.BitAnd(), right=ast.Attribute()) if way == 0:
            node.right = ast.Constant(0)  # a flag that is never seen
            return True
        case ast.BinOp(op=ast.BitOr()) if way == 0:
            node.op = ast.BitAnd()
            return True
        case ast.Call(func=ast.Name(id="range"), args=[*first, last]) if way == 0 and len(first) < 2:
            node.args = [*first, ast.BinOp(last, ast.Sub(), ast.Constant(1))]
            return True
        case ast.Return(value=ast.Constant(value=bool(value))) if way == 0:
            node.value = ast.Constant(not value)
            return True
        case ast.AugAssign(op=ast.Add() | ast.Sub(), value=ast.Constant(value=1)) if way == 0:
            node.value = ast.Constant(2)
            return True
    return False


def mutants(everyone: dict[str, Any], count: int, seed: int, only: str) -> list[Mutant]:
    """So many mutants, spread over all files as evenly as they allow."""
    by_file: dict[str, list[tuple[str, ast.FunctionDef, int, int]]] = defaultdict(list)
    for name, kernel in sorted(everyone.items()):
        file, _, _ = name.rpartition(".")
        if any(part in file for part in NO_ANSWERS) or only not in name or name.split(".")[-1].startswith("make_"):
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(kernel.py_func))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        tree.decorator_list = []
        by_file[file] += [(name, tree, *place) for place in places(tree)]
    choose = random.Random(seed)
    for some in by_file.values():
        choose.shuffle(some)
    chosen = []
    while len(chosen) < count and any(by_file.values()):
        chosen += [some.pop() for some in by_file.values() if some]
    made = []
    for name, tree, number, way in chosen[:count]:
        line, change, function = changed(tree, number, way)
        made.append(Mutant(name, everyone[name].py_func.__code__.co_firstlineno + line - 1, change, function))
    return made


def take_place(mutant: Mutant, everyone: dict[str, Any]) -> None:
    """Put the mutant, and its callers compiled anew, in the place of the kernels that are loaded."""
    old = everyone[mutant.kernel]
    names = old.py_func.__globals__
    module = ast.Module([mutant.function], [])
    space: dict[str, Any] = {}
    exec(compile(module, old.py_func.__code__.co_filename, "exec"), names, space)
    made = space[mutant.function.name]
    made.__module__ = old.py_func.__module__
    replaced = {}
    for kernel in callers(old, everyone):
        source = kernel.py_func if kernel is not old else made
        space = names if kernel is old else kernel.py_func.__globals__
        cells = [cell.cell_contents for cell in source.__closure__ or ()]
        closure = tuple(CellType(replaced.get(id(value), value)) for value in cells)
        fresh = FunctionType(source.__code__, space, source.__name__, None, closure or None)
        fresh.__module__, fresh.__qualname__ = source.__module__, kernel.py_func.__qualname__
        replaced[id(kernel)] = compiled_anew(fresh)
    for loaded in list(sys.modules.values()):
        if getattr(loaded, "__name__", "").startswith(("eligo.", "eligo_lab.")):
            for name, value in list(vars(loaded).items()):
                if id(value) in replaced:
                    setattr(loaded, name, replaced[id(value)])
                elif isinstance(value, type):  # whose methods may be kernels
                    for inner, method in list(vars(value).items()):
                        if id(getattr(method, "__func__", None)) in replaced:
                            setattr(value, inner, staticmethod(replaced[id(method.__func__)]))


def compiled_anew(function: Any) -> Any:
    """A kernel as `eligo.jit` makes it, looked for nowhere and kept nowhere."""

    def entry_point(kernel: Kernel, args: tuple[Any, ...]) -> Any:
        made = make_entry(kernel, args, f"mutant.{next(numbers)}")
        return load_entry(made, kernel.py_func)

    return Kernel(function, entry_point)


def attempt(mutant: Mutant, everyone: dict[str, Any], rounds: list[Round], walks: list[Walk], seconds: float) -> int:
    """What becomes of a mutant."""
    try:
        take_place(mutant, everyone)
    except Exception:
        return INVALID
    module = mutant.kernel.rpartition(".")[0]
    setups = next(setups for prefix, setups in SETUPS if module.startswith(prefix))
    until = None
    seed = 1000
    signal.alarm(FIRST)  # ends the process, inside of a kernel too
    while until is None or time.monotonic() < until:
        for drawn, walk in zip(rounds, walks, strict=True):
            for index, evaluator in setups:
                for setup in drawn.setups([index], [evaluator]):
                    failure = drawn.compare(setup)[1]
                    if failure is not None:
                        return INVALID if _is_compiler(failure.found) else KILLED
                    # Kernels are compiled by now; from here on the time counts.
                    until = until or time.monotonic() + seconds
                    signal.alarm(NEXT)
                for absent in ("fails", "classical"):
                    _, difference = walk.run(index, evaluator, absent)  # type: ignore[arg-type]
                    signal.alarm(NEXT)
                    if difference is not None:
                        return INVALID if _is_compiler(difference.found) else KILLED
            if time.monotonic() > until:  # type: ignore[operator]
                return SURVIVED
        signal.alarm(0)
        rounds = [Round(theme.scaled(0.4), seed) for theme in THEMES]
        walks = [Walk(theme, seed, 120) for theme in THEMES]
        seed += 1
    return SURVIVED


def _is_compiler(found: Any) -> bool:
    return isinstance(found, Exception) and type(found).__module__.startswith("numba")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="mutants of kernels with this in their names")
    parser.add_argument(
        "--again", default="", help="the output of an earlier run: those that survived it, and no others"
    )
    given = parser.parse_args()

    rounds = [Round(theme.scaled(0.4), 7) for theme in THEMES]
    walks = [Walk(theme, 7, 120) for theme in THEMES]
    # Every kernel is loaded before anything is forked.
    for setup in rounds[0].setups(list(INDEXES.all()), list(EVALUATORS.all())):
        assert rounds[0].compare(setup)[1] is None, setup
    everyone = kernels()
    # And every body of one, so that a child compiles the mutant and what calls it, and nothing else.
    for kernel in everyone.values():
        for args in list(kernel.overloads):
            kernel.body(args)
    chosen = mutants(everyone, given.count if not given.again else sys.maxsize, given.seed, given.only)
    if given.again:
        with open(given.again) as log:
            again = {line.split(" s  ", 1)[1].strip() for line in log if " SURVIVED " in line}
        chosen = [mutant for mutant in chosen if str(mutant) in again]
    print(f"{len(chosen)} mutants of {len(everyone)} kernels", flush=True)
    gc.freeze()
    running: dict[int, tuple[Mutant, float]] = {}
    waiting, counts, survivors = chosen[::-1], defaultdict(int), []
    while waiting or running:
        while waiting and len(running) < given.processes:
            mutant = waiting.pop()
            child = os.fork()
            if child == 0:
                sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
                code = KILLED
                try:
                    code = attempt(mutant, everyone, rounds, walks, given.seconds)
                finally:
                    os._exit(code)
            running[child] = mutant, time.monotonic()
        done, status = os.wait()
        mutant, started = running.pop(done)
        code = os.waitstatus_to_exitcode(status)
        fate = {SURVIVED: "SURVIVED", INVALID: "invalid"}.get(code, "killed")
        counts[fate] += 1
        if fate == "SURVIVED":
            survivors.append(mutant)
        seconds = time.monotonic() - started
        print(f"{sum(counts.values()):4} {fate:8} {seconds:5.0f} s  {mutant}", flush=True)
    valid = counts["killed"] + counts["SURVIVED"]
    print(f"\n{counts['killed']} of {valid} mutants killed ({counts['invalid']} did not compile)")
    for mutant in survivors:
        print(f"  survived: {mutant}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
