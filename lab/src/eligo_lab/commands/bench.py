"""`eligo bench run` and `eligo bench spark` measure, `list` says what, `report` writes the figures down."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from eligo.cli import options
from eligo.cli.terminal import FINDINGS, guarded, say, show_table

app = typer.Typer(help="Measure, and write the figures down.", no_args_is_help=True)


def run(
    name: Annotated[str, typer.Argument(help="A workload, an experiment (`eligo bench list`), or foundation.")],
    json_file: Annotated[Path, typer.Option("--json", help="Where the figures go.")],
    index: Annotated[str | None, typer.Option(help="Indexes to compare, with commas; all, if not given.")] = None,
    rules: Annotated[int | None, typer.Option(help="Rules; 100,000 for a workload.", min=1)] = None,
    events: Annotated[int | None, typer.Option(help="Events; 1,000 for a workload.", min=1)] = None,
    set_values: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the workload, as name=value; may be repeated.")
    ] = None,
    evaluator: Annotated[str | None, typer.Option(help="Evaluators to compare, with commas; interval.")] = None,
    option: options.OptionValues = None,
    absent: Annotated[str | None, typer.Option(help="What an absent attribute means: fails or classical.")] = None,
    repeat: Annotated[int, typer.Option(help="Repetitions, everyone in turn in each.", min=1)] = 5,
    seed: Annotated[int, typer.Option(help="Of the workload.", min=0)] = 1,
    scale: Annotated[float, typer.Option(help="Rules and events of an experiment times this, for a laptop.")] = 1.0,
    inserts: Annotated[bool, typer.Option("--inserts/--no-inserts", help="Whether single additions are timed.")] = True,
    contenders: Annotated[
        str, typer.Option(help="Others to compare with, with commas: dict, lambdas, rule-engine, zen-engine, cel.")
    ] = "",
    contender_rules: Annotated[int, typer.Option(help="Rules in the comparison with these.", min=1)] = 10_000,
    contender_events: Annotated[int, typer.Option(help="Events in the comparison with these.", min=1)] = 100,
    resume: Annotated[bool, typer.Option("--resume", help="Keep what the file has, and measure the rest.")] = False,
) -> None:
    """Measure on this machine. First everyone is checked to give the same answers; if not, nothing is measured."""
    if name == "foundation":
        _foundation(rules or 1_000_000, json_file)
        return
    from eligo_lab.bench.campaign import Wish, chosen, run_all
    from eligo_lab.bench.progress import Progress
    from eligo_lab.bench.verify import DisagreementError

    if not 0 < scale <= 1:
        raise typer.BadParameter(f"a scale is above 0 and at most 1, not {scale:g}")
    wish = Wish(
        scale=scale,
        rules=rules,
        events=events,
        indexes=_names(index),
        evaluators=_names(evaluator),
        parameters=_parameters(set_values or []),
        absent=_absent(absent),
        seed=seed,
        repeat=repeat,
        inserts=200 if inserts else 0,
        outside=_outside(contenders),
        outside_rules=contender_rules,
        outside_events=contender_events,
        options=_options(option or []),
    )
    _check_writable(json_file)
    command = shlex.join(["eligo", *sys.argv[1:]])
    try:
        with Progress() as progress:
            content = run_all(chosen(name), wish, json_file, progress, command, resume)
    except DisagreementError as error:
        say(f"eligo: {error}")
        raise typer.Exit(FINDINGS) from None
    _show(content)


def list_experiments() -> None:
    """List what can be measured, and what an experiment waits for."""
    from eligo_lab.bench.campaign import missing
    from eligo_lab.bench.experiments import EXPERIMENTS
    from eligo_lab.workload.base import WORKLOADS

    rows = [("foundation", "reading rules, one event, a batch, updates, a fresh process, scan", "runs")]
    for experiment in EXPERIMENTS.values():
        left_out, blocked = missing(experiment)
        state = f"needs {blocked}" if blocked else "runs"
        if left_out and not blocked:
            state += f" without {', '.join(left_out)}"
        rows.append((experiment.name, experiment.title, state))
    show_table("experiments", ("name", "what", "now"), rows)
    workloads = [(name, WORKLOADS[name].summary) for name in WORKLOADS]
    show_table("workloads", ("name", "what"), workloads)


def report(
    files: Annotated[list[Path], typer.Argument(help="Files that `eligo bench run` wrote.", exists=True)],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The Markdown page to write.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="The page with plots to write.")] = None,
) -> None:
    """Turn result files into a page of tables, and a page with plots."""
    from eligo_lab.bench.results import read

    if output is None and html is None:
        raise typer.BadParameter("name a page to write: -o FILE.md, --html FILE.html, or both")
    results: list[dict[str, Any]] = [read(file) for file in files]
    if output is not None:
        from eligo_lab.bench.report import report as page

        command = f"eligo bench report {' '.join(file.name for file in files)} -o {output}"
        output.write_text(page(results, command), encoding="utf-8")
    if html is not None:
        from eligo_lab.bench.page import page as html_page

        html.write_text(html_page(results), encoding="utf-8")


def _foundation(rules: int, json_file: Path) -> None:
    from eligo_lab.bench import foundation, results
    from eligo_lab.bench.machine import describe

    if rules < 1000:
        raise typer.BadParameter(f"foundation needs 1,000 rules or more, not {rules}")
    result = foundation.run(rules, say)
    results.write(json_file, {"name": "foundation", "machine": describe(), "result": result})


def on_spark(
    group: Annotated[str, typer.Argument(help="match, joins, compile, memory, scale or stream.")],
    json_file: Annotated[Path, typer.Option("--json", help="Where the figures go.")],
    rules: Annotated[int | None, typer.Option(help="Rules, if not as many as usual.", min=1000)] = None,
    events: Annotated[int | None, typer.Option(help="Events, if not as many as usual.", min=10_000)] = None,
    cores: Annotated[int, typer.Option(help="Cores of the local Spark.", min=1)] = 2,
) -> None:
    """Measure the pipeline on a local Spark."""
    from eligo_lab.bench import on_spark as measuring
    from eligo_lab.bench import results
    from eligo_lab.bench.machine import describe

    _check_writable(json_file)
    result = measuring.run(group, rules, events, cores, say)
    command = shlex.join(["eligo", *sys.argv[1:]])
    results.write(json_file, {"name": f"spark/{group}", "machine": describe(), "command": command, "result": result})
    show_table(f"spark/{group}", ("what", "figure"), [(name, f"{value:,.6g}") for name, value in result.items()])


def _show(content: dict[str, Any]) -> None:
    from eligo_lab.bench.verdicts import verdict

    for experiment in content["experiments"]:
        for title, columns, rows in verdict(experiment):
            # Where there is no terminal, a table has no heading of its own.
            show_table(title, columns, rows if sys.stdout.isatty() else [columns, *rows])


def _names(given: str | None) -> tuple[str, ...] | None:
    return tuple(name.strip() for name in given.split(",") if name.strip()) or None if given else None


def _parameters(given: list[str]) -> dict[str, Any]:
    pairs = [one.partition("=") for one in given]
    for name, sign, value in pairs:
        if not sign or not name or not value:
            raise typer.BadParameter(f"--set takes name=value, not {name + sign + value!r}")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _options(given: list[str]) -> dict[str, Any]:
    """Options of any index and evaluator; whether one of those that are compared has it, a run says."""
    from eligo.evaluate.registry import EVALUATORS
    from eligo.index.registry import INDEXES
    from eligo.options import Configurable, from_texts

    everyone: list[Configurable] = [*INDEXES.all().values(), *EVALUATORS.all().values()]
    return dict(from_texts(given, everyone))


def _absent(given: str | None) -> str | None:
    if given not in (None, "fails", "classical"):
        raise typer.BadParameter(f"--absent is fails or classical, not {given!r}")
    return given


def _outside(given: str) -> tuple[str, ...]:
    from eligo_lab.bench.contenders.outside import OUTSIDE

    names = _names(given) or ()
    for name in names:
        if name not in OUTSIDE:
            raise typer.BadParameter(f"there is no contender {name!r}; there are: {', '.join(OUTSIDE)}")
    return names


def _check_writable(json_file: Path) -> None:
    """Said before an hour of measuring, not after it."""
    if json_file.is_dir() or not json_file.absolute().parent.is_dir():
        raise typer.BadParameter(f"{json_file} cannot be written: give a file in a folder that is there")


app.command("run")(guarded(run))
app.command("spark")(guarded(on_spark))
app.command("list")(guarded(list_experiments))
app.command("report")(guarded(report))
