"""`eligo generate`: rules and events to try and to measure with.

    local      rules.parquet  events.parquet  parameters.json      made as a whole, or with --blocks block by block
    spark      rules/         events/         parameters.json      folders of Parquet files, the rows of --blocks

A folder is written beside its place and takes its name when it is whole. A URL is written by Spark where it says, and
has no parameters.json.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eligo.cli.files import InputError
from eligo.cli.session import Conf, Master, spark_session
from eligo.cli.terminal import progress, show_figures, show_table

if TYPE_CHECKING:
    import pyarrow as pa

    from eligo_lab.workload.base import Generator

_FILES = ("rules.parquet", "events.parquet", "parameters.json")
_FOLDERS = ("rules", "events")


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
    blocks: Annotated[
        bool, typer.Option("--blocks", help="Make it block by block, as Spark does: of any size, and other rows.")
    ] = False,
    engine: Annotated[
        str, typer.Option(metavar="local|spark", help="Make it in this process, or on Spark: then in blocks.")
    ] = "local",
    master: Master = None,
    conf: Conf = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a folder that this command has written.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the workloads and their parameters.")] = False,
) -> None:
    """Generate a workload of rules and events. It is written as `eligo match` reads it: DIR/rules.parquet and
    DIR/events.parquet.

    The same parameters and seed give the same files. With --engine spark DIR/rules and DIR/events are folders.
    """
    from eligo_lab.workload.base import WORKLOADS

    if name is None or listed:
        _list([WORKLOADS[name]] if name is not None else list(WORKLOADS.values()))
        return
    generator = WORKLOADS[name]
    if out is None:
        raise typer.BadParameter("give -o DIR, the folder to write")
    given: dict[str, Any] = dict(_setting(text) for text in settings or ())
    given |= {key: n for key, n in (("rules", rules), ("events", events), ("seed", seed)) if n is not None}
    given = {key: generator.checked(key, value) for key, value in given.items()}
    if engine not in ("local", "spark"):
        raise InputError(f"--engine is local or spark, not {engine!r}")
    if engine == "local" and (master or conf):
        raise InputError("--master and --conf are for --engine spark")
    if engine == "spark":
        parameters, measured = _on_spark(generator, given, out, force, master, conf)
    else:
        target = Path(out).absolute()
        _check_target(target, force)
        parameters, measured = (_in_blocks if blocks else _whole)(generator, given, target)
    figures: dict[str, object] = {"rules": parameters["rules"], "events": parameters["events"]}
    figures |= {f"measured {key}": f"{value:.6g}" for key, value in measured.items()}
    show_figures(out, figures)


_Made = tuple[dict[str, object], dict[str, float]]  # parameters, and what was measured


def _whole(generator: Generator, given: dict[str, Any], target: Path) -> _Made:
    import pyarrow.parquet as pq

    made = generator.make(**given)

    def write(beside: Path) -> None:
        pq.write_table(made.rules, beside / _FILES[0])
        pq.write_table(made.events, beside / _FILES[1])

    return _put(target, generator.name, made.parameters, made.measured, write)


def _in_blocks(generator: Generator, given: dict[str, Any], target: Path) -> _Made:
    made = generator.blocks(**given)

    def write(beside: Path) -> None:
        with progress("generating", made.rule_blocks + made.event_blocks) as advance:
            _write_blocks(beside / _FILES[0], made.rule_schema, made.rule_blocks, made.rules, advance)
            _write_blocks(beside / _FILES[1], made.event_schema, made.event_blocks, made.events, advance)

    return _put(target, generator.name, made.parameters, made.measured(), write)


def _write_blocks(
    path: Path,
    schema: pa.Schema,
    blocks: int,
    make: Callable[[int], Iterator[pa.RecordBatch]],
    advance: Callable[[int], None],
) -> None:
    """A file with a row group for each block."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, schema) as writer:
        for block in range(blocks):
            writer.write_table(pa.Table.from_batches(make(block), schema))
            advance(1)


def _on_spark(
    generator: Generator, given: dict[str, Any], out: str, force: bool, master: str | None, conf: list[str] | None
) -> _Made:
    from eligo_lab.workload.on_spark import frames

    by_url = "://" in out
    target = Path(out).absolute()
    if by_url and force:
        raise InputError(f"{out}: --force replaces folders of this machine; remove what is there, or choose another")
    if not by_url:
        _check_target(target, force)
    made = generator.blocks(**given)
    with spark_session("eligo generate", master, conf) as session:
        generated = frames(session, made)

        def write(folder: Path | str) -> None:
            for name, frame in zip(_FOLDERS, (generated.rules, generated.events), strict=True):
                frame.write.parquet(f"{folder}/{name}")

        if by_url:
            write(out.rstrip("/"))
            return made.parameters, made.measured()
        return _put(target, generator.name, made.parameters, made.measured(), write)


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
    others = sorted(entry.name for entry in target.iterdir() if entry.name not in (*_FILES, *_FOLDERS))
    if others or not (target / "parameters.json").is_file():
        # Even --force deletes nothing that this command has not written.
        raise InputError(
            f"{target}: is no workload (there is {others[0] if others else 'no parameters.json'}): choose another"
        )
    if not force:
        raise InputError(f"{target}: is there already; --force replaces it")


def _put(
    target: Path,
    name: str,
    parameters: dict[str, object],
    measured: dict[str, float],
    write: Callable[[Path], None],
) -> _Made:
    """All files in a folder beside, which then takes the name."""
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    try:
        beside.mkdir()
        write(beside)
        content = {"workload": name, "parameters": parameters, "measured": measured}
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
    return parameters, measured
