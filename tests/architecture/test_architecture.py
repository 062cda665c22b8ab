"""The shape of the house: who may import whom, and that every index has its page."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "eligo"

LAB = SOURCE.parents[1] / "lab" / "src" / "eligo_lab"

# A room imports from the rooms before it, never from those behind. `eligo` itself, which is Matcher and open, is a room too.
ORDER = [
    "errors", "arguments", "forking", "interrupts", "kernels", "jit", "arrow", "registry", "options", "language",
    "threads", "explain", "compile", "index", "evaluate", "batch", "rule", "rule_changes", "segments", "stats", "reading", "bulk",
    "loading", "engine",
    "store", "documents",
    "matcher", "exchange", "__init__", "spark", "prove", "warm", "packing", "cli", "__main__",
]  # fmt: skip


def imports(path: Path) -> set[str]:
    """The rooms that a file imports from; `__version__` is no secret of the front door."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "eligo":
            found |= {
                alias.name if alias.name in ORDER else "__init__" for alias in node.names if alias.name != "__version__"
            }
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("eligo."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {
                (alias.name + ".__init__").split(".")[1] for alias in node.names if alias.name.split(".")[0] == "eligo"
            }
    return found


def test_every_room_has_its_place() -> None:
    rooms = {
        path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path.is_dir() and any(path.glob("*.py")))
    }
    assert rooms == set(ORDER)


def has_types(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    named = every[1:] if every and every[0].arg in ("self", "cls") else every
    said = function.returns is not None or function.name == "__init__"
    return said and all(argument.annotation for argument in named)


def untyped(node: ast.AST, compiled: bool) -> list[str]:
    """Functions without types that nobody compiles: what a kernel is made of, and what is within one, needs none."""
    found = []
    for child in ast.iter_child_nodes(node):
        inner = compiled
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            names = {ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in child.decorator_list}
            inner = compiled or bool(names & {"kernel", "holding", "inline", "intrinsic"})
            if not inner and not has_types(child):
                found.append(child.name)
        found += untyped(child, inner)
    return found


def test_only_kernels_have_no_types() -> None:
    """`searching`, `copying` and their like make kernels of a function within them; those are named here."""
    made = {
        "search_events",
        "search_many",
        "copy_rows",
        "complete_one",
        "complete_batch",
        "match_rows",
        "match_queue",
        "sort",
    }
    for path in (*SOURCE.rglob("*.py"), *LAB.rglob("*.py")):
        assert set(untyped(ast.parse(path.read_text()), False)) <= made, path


def grows(target: ast.expr, value: ast.expr | None) -> bool:
    """Tests whether an assignment gives a field the array that `grown` made of it; of several, each its own."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return all(map(grows, target.elts, value.elts))
    if not isinstance(target, ast.Attribute):
        return True
    if not isinstance(value, ast.Call) or ast.unparse(value.func) != "grown":
        return False
    return ast.unparse(value.args[0]) == ast.unparse(target)


def test_fields_of_handles_are_given_other_arrays_by_growing_alone() -> None:
    """Kernels count no references to what they borrow: nobody holds an array that was replaced (kernels/native.py)."""
    found = []
    for path in [*SOURCE.rglob("*.py"), *LAB.rglob("*.py")]:
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef) and not has_types(function):
                for node in ast.walk(function):
                    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
                    value = getattr(node, "value", None)
                    found += [ast.unparse(node) for target in targets if target and not grows(target, value)]
    assert not found


def test_the_engine_does_not_know_the_lab() -> None:
    for path in SOURCE.rglob("*.py"):
        assert "eligo_lab" not in path.read_text(), path
    assert LAB.is_dir()


@pytest.mark.parametrize("room", ORDER)
def test_imports_go_one_way(room: str) -> None:
    allowed = set(ORDER[: ORDER.index(room) + 1])
    files = [SOURCE / f"{room}.py"] if (SOURCE / f"{room}.py").exists() else sorted((SOURCE / room).rglob("*.py"))
    assert files
    for file in files:
        assert imports(file) <= allowed, file


def test_the_reference_knows_the_language_alone() -> None:
    assert imports(SOURCE / "language" / "reference.py") <= {"language", "errors"}


def test_every_index_has_its_page() -> None:
    from eligo.index.registry import INDEXES

    for name in INDEXES.all():
        assert (SOURCE.parents[1] / "docs" / "indexes" / f"{name}.md").exists(), name


def test_no_file_names_a_machine() -> None:
    root = SOURCE.parents[1]
    for file in root.rglob("*"):
        if file.suffix in (".py", ".md", ".toml", ".txt") and not {".venv", ".venv-kafka", "demo-output"} & set(
            file.relative_to(root).parts
        ):
            text = file.read_text()
            assert "/ro" + "ot/" not in text, file
            assert "/wo" + "rk/" not in text, file
            assert not re.search(r"(expressions|be-tree|ps-tree|matching)\.tx" + "t", text), (
                file
            )  # docs/papers.md has names


def test_importing_is_quick_in_a_fresh_process() -> None:
    """No kernel is compiled at import, and nothing heavy is imported that matching does not need."""
    code = "import sys, eligo; print(sorted({m.split('.')[0] for m in sys.modules} & {'pyspark', 'pandas', 'typer', 'rich'}))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True)
    assert answer.stdout.strip() == "[]"
