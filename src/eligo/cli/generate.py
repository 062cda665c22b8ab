"""`eligo generate`: rules and events to try and to measure with."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eligo.cli.files import InputError
from eligo.cli.terminal import show_figures, show_table

if TYPE_CHECKING:
    from eligo.workload.base import Generator, Workload

_FILES = ("rules.parquet", "events.parquet", "parameters.json")


def generate_workload(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A workload; without it they are listed.")] = None,
    out: Annotated[
        str | None, typer.Option("--output", "-o", metavar="DIR", help="The folder to write, which must not exist.")
    ] = None,
    rules: Annotated[int | None, typer.Option(help="How many rules.")] = None,
    events: Annotated[int | None, typer.Option(help="How many events.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of all random choices.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PARAMETER=VALUE", help="A parameter of the workload; may be repeated."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a folder that this command has written.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the workloads and their parameters.")] = False,
) -> None:
    """Generate a workload: DIR/rules.parquet and DIR/events.parquet, as `eligo match` reads them.

    The same parameters and seed give the same files.
    """
    from eligo.workload.base import WORKLOADS

    if name is None or listed:
        _list([WORKLOADS[name]] if name is not None else list(WORKLOADS.values()))
        return
    generator = WORKLOADS[name]
    if out is None:
        raise typer.BadParameter("give -o DIR, the folder to write")
    given: dict[str, Any] = dict(_setting(text) for text in settings or ())
    given |= {key: n for key, n in (("rules", rules), ("events", events), ("seed", seed)) if n is not None}
    given = {key: generator.checked(key, value) for key, value in given.items()}
    target = Path(out).absolute()
    _check_target(target, force)
    made = generator.make(**given)
    _write(made, target)
    figures: dict[str, object] = {"rules": made.rules.num_rows, "events": made.events.num_rows}
    figures |= {f"measured {key}": f"{value:.6g}" for key, value in made.measured.items()}
    show_figures(out, figures)


def _list(generators: list[Generator]) -> None:
    summaries = [(generator.name, generator.summary) for generator in generators]
    show_table("workloads", ("name", "what it is"), summaries)
    rows = [
        (generator.name, name, "none" if one.default is None else f"{one.default}", one.help)
        for generator in generators
        for name, one in generator.parameters.items()
    ]
    show_table("parameters", ("workload", "parameter", "default", "meaning"), rows)


def _setting(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise typer.BadParameter(f"--set {text!r}: write it as PARAMETER=VALUE")
    return name.strip().replace("-", "_"), value.strip()


def _check_target(target: Path, force: bool) -> None:
    """Refuse, before anything is computed, what cannot or must not be written to."""
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {target.parent}")
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not target.is_dir():
        raise InputError(f"{target}: is a file, where a folder is to be written")
    others = sorted(entry.name for entry in target.iterdir() if entry.name not in _FILES)
    if others or not (target / "parameters.json").is_file():
        # Even --force deletes nothing that this command has not written.
        raise InputError(
            f"{target}: is no workload (there is {others[0] if others else 'no parameters.json'}): choose another"
        )
    if not force:
        raise InputError(f"{target}: is there already; --force replaces it")


def _write(made: Workload, target: Path) -> None:
    """All files in a folder beside, which then takes the name."""
    import pyarrow.parquet as pq

    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    try:
        beside.mkdir()
        pq.write_table(made.rules, beside / _FILES[0])
        pq.write_table(made.events, beside / _FILES[1])
        content = {"workload": made.name, "parameters": made.parameters, "measured": made.measured}
        (beside / _FILES[2]).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        if target.exists():
            target.rename(old)
        beside.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
