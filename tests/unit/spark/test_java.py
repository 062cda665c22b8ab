"""Finding Java without starting one: small scripts stand in for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eligo import EligoError
from eligo.spark import session as java

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts")


def pretend(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(java, "_USUAL_PLACES", (str(tmp_path / "jvm" / "*"),))


def test_no_java_says_what_to_install() -> None:
    assert java.find_java() is None
    with pytest.raises(EligoError, match=r"found none(.|\n)*apt-get install openjdk-17(.|\n)*brew install"):
        java.require_java()


def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(pretend(tmp_path / "mine", "21.0.1")))
    monkeypatch.setenv("PATH", str(pretend(tmp_path / "other", "17.0.15") / "bin"))
    assert java.find_java() == java.Java(tmp_path / "mine", 21)


def test_a_java_that_is_too_old_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(pretend(tmp_path / "old", "1.8.0_292")))
    with pytest.raises(EligoError, match="found only Java 8"):
        java.require_java()
    pretend(tmp_path / "jvm" / "java-17", "17")
    assert java.require_java() == java.Java(tmp_path / "jvm" / "java-17", 17)


def test_a_link_on_the_path_leads_to_its_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = pretend(tmp_path / "real", "17.0.15")
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(links))
    assert java.find_java() == java.Java(home, 17)


def test_a_stub_that_fails_is_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "stub" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    assert java.find_java() is None
