"""Rules from NDJSON, CSV and Parquet files, and the matcher of a command: made of rules, or opened from a snapshot."""

from __future__ import annotations

import difflib
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from eligo.cli.delimited import Record, records
from eligo.cli.files import Advance, InputError, Source, is_snapshot, lines, parquet_file, source
from eligo.cli.json_lines import decoded
from eligo.cli.rejects import BadRow, Rejects, for_shell
from eligo.cli.terminal import progress

if TYPE_CHECKING:
    from eligo import Matcher

COLUMNS: Final = ("id", "expression", "weight", "tags")


class RuleRow(NamedTuple):
    """A rule as it stands in the file."""

    row: int
    line: int
    id: object
    expression: object
    weight: object
    tags: object


@dataclass(frozen=True)
class RuleOptions:
    """How rules are read and compiled; a snapshot has its own answers to all but the first two."""

    format: str | None = None
    integer_ids: bool = False
    index: str = "auto"
    evaluator: str = "auto"
    absent: str = "fails"
    multi: tuple[str, ...] = ()
    options: tuple[str, ...] = ()  # of index and evaluator, as name=value


def load(path: str, options: RuleOptions, rejects: Rejects) -> Matcher:
    """The matcher of a snapshot, or of a file of rules compiled now."""
    import eligo

    if path != "-" and is_snapshot(path):
        return eligo.open(path)
    return compiled(source(path, options.format, "--rules-format"), options, rejects)


def compiled(origin: Source, options: RuleOptions, rejects: Rejects) -> Matcher:
    """A matcher of all the good rules of a file; a file without a single one is refused."""
    matcher = read_into(origin, options, rejects.add)
    if not len(matcher):
        reason = f"all {rejects.count:,} rows were rejected" if rejects.count else "there are none"
        raise InputError(f"{origin.name}: no rules: {reason}")
    return matcher


def read_into(
    origin: Source,
    options: RuleOptions,
    reject: Callable[[BadRow], None],
    watch: Callable[[RuleRow], None] = lambda row: None,
) -> Matcher:
    """A matcher of the good rules of a file. `watch` is shown every rule that has an id and an expression."""
    matcher = empty_matcher(options)
    rows, places = array("q"), array("q")

    def good(advance: Advance) -> Iterator[tuple[object, object, object, object]]:
        for given in read_rules(origin, options.integer_ids, advance):
            if isinstance(given, BadRow):
                reject(given)
            else:
                watch(given)
                rows.append(given.row)
                places.append(given.line)
                yield given[2:]

    with progress("reading rules", origin.size) as advance:
        for bad in matcher.add_many(good(advance), on_error="collect"):
            reject(BadRow(rows[bad.row], places[bad.row], for_shell(bad.message), bad.id, bad.position))
    return matcher


def empty_matcher(options: RuleOptions) -> Matcher:
    """A matcher without rules; what is wrong with its settings is the caller's input."""
    import eligo
    from eligo.engine import choose, everyone
    from eligo.options import from_texts

    try:
        values = from_texts(options.options, choose(options.index, options.evaluator), everyone())
        return eligo.Matcher(options.index, options.evaluator, options.absent, options.multi, options=values)  # type: ignore[arg-type]
    except (ValueError, TypeError) as error:
        raise InputError(str(error)) from None


def read_rules(origin: Source, integer_ids: bool, advance: Advance) -> Iterator[RuleRow | BadRow]:
    """Every row of a file of rules; one without an id or expression is a bad row."""
    if origin.format == "parquet":
        yield from _parquet(origin)
        return
    with origin.opened() as file:
        if origin.format == "csv":
            yield from _csv(origin, records(origin, file, advance), integer_ids)
            return
        for row, (line, raw) in enumerate(lines(file, advance)):
            form = decoded(raw, row, line)
            yield form if isinstance(form, BadRow) else _from_dict(row, line, form)


def _from_dict(row: int, line: int, form: dict[str, Any]) -> RuleRow | BadRow:
    if form.get("id") is None or form.get("expression") is None:
        name = "id" if form.get("id") is None else "expression"
        near = difflib.get_close_matches(name, [key for key in form if key not in COLUMNS], 1)
        hint = f"; did you mean {near[0]!r} to be it?" if near else ""
        return BadRow(row, line, f"the rule has no {name}{hint}", form.get("id"))
    return RuleRow(row, line, *(form.get(name) for name in COLUMNS))


def _csv(origin: Source, rows: Iterator[Record | BadRow], integer_ids: bool) -> Iterator[RuleRow | BadRow]:
    header = next(rows)
    assert isinstance(header, Record)
    _check_columns(origin, header.fields)
    for given in rows:
        if isinstance(given, BadRow):
            yield given
            continue
        # An empty cell is one that was not filled in.
        form: dict[str, Any] = {name: cell or None for name, cell in zip(header.fields, given.fields, strict=True)}
        made = _from_dict(given.row, given.line, form)
        if isinstance(made, RuleRow) and integer_ids:
            try:
                made = made._replace(id=int(str(made.id)))
            except ValueError:
                made = BadRow(given.row, given.line, f"the id {made.id!r} is no integer", made.id)
        yield made


def _parquet(origin: Source) -> Iterator[RuleRow | BadRow]:
    import pyarrow as pa

    file = parquet_file(origin)
    names = file.schema_arrow.names
    _check_columns(origin, names)
    row = 0
    try:
        for batch in file.iter_batches(16_384, columns=[name for name in COLUMNS if name in names]):
            for form in batch.to_pylist():
                yield _from_dict(row, -1, form)
                row += 1
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{origin.name}: damaged after row {row:,} ({error})") from None


def _check_columns(origin: Source, names: list[str]) -> None:
    if "id" not in names or "expression" not in names:
        raise InputError(f"{origin.name}: rules need the columns id and expression; there are {', '.join(names)}")
