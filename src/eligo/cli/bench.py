"""`eligo bench run` measures, `eligo bench report` writes the figures down."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Annotated, Any

import typer

from eligo.cli.terminal import guarded

app = typer.Typer(help="Measure, and write the figures down.", no_args_is_help=True)

EXPERIMENTS = {"foundation": "reading rules, one event, a batch, updates, a fresh process, scan"}


def run(
    name: Annotated[str, typer.Argument(help=f"What to measure: {', '.join(EXPERIMENTS)}.")],
    json_file: Annotated[Path, typer.Option("--json", help="Where the figures go.")],
    rules: Annotated[int, typer.Option(help="Rules of the large matcher.", min=1000)] = 1_000_000,
) -> None:
    """Measure on this machine; takes minutes."""
    from eligo.bench import foundation

    if name not in EXPERIMENTS:
        raise typer.BadParameter(f"there is no {name!r}; there are: {', '.join(EXPERIMENTS)}")
    result = foundation.run(rules, lambda line: typer.echo(line, err=True))
    content = {"name": name, "machine": _machine(), "result": result}
    json_file.write_text(json.dumps(content, indent=1) + "\n")


def report(
    files: Annotated[list[Path], typer.Argument(help="Files that `eligo bench run` wrote.", exists=True)],
    output: Annotated[Path, typer.Option("-o", "--output", help="The Markdown page to write.")],
) -> None:
    """Turn result files into a page of tables."""
    from eligo.bench.report import report as page

    results: list[dict[str, Any]] = [json.loads(file.read_text()) for file in files]
    command = f"eligo bench report {' '.join(file.name for file in files)} -o {output}"
    output.write_text(page(results, command))


def _machine() -> str:
    """Processor, cores, memory and versions, as the figures need them."""
    import llvmlite
    import numba
    import numpy

    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, "
        f"NumPy {numpy.__version__}, Numba {numba.__version__}, llvmlite {llvmlite.__version__}"
    )


app.command("run")(guarded(run))
app.command("report")(guarded(report))
