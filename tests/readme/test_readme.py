"""Every Python block of the README and of the pages below runs; what stands after `# →`, or in a text block right below, is what comes out."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import eligo

ROOT = Path(__file__).parents[2]
README, API = ROOT / "README.md", ROOT / "docs" / "python.md"
PAGES = [README, API, ROOT / "docs" / "profile-matching.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
PROMISE = re.compile(r"#\s*→\s*(.+)$")


def run(source: str, namespace: dict[str, Any]) -> int:
    """Run one block statement by statement; the number of promises checked."""
    lines = source.splitlines()
    checked = 0
    for statement in ast.parse(source).body:
        text = "\n".join(lines[statement.lineno - 1 : statement.end_lineno])
        promise = PROMISE.search(lines[(statement.end_lineno or statement.lineno) - 1])
        if promise is None:
            exec(compile(text, "<page>", "exec"), namespace)
            continue
        assert isinstance(statement, ast.Expr), f"only an expression can promise a value: {text}"
        value = eval(compile(ast.Expression(statement.value), "<page>", "eval"), namespace)
        assert value == ast.literal_eval(promise[1]), f"{text}\ngave {value!r}"
        checked += 1
    return checked


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_run_and_keep_their_promises(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # they save snapshots
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {}
    checked = 0
    for source, printed in blocks:
        checked += run(source, namespace)
        assert capsys.readouterr().out == printed
    assert len(blocks) >= 4
    assert checked >= 5
    assert any(printed for _, printed in blocks)


@pytest.mark.parametrize("page", [README, *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


def test_the_page_of_the_api_names_all_of_it() -> None:
    text = API.read_text(encoding="utf-8")
    members = [
        name
        for name in vars(eligo.Matcher)
        if not name.startswith("_") and name not in ("of", "engine", "reading", "asked")
    ]
    exported = [name for name in eligo.__all__ if name not in ("exists", "forall")]  # of rules over documents
    missing = [name for name in (*members, *exported) if not re.search(rf"\b{name}\b", text)]
    assert not missing


def test_dir_has_the_public_names() -> None:
    assert set(dir(eligo)) == set(eligo.__all__)


@pytest.mark.parametrize("thing", [eligo.Matcher, eligo.Stats, eligo.Explanation, eligo.Rule, eligo.Reject])
def test_everything_public_says_what_it_is(thing: type) -> None:
    silent = [
        name
        for name, value in vars(thing).items()
        if not name.startswith("_") and callable(value) and not value.__doc__
    ]
    assert thing.__doc__
    assert not silent
    parameters = set(inspect.signature(thing).parameters) if thing is eligo.Matcher else set()
    assert all(re.search(rf"^    {name} ", thing.__doc__, re.MULTILINE) for name in parameters)
