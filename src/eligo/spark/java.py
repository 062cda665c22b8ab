"""Finding the Java that Spark runs on, and saying what to install when there is none."""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from eligo.errors import EligoError

MINIMUM: Final = 17  # Spark 4 starts on nothing older

# Where installers put a Java without adding it to PATH (Homebrew's are "keg-only", Debian keeps several side by side).
_USUAL_PLACES: Final = (
    "/opt/homebrew/opt/openjdk*",
    "/usr/local/opt/openjdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/usr/lib/jvm/*",
)

_ADVICE: Final = """\
  Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless
  Fedora, RHEL     sudo dnf install java-17-openjdk-headless
  macOS            brew install openjdk@17
  Windows          winget install EclipseAdoptium.Temurin.17.JRE
  anywhere         set JAVA_HOME to a Java that is installed elsewhere"""


class Java(NamedTuple):
    """An installed Java: its home folder and its major version."""

    home: Path
    version: int


def find_java(minimum: int = MINIMUM) -> Java | None:
    """The first Java of at least version `minimum`: JAVA_HOME, then PATH, then the usual places."""
    return next((java for java in _installed() if java.version >= minimum), None)


def require_java(minimum: int = MINIMUM) -> Java:
    """The same, or an error that says what to install."""
    java = find_java(minimum)
    if java is not None:
        return java
    older = next(_installed(), None)
    found = f"found only Java {older.version} in {older.home}" if older else "found none on this machine"
    raise EligoError(f"Spark needs Java {minimum} or newer; {found}. Install one:\n{_ADVICE}")


def _installed() -> Iterator[Java]:
    homes = [os.environ.get("JAVA_HOME") or None, _home_on_path()]
    homes += (place for pattern in _USUAL_PLACES for place in sorted(glob.glob(pattern)))
    for home in homes:
        version = _version(Path(home)) if home else None
        if home and version:
            yield Java(Path(home), version)


def _home_on_path() -> str | None:
    java = shutil.which("java")
    # /usr/bin/java is a chain of links into the real installation, <home>/bin/java.
    return str(Path(java).resolve().parent.parent) if java else None


def _version(home: Path) -> int | None:
    """The major version, or None where no Java runs (macOS has a stub that only asks to install one)."""
    java = home / "bin" / ("java.exe" if os.name == "nt" else "java")
    try:
        run = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', run.stderr + run.stdout)  # up to Java 8 the name was 1.8
    return int(found[1]) if found else None
