"""Every Python block of docs/exchange.md runs, as those of the README do."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


def test_blocks_run_and_keep_their_promises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = importlib.util.spec_from_file_location("readme_blocks", ROOT / "tests" / "readme" / "test_readme.py")
    assert spec is not None
    assert spec.loader is not None
    readme = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(readme)
    monkeypatch.chdir(tmp_path)  # the page saves an exchange
    namespace: dict[str, Any] = {}
    checked = 0
    blocks = readme.BLOCK.findall((ROOT / "docs" / "exchange.md").read_text(encoding="utf-8"))
    for source, printed in blocks:
        checked += readme.run(source, namespace)
        assert capsys.readouterr().out == printed
    assert len(blocks) >= 9
    assert checked >= 14
