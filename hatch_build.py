"""Wheels with compiled kernels: `make wheel` sets ELIGO_KERNELS to an archive; the wheel is for one platform then."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

GLIBC = "2_17"  # the oldest that wheels of NumPy, Numba and Arrow run on; kernels name nothing of it themselves


class KernelsHook(BuildHookInterface):
    """Puts the archive into the package and says for whom it is."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        archive = os.environ.get("ELIGO_KERNELS")
        if self.target_name != "wheel" or version == "editable" or not archive:
            return
        path = Path(archive).resolve(strict=True)
        build_data["force_include"][str(path)] = f"eligo/kernels/{path.name}"
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        build_data["tag"] = f"{python}-{python}-{platform.replace('linux_', f'manylinux_{GLIBC}_')}"
