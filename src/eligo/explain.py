"""Why a rule did or did not match: its tree as its author wrote it, each node with its own truth.

Under absent="fails" a predicate on an absent attribute fails, and so does its negation: it is neither true nor false.
So each node has two truths, its own and that of its negation. Those of leaves are asked of the reference evaluator, and
those above follow by De Morgan, each once, so that the time is linear in the rule.

Of an event with ranges the normal form is shown instead, because there the answer is made for each conjunction of it:
one value has to do for all its predicates on an attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from html import escape
from itertools import islice
from typing import Any

import numpy as np

from eligo.errors import EventError
from eligo.language.normalize import normalize
from eligo.language.ranges import Above, Below, Between, NoneOf, OneOf, Range
from eligo.language.reference import ABSENT, Moment, leaf_holds, lookup, one_value_each
from eligo.language.render import render
from eligo.language.tree import And, Constant, Node, Not, Or, Predicate, Quantified, children_of, predicates_of

Line = tuple[int, bool, str, str]

# What is printed: characters of a value, values of a list, characters of a predicate, children of one node that hold
# and as many that do not, and levels that are indented.
_VALUE, _LISTED, _PREDICATE, _CHILDREN, _INDENTED = 60, 20, 200, 20, 30


class Explanation:
    """Why a rule matches or not. `print` it; `matched` is the answer, `lines` the tree as (depth, held, what, why)."""

    def __init__(self, rule: object, matched: bool, lines: list[Line]) -> None:
        self.rule = rule
        self.matched = matched
        self.lines = lines

    def __bool__(self) -> bool:
        return self.matched

    def __str__(self) -> str:
        return "\n".join([f"{self.rule} {'matches' if self.matched else 'does not match'}", *_printed(self.lines)])

    def to_dict(self) -> dict[str, Any]:
        """Returns the answer and the whole tree, fit for JSON: a node has `held`, `what`, `why` and `children`."""
        root: dict[str, Any] = {}
        path: list[dict[str, Any]] = []  # from the root to the node before
        for depth, held, what, why in self.lines:
            node = {"held": held, "what": what, "why": why, "children": []}
            del path[depth - 1 :]
            if path:
                path[-1]["children"].append(node)
            else:
                root = node
            path.append(node)
        return {"rule": self.rule, "matched": self.matched, "tree": root}

    def _repr_html_(self) -> str:
        """Returns what a notebook shows: the lines of `print`, those that hold in green."""
        title, *lines = str(self).split("\n")
        shown = [f"<b>{escape(title)}</b>"]
        for line in lines:
            colour = {"✓": "#1a7f37", "✗": "#b42318"}.get(line.lstrip()[:1], "inherit")
            shown.append(f'<span style="color: {colour}">{escape(line)}</span>')
        return f'<pre style="line-height: 1.35">{"<br>".join(shown)}</pre>'

    def __repr__(self) -> str:
        return f"Explanation({self.rule!r}, matched={self.matched})"


def explain(
    rule: object,
    root: Node,
    event: Mapping[str, Any],
    absent: str,
    multi: Iterable[str],
    asked: Callable[[Quantified], tuple[bool, str]] | None = None,
) -> Explanation:
    """Explains a rule by its tree with the truth of each node; that of the root is the answer. `asked` gives the truth
    of a quantifier, and why. Raises an `EventError` if the event is no mapping.
    """
    if not isinstance(event, Mapping):
        raise EventError(f"an event is a mapping from attribute to value, not {type(event).__name__}: {_show(event)}")
    several = frozenset(multi)
    names = {predicate.attribute for predicate in predicates_of(root)}
    values = {name: lookup(event, name) for name in names}
    if any(isinstance(value, Range) for value in values.values()):
        root = normalize(root, multi=several, absent=absent)

    # The nodes in the order of writing, each with its depth, its parent, and whether it stands below a NOT.
    nodes: list[tuple[Node, int, int, bool]] = []
    todo = [(root, 1, -1, False)]
    while todo:
        node, depth, parent, below_not = todo.pop()
        here = len(nodes)
        nodes.append((node, depth, parent, below_not))
        below_not = below_not or isinstance(node, Not)
        todo.extend((child, depth + 1, here, below_not) for child in reversed(children_of(node)))

    # Of each node: whether it holds, whether its negation does, and how many children do either. Children come first.
    holds, fails = [False] * len(nodes), [False] * len(nodes)
    holding, failing = [0] * len(nodes), [0] * len(nodes)
    reasons: dict[int, str] = {}
    for i in range(len(nodes) - 1, -1, -1):
        node, _, parent, _ = nodes[i]
        children = len(children_of(node))
        if isinstance(node, And):
            holds[i] = holding[i] == children and one_value_each(node.children, event, True)
            fails[i] = failing[i] > 0
        elif isinstance(node, Or):
            holds[i], fails[i] = holding[i] > 0, failing[i] == children
        elif isinstance(node, Not):
            holds[i], fails[i] = failing[i] > 0, holding[i] > 0
        elif isinstance(node, Quantified):
            assert asked is not None
            holds[i], reasons[i] = asked(node)
            fails[i] = not holds[i]
        else:
            holds[i] = leaf_holds(node, True, event, absent, several)
            fails[i] = leaf_holds(node, False, event, absent, several)
        if parent >= 0:
            holding[parent] += holds[i]
            failing[parent] += fails[i]

    lines: list[Line] = []
    for i, (node, depth, _, below_not) in enumerate(nodes):
        undecided = not holds[i] and not fails[i]
        if isinstance(node, Not):
            what, why = "not", "what it negates is neither true nor false" if undecided else ""
        elif isinstance(node, (And, Or)):
            children = len(node.children)
            neither = children - holding[i] - failing[i]
            what = "all of" if isinstance(node, And) else "any of"
            why = f"{holding[i]:,} of {children:,} hold"
            why += (
                f", {neither:,} {'is' if neither == 1 else 'are'} neither true nor false"
                if below_not and neither
                else ""
            )
        else:
            what, why = _leaf_text(node), reasons[i] if i in reasons else _why(node, values)
            why += ", so this is neither true nor false" if below_not and undecided else ""
        lines.append((depth, holds[i], what, why))
    return Explanation(rule, holds[0], lines)


def _printed(lines: list[Line]) -> Iterator[str]:
    """Yields the lines as text; of the many children of one node only the first that hold and the first that do not."""
    levels: list[tuple[list[int], list[int]]] = []  # of each open node: children printed and left out, by their truth
    hidden = 0  # the depth of a child that was left out, and with it what is below it
    for depth, held, what, why in lines:
        if hidden and depth > hidden:
            continue
        hidden = 0
        yield from _left_out(levels, depth)
        if len(levels) < depth:
            levels.append(([0, 0], [0, 0]))
        printed, left_out = levels[depth - 1]
        if printed[held] == _CHILDREN:
            left_out[held] += 1
            hidden = depth
            continue
        printed[held] += 1
        yield f"{_indent(depth)}{'✓' if held else '✗'} {what}{f'   ({why})' if why else ''}"
    yield from _left_out(levels, 0)


def _left_out(levels: list[tuple[list[int], list[int]]], depth: int) -> Iterator[str]:
    """Closes the levels below a depth. Yields a line for each that was not printed whole, which says so."""
    while len(levels) > depth:
        _, (failed, held) = levels.pop()
        if failed or held:
            yield f"{_indent(len(levels) + 1)}… {held:,} more that hold, {failed:,} more that do not"


def _indent(depth: int) -> str:
    """Returns two blanks a level, deep down the level as a number: blanks would be most of a deep rule's text."""
    return "  " * depth if depth <= _INDENTED else "  " * _INDENTED + f"[level {depth:,}] "


