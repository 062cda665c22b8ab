"""What a person sees: tables on a terminal and plain lines elsewhere, messages on stderr, exit codes."""

from __future__ import annotations

import functools
import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NoReturn, TypeVar

import typer

from eligo.errors import EligoError

FINDINGS: Final = 1  # finished, but something was rejected, found, or did not match
FAILED: Final = 2  # wrong usage, or an input that cannot be read
PIPE_CLOSED: Final = 141  # what a shell reports for a program that `| head` has stopped

F = TypeVar("F", bound=Callable[..., Any])


class Settings:
    """What `eligo --debug` sets before a command runs."""

    debug = False


class ClosedOutputError(EligoError, OSError):
    """Something was to be written to a standard output that was closed when the program began."""


class _ClosedOutput(io.RawIOBase):
    """Refuses the first write; what comes after it, when the program ends, goes nowhere."""

    refused = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if not self.refused:
            self.refused = True
            raise ClosedOutputError("standard output is closed, so the results cannot be written: give it a file")
        return memoryview(data).nbytes


def replace_closed_streams() -> None:
    """Put something in the place of standard streams that the caller closed, as `>&-` does; Python has None there.

    Their numbers are taken as well, lest the next file that is opened become standard output.
    """
    missing = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
    handles = [os.open(os.devnull, os.O_RDWR) for _ in missing]
    for name, handle in zip(missing, handles, strict=True):
        if name == "stdout":
            sys.stdout = io.TextIOWrapper(io.BufferedWriter(_ClosedOutput()), encoding="utf-8")
        else:
            setattr(sys, name, os.fdopen(handle, "r" if name == "stdin" else "w", closefd=False))


def run_program(program: Callable[[], None]) -> None:
    """Run a program that ends with SystemExit, and write all that it has printed."""
    replace_closed_streams()
    try:
        try:
            program()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _write_nowhere()
        raise SystemExit(PIPE_CLOSED) from None
    except OSError as error:  # what is printed cannot be written
        _write_nowhere()
        say(f"eligo: {_message(error)}")
        raise SystemExit(FAILED) from None


def _write_nowhere() -> None:
    # The interpreter flushes stdout once more at its end; let that go nowhere instead of failing.
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)


def guarded(command: F) -> F:
    """The command with its errors shown as one message and an exit code; wrong usage is typer's own affair."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            try:
                return command(*arguments, **options)
            finally:
                sys.stdout.flush()  # here, where a closed pipe is expected
        except BrokenPipeError:
            _write_nowhere()
            raise typer.Exit(PIPE_CLOSED) from None
        except Exception as error:
            if not isinstance(error, EligoError | OSError):
                raise  # neither the user's doing nor the system's, so it is shown as it is
            if Settings.debug:
                traceback.print_exc()
            fail(_message(error))

    return run  # type: ignore[return-value]


def _message(error: Exception) -> str:
    # An OSError of the system's own begins with its number, which says nothing to a person.
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def fail(message: str) -> NoReturn:
    """Say why nothing can be done, and stop."""
    say(f"eligo: {message}")
    raise typer.Exit(FAILED)


def say(message: str) -> None:
    """A line for the person, apart from the results."""
    print(message, file=sys.stderr, flush=True)


def plural(count: int, noun: str) -> str:
    """`1 rule`, `2 rules`, `10,000 rules`; `2 matches`."""
    ending = "" if count == 1 else "es" if noun.endswith(("ch", "x")) else "s"
    return f"{count:,} {noun}{ending}"


def show_figures(title: str, figures: dict[str, object]) -> None:
    """Names with their values."""
    shown = {
        name: f"{v:,}" if isinstance(v, int) and not isinstance(v, bool) else str(v) for name, v in figures.items()
    }
    if not sys.stdout.isatty():
        print("\n".join(f"{name}: {value}" for name, value in shown.items()))
        return
    show_table(title, ("", ""), list(shown.items()))


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows under a heading; without a terminal, the title and a line for each row with tabs between, for `cut`."""
    if not sys.stdout.isatty():
        print(title)
        for row in rows:
            print("\t".join(cell.replace("\n", " ") for cell in row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", show_header=any(columns))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))  # as text, because a rule may hold what rich takes for markup
    Console().print(table)


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on stderr while the block runs, moved on by the function it gets; nothing where nobody watches."""
    if not sys.stderr.isatty():
        yield lambda amount: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda amount: bar.advance(task, amount)
