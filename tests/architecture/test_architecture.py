"""The shape of the house: who may import whom, and that every index has its page."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "eligo"

# A room imports from the rooms before it, never from those behind.
ORDER = [
    "errors", "arguments", "collector", "forking", "interrupts", "kernels", "jit", "arrow", "registry", "options", "language",
    "compile", "index", "evaluate", "rule", "segments",
]  # fmt: skip


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("eligo."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("eligo.")}
    return found


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


def test_files_have_one_idea() -> None:
    long = {str(f.relative_to(SOURCE)): n for f in SOURCE.rglob("*.py") if (n := len(f.read_text().splitlines())) > 430}
    assert not long


def test_no_file_names_a_machine() -> None:
    root = SOURCE.parents[1]
    for file in root.rglob("*"):
        if file.suffix in (".py", ".md", ".toml", ".txt") and not {".venv", ".venv-kafka", "demo-output"} & set(
            file.relative_to(root).parts
        ):
            text = file.read_text()
            assert "/ro" + "ot/" not in text, file
            assert "/wo" + "rk/" not in text, file


def test_importing_is_quick_in_a_fresh_process() -> None:
    """No kernel is compiled at import, and nothing heavy is imported that matching does not need."""
    code = "import sys, eligo; print(sorted({m.split('.')[0] for m in sys.modules} & {'pyspark', 'pandas', 'typer', 'rich'}))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True)
    assert answer.stdout.strip() == "[]"
