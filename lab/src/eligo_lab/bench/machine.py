"""The machine that figures were measured on, and the memory of this process."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

_STATUS: Final = Path("/proc/self/status")
_CLEAR: Final = Path("/proc/self/clear_refs")


def describe() -> str:
    """Processor, cores, and the versions that matter, as every page of figures needs them."""
    import llvmlite
    import numba
    import numpy

    return (
        f"{processor()}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, "
        f"NumPy {numpy.__version__}, Numba {numba.__version__}, llvmlite {llvmlite.__version__}"
    )


def processor() -> str:
    """The processor's own name where the system tells it, else its kind."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def resident() -> int:
    """Bytes of this process that lie in memory now; where the system does not tell, the most there ever were."""
    return _status("VmRSS") or _most()


def _most() -> int:
    try:
        import resource
    except ImportError:
        return 0  # Windows
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _status(name: str) -> int:
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class Growth:
    """How much memory the process gained while a block ran: what stayed (`kept`), and the most in between (`peak`).

    `peak` is None where the system cannot forget an older and higher one.
    """

    kept: int = 0
    peak: int | None = None

    def __enter__(self) -> Growth:
        _release()
        try:
            _CLEAR.write_text("5")  # the peak is from now on
            self._resettable = True
        except OSError:
            self._resettable = False
        self._before = resident()
        return self

    def __exit__(self, *_: object) -> None:
        peak = _status("VmHWM")
        _release()
        self.kept = max(0, resident() - self._before)
        if self._resettable and peak:
            self.peak = max(0, peak - self._before)


def _release() -> None:
    """Give back what is free already: otherwise it is used again, and the process seems not to grow."""
    gc.collect()
    with suppress(OSError, AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)
