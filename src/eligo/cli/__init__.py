"""The command line. Every command is a module of this package; what is heavy is imported when a command runs.

    terminal   exit codes, tables, progress        options    what several commands take
    files      formats, opening, replacing         delimited, json_lines    reading text
    rules      rules to a matcher                  events     events in slices
    results    matching and writing                rejects    rows that were refused

Other packages add commands by entry points of the group `eligo.commands`.
Commands raise typer.Exit with one of the codes of `terminal`; `guarded` turns errors into a message and a code.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import entry_points
from typing import Annotated

import typer

from eligo.cli.check import check_rules
from eligo.cli.compile import compile_rules
from eligo.cli.draw import draw_index
from eligo.cli.explain import explain_event
from eligo.cli.indexes import list_indexes
from eligo.cli.match import match_events
from eligo.cli.prove import prove_answers
from eligo.cli.stream import stream_events
from eligo.cli.terminal import Settings, guarded, run_program, say
from eligo.cli.warm import warm_cache
from eligo.errors import EligoError

app = typer.Typer(
    name="eligo",
    help="Find, out of many rules, every one that a record makes true.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help comes in half the time
    pretty_exceptions_enable=False,  # a traceback is for --debug, and then a plain one
)

for name, command in (
    ("compile", compile_rules),
    ("match", match_events),
    ("stream", stream_events),
    ("explain", explain_event),
    ("check", check_rules),
    ("indexes", list_indexes),
    ("draw", draw_index),
    ("warm", warm_cache),
    ("prove", prove_answers),
):
    app.command(name)(guarded(command))


@cache
def application() -> typer.Typer:
    """The command line with the commands of other packages: functions, or whole typer applications."""
    of = entry_points(group="eligo.commands")
    own = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
    for point in of:
        try:
            made = point.load()
            if point.name in own:
                raise EligoError("there is another one of that name")
        except Exception as error:
            say(f"the command {point.name!r} of {point.value} cannot be used: {error}")
            continue
        if isinstance(made, typer.Typer):
            app.add_typer(made, name=point.name)
        else:
            app.command(point.name)(guarded(made))
    for name in _LAB - of.names - own:
        settings = {"ignore_unknown_options": True}
        app.command(name, help="Comes with eligo-lab.", add_help_option=False, context_settings=settings)(
            guarded(_in_the_lab)
        )
    return app


_LAB = {"bench", "generate"}


def _in_the_lab(context: typer.Context, rest: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    raise EligoError(
        f"`eligo {context.info_name}` comes with another package, eligo-lab: pip install ./lab in a clone of eligo"
    )


@app.command("submit-path")
def submit_path() -> None:
    """Print the file that spark-submit takes. As in `spark-submit "$(eligo submit-path)" stream …`."""
    from importlib.util import find_spec

    spec = find_spec("eligo.cli.submit")
    print(spec.origin if spec is not None else "")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"eligo {version('eligo')}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Options before the command."""
    Settings.debug = debug


def main() -> None:
    """The program. `--debug` may stand anywhere, because it is added to a command that has just failed."""
    arguments = sys.argv[1:]
    options, rest = arguments, []
    if "--" in arguments:
        place = arguments.index("--")
        options, rest = arguments[:place], arguments[place:]
    if "--debug" in options:
        options = ["--debug", *(option for option in options if option != "--debug")]
    run_program(lambda: application()([*options, *rest]))
