"""Result files: what was measured, readable by `eligo bench report` and by anything that reads JSON.

    format       1
    machine      processor, cores, versions
    command      how it was asked for
    experiments  name, title, varied, measure, left_out, and points:
        point    label, x, task (what was asked), workload, parameters, measured, rules, events, encode_ns, …
                 contenders: name to build_s, bytes, phases_ns, match_ns, total_ns, batch_ns, candidates, speedup, …
                 outside: the same for few rules, with the contenders from outside

A file is replaced as a whole after each point, so that a run that is killed loses only the point it was at.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from eligo.errors import OptionError

FORMAT = 1


def write(path: Path, content: dict[str, Any]) -> None:
    """Put the file in place at once, or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read(path: Path) -> dict[str, Any]:
    """The content of a result file; anything else is refused."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise OptionError(f"{path} is no result file: {error}") from None
    if not isinstance(content, dict) or not ("experiments" in content or "result" in content):
        raise OptionError(f"{path} is no result file: it was not written by `eligo bench run`")
    if content.get("format", FORMAT) > FORMAT:
        raise OptionError(
            f"{path} was written by a newer version (format {content['format']}): update eligo to read it"
        )
    return content
