"""Which columns of a DataFrame the rules look at.

The dotted attribute `user.age` is the column of that very name, or else the field `age` of the struct (or the key `age`
of the map, or what is at `age` in the Variant) `user`. The attribute `user` itself is an object, of which rules see
only whether it is there: it is sent as a struct without fields (`arrow_types.py`). A Variant is sent as a whole, once,
and opened in the workers, because its types are known only there. An attribute that no rule can be asked about is found
here, by the types alone; the rules that look at it are set aside (`set_aside.py`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

Path = tuple[str, ...]  # a column, then fields or keys inside it
_FILLER: Final = "eligo_row"


class Located(NamedTuple):
    """Where the attributes are that rules look at."""

    paths: dict[str, tuple[Path, ...]]  # of those that the DataFrame has; several only where the keys of a map decide
    unusable: dict[str, str]  # attribute → why no rule can be asked about it, as the predicate of a sentence


def locate(schema: StructType, attributes: Iterable[str], multi: frozenset[str]) -> Located:
    """Where the attributes are in a DataFrame; those that it lacks are not mentioned."""
    found = Located({}, {})
    for attribute in attributes:
        ways = dict(_paths(schema, attribute))
        reasons = [_ambiguity(schema, tuple(ways)), *(_reason(attribute, kind, multi) for kind in ways.values())]
        if any(reasons):
            found.unusable[attribute] = next(filter(None, reasons))
        elif ways:
            found.paths[attribute] = tuple(ways)
    return found


def _ambiguity(schema: StructType, paths: tuple[Path, ...]) -> str:
    """Why it is not clear which of the paths is meant, if so.

    `m.a.b` may be the key `a.b` of the map `m`, or the key `b` of a map at its key `a`. Both are sent, as an event has
    the one or the other; one that has both is refused, as everywhere.
    """
    from pyspark.sql.types import MapType

    def parting(one: Path, other: Path) -> Path:
        return one[: next(i for i, both in enumerate(zip(one, other, strict=False)) if both[0] != both[1])]

    if any(not isinstance(type_at(schema, parting(*pair)), MapType) for pair in combinations(paths, 2)):
        return f"is there more than once, as {' and '.join(' → '.join(path) for path in paths)}: drop one"
    twice = [path[0] for path in paths if schema.names.count(path[0]) > 1]
    return f"is in two columns of the name {twice[0]!r}: rename or drop one" if twice else ""


class Sent(NamedTuple):
    """The columns that go to the workers, and where there the attributes are."""

    paths: tuple[Path, ...]  # c0 … cn, those to keep first; () stands for a column of nothing
    types: tuple[
        DataType | None, ...
    ]  # of these columns; of an object that is not kept a struct without fields, None of nothing
    attributes: tuple[tuple[str, int], ...]  # the attribute and the number of its column
    variants: tuple[tuple[str, int, Path], ...]  # the attribute, the number of a Variant, and the keys inside it

    @property
    def names(self) -> frozenset[str]:
        return frozenset({*dict(self.attributes), *(name for name, _, _ in self.variants)})

    def columns(self) -> list[Column]:
        """The expressions that make these columns."""
        return [column_of(path, kind) for path, kind in zip(self.paths, self.types, strict=True)]


def sent_columns(schema: StructType, kept: Iterable[str], attributes: Mapping[str, Iterable[Path]]) -> Sent:
    """Chooses the columns to send, each once: the kept ones, then those of the attributes."""
    places: dict[Path, int] = {}
    for name in kept:
        places.setdefault((name,), len(places))
    types = [type_at(schema, path) for path in places]
    plain, variants = [], []
    for name, path in ((name, path) for name, paths in attributes.items() for path in paths):
        depth = variant_depth(schema, path)
        number = places.setdefault(path[:depth], len(places))
        if depth is None:
            plain.append((name, number))
        else:
            variants.append((name, number, path[depth:]))
    if not attributes:  # a batch without columns has no rows, and `x is null` holds for each row
        plain.append((_FILLER, places.setdefault((), len(places))))
    types += [attribute_type(schema, path) for path in list(places)[len(types) :]]
    return Sent(tuple(places), tuple(types), tuple(plain), tuple(variants))


def variant_depth(schema: StructType, path: Path) -> int | None:
    """Returns how many names of a path lead to a Variant; None if it passes none."""
    from pyspark.sql.types import VariantType

    for depth in range(1, len(path) + 1):
        if isinstance(type_at(schema, path[:depth]), VariantType):
            return depth
    return None


def leaves_of(schema: StructType) -> dict[str, Path]:
    """Every value that a rule could look at, by the attribute's name; the keys of maps and Variants are not known."""
    found: dict[str, Path] = {}
    twice: set[str] = set()
    for path in _leaves(schema, ()):
        name = ".".join(path)
        if name in found or schema.names.count(path[0]) > 1:
            twice.add(name)
        found[name] = path
    return {name: path for name, path in found.items() if name not in twice}


def _leaves(kind: StructType, before: Path) -> Iterator[Path]:
    from pyspark.sql.types import StructType, VariantType

    for field in kind.fields:
        path = (*before, field.name)
        if not isinstance(field.dataType, VariantType) and not _reason("", field.dataType, frozenset({""})):
            yield path
        if isinstance(field.dataType, StructType):
            yield from _leaves(field.dataType, path)