def _leaf_text(node: Node) -> str:
    if isinstance(node, Predicate) and len(node.values) > _LISTED:
        first = Predicate(node.attribute, node.operator, node.values[:_LISTED], node.negated)
        return f"{_cut(render(first)[:-1], _PREDICATE)}, … {len(node.values) - _LISTED:,} more)"
    return _cut(render(node), _PREDICATE)


def _why(node: Node, values: Mapping[str, Any]) -> str:
    if isinstance(node, Constant):
        return ""
    if not isinstance(node, Predicate):
        return "over the documents seen before"
    value = values[node.attribute]
    return f"{_cut(node.attribute, _VALUE)} is {'absent' if value is ABSENT else _show(value)}"


def _show(value: object) -> str:
    """Returns a value of an event as text, times as people write them; without an offset they are UTC."""
    if isinstance(value, Moment):
        return str(np.datetime64(int(value), "us")).replace("T", " ")
    if isinstance(value, datetime):
        return str(value if value.utcoffset() else value.replace(tzinfo=None))
    if isinstance(value, date | Decimal):
        return str(value)
    if isinstance(value, list | tuple | set | frozenset):
        shown = ", ".join(_show(one) for one in islice(value, _LISTED + 1))
        return (
            f"[{_cut(shown, _VALUE)}]" if len(value) <= _LISTED else f"[{_cut(shown, _VALUE)}] ({len(value):,} values)"
        )
    if isinstance(value, Range):
        return _cut(_shown_range(value), _VALUE)
    return _cut(repr(value), _VALUE)


def _shown_range(value: Range) -> str:
    if isinstance(value, Between):
        inside = f"{_show(value.low)}, {_show(value.high)}"
    elif isinstance(value, Below | Above):
        inside = _show(value.value) + (", inclusive=True" if value.inclusive else "")
    else:
        assert isinstance(value, OneOf | NoneOf)
        inside = ", ".join(_show(one) for one in value.values[: _LISTED + 1])
    return f"{type(value).__name__}({inside})"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