def column_of(path: Path, kind: DataType | None) -> Column:
    """The expression that finds what is there, as it is sent."""
    from pyspark.sql.functions import col, lit, struct, when

    if not path:
        return lit(True)
    column = col(quoted(path[0]))
    for name in path[1:]:
        column = column.getItem(name)
    return when(column.isNotNull(), struct()) if is_bare(kind) else column


def attribute_type(schema: StructType, path: Path) -> DataType | None:
    """The type of what rules see of a column: of objects only that they are present.

    That is so of an array of structs or maps too, because an object among several values is one that nothing names.
    """
    from pyspark.sql.types import ArrayType, MapType, StructType

    kind = type_at(schema, path)
    value = kind.elementType if isinstance(kind, ArrayType) else kind
    return StructType() if isinstance(value, StructType | MapType) else kind


def is_bare(kind: DataType | None) -> bool:
    """Whether this is the type of objects on their way: a struct without fields."""
    from pyspark.sql.types import StructType

    return isinstance(kind, StructType) and not kind.fields


def _reason(attribute: str, kind: DataType, multi: frozenset[str]) -> str:
    """Why a column of this type cannot be asked about; nothing if it can."""
    from pyspark.sql import types

    if isinstance(kind, types.VariantType):
        return ""
    value = kind.elementType if isinstance(kind, types.ArrayType) else kind
    what = f"is a column of type {kind.simpleString()}"
    if not isinstance(value, types.StructType | types.MapType) and not is_comparable(value):
        return f"{what}, and rules compare numbers, strings, Booleans, dates and timestamps: cast it"
    if isinstance(kind, types.ArrayType) and attribute not in multi:
        return (
            f"{what} but single-valued in the rules: declare it with multi=[{attribute!r}] when they are compiled, or "
            "give one value"
        )
    return ""


def unusable_type(kind: DataType) -> str:
    """What is wrong with such a column of documents, and the remedy; nothing if there is nothing."""
    from pyspark.sql import types

    if isinstance(kind, types.VariantType):
        return "whose parts have no types: give those that rules name as columns, with variant_get"
    if isinstance(kind, types.MapType) and not isinstance(kind.keyType, types.StringType):
        return "whose keys are no strings: cast them, or drop the column"
    value = kind.elementType if isinstance(kind, types.ArrayType) else kind
    if isinstance(value, types.StructType | types.MapType) or is_comparable(value):
        return ""
    return "which no rule can compare: cast it to a number, a string, a Boolean, a date or a timestamp, or drop it"


def is_comparable(kind: DataType) -> bool:
    """Whether rules compare values of this type."""
    from pyspark.sql import types

    texts = (types.StringType, types.CharType, types.VarcharType)
    plain = (types.NumericType, types.BooleanType, types.DateType, types.TimestampType, types.TimestampNTZType)
    return isinstance(kind, (*texts, *plain, types.NullType))


def holds_lists(kind: DataType | None) -> bool:
    """Whether there is an array or a map in values of this type."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        return any(holds_lists(field.dataType) for field in kind.fields)
    return isinstance(kind, ArrayType | MapType)


def _paths(kind: DataType | None, name: str) -> Iterator[tuple[tuple[str, ...], DataType]]:
    """Every way to read a dotted name: as one name, or as a name inside a struct or map, each with the type found."""
    from pyspark.sql.types import VariantType

    if isinstance(kind, VariantType):
        yield tuple(name.split(".")), kind
        return
    whole = _member(kind, name)
    if whole is not None:
        yield (name,), whole
    dot = name.find(".")
    while dot >= 0:
        for path, leaf in _paths(_member(kind, name[:dot]), name[dot + 1 :]):
            yield (name[:dot], *path), leaf
        dot = name.find(".", dot + 1)


def type_at(schema: StructType, path: Path) -> DataType | None:
    """The type of what is there."""
    kind: DataType | None = schema if path else None
    for name in path:
        kind = _member(kind, name)
    return kind


def _member(kind: DataType | None, name: str) -> DataType | None:
    """The type of a struct's field, of a map's values, or of what is in a Variant."""
    from pyspark.sql.types import MapType, StringType, StructType, VariantType

    if isinstance(kind, StructType):
        return kind[name].dataType if name in kind.names else None
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        return kind.valueType
    return kind if isinstance(kind, VariantType) else None


def column_names(count: int) -> list[str]:
    """How columns are called on their way to the workers and back."""
    return [f"c{i}" for i in range(count)]


def quoted(name: str) -> str:
    """A column's name in backquotes: a dot in it is then no path."""
    return "`" + name.replace("`", "``") + "`"


def few(names: Iterable[str]) -> str:
    """The first six names, for a message."""
    listed = list(names)
    return ", ".join(listed[:6]) + (", …" if len(listed) > 6 else "")


def hint_of(name: str, names: Sequence[str], they_have: str) -> str:
    """What to say of a name that is not there: which one was meant, or which ones there are."""
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"{they_have} {few(names)}"
