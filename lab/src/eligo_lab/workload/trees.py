"""`trees`: the complex expressions of the paper on complex expressions §5.1, contracts of display advertising.

    shape         an AND at depth 0, ORs at depth 1, ANDs at depth 2 …; a node without children is a conjunction
    conjunctions  size by c_i, attributes by a_i without replacement, targets by p_attribute: see audience.py
    events        visits to a page, from the same statistics; each names what is known about the visitor

Depth counts the edges between the root and a leaf: at depth 1 a rule is an AND of conjunctions, at depth 2 an AND of
ORs of them. The paper's distribution of children has no 0, so that every leaf lies at the maximum depth; a
distribution with a share for 0 gives leaves between the two depths. Nodes with one child stay as they were drawn.

Selectivity is adjusted as in §5.5, by rules that match none of the events. The paper drew candidates until enough of
them failed; where most rules match something that would take forever, so that here only the leaves which have to fail
are drawn that way, and all else is as in any rule.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from eligo.compile.compiled import I64
from eligo.errors import OptionError
from eligo_lab.workload.audience import F64, SIZES, Statistics, added_up, statistics
from eligo_lab.workload.base import Events, Rules, Seed, Workload, workload
from eligo_lab.workload.blocks import BLOCK
from eligo_lab.workload.contracts import Contracts, Maker
from eligo_lab.workload.draft import EQUAL, IN, NOT_IN, UNEQUAL, Draft
from eligo_lab.workload.events import EventDraft

_MEASURED = 2_000  # events that the natural selectivity is measured on, as many as the paper has
_MOST_LEAVES = 4_096  # conjunctions that a rule may have on average
_MOST_CONJUNCTIONS = 2**28  # of all rules together: past this, memory is the matter
_PILOT = 2_000  # rules that tell how many natural ones an asked selectivity needs


@dataclass(frozen=True)
class _World:
    """The distributions, and the paths that rules are ANDed with."""

    maker: Maker

    @property
    def chosen(self) -> dict[str, object]:
        return {}

    def rules(self, rng: np.random.Generator, first: int, n: int) -> Draft:
        maker = copy(self.maker)
        maker.rng = rng
        return _draft(maker.contracts(n).tidied(), maker.known)

    def events(self, rng: np.random.Generator, first: int, n: int) -> EventDraft:
        known = self.maker.known
        visits = _visits(rng, known, n).T
        event, attribute = np.nonzero(visits >= 0)
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.bincount(event, minlength=n))))
        value = known.operand[visits[event, attribute]]
        return EventDraft(known.names, offsets, attribute.astype(np.int32), value, known.textual, known.strings)


def _world(rng: np.random.Generator, rules: int, selectivity: float | None, **asked: Any) -> _World:
    if selectivity is not None:
        raise OptionError(
            f"trees: selectivity={selectivity} is reached by looking at all rules and events together, which blocks "
            "are not; leave it out, or make the workload as a whole"
        )
    return _World(_maker(rng, min(rules, BLOCK), **asked))


@workload(
    "AND/OR trees over conjunctions, as contracts of display advertising (the paper on complex expressions §5.1)",
    blocks=_world,
)
def trees(
    rules: Rules = 100_000,
    events: Events = 2_000,
    min_depth: Annotated[int, "no leaf lies nearer to the root"] = 1,
    max_depth: Annotated[int, "no leaf lies further from the root; 0 makes single conjunctions"] = 2,
    children: Annotated[str, "how many children a node has, as number:probability"] = "1:0.05, 2:0.7, 3:0.2, 4:0.05",
    sizes: Annotated[str, "how many predicates a conjunction has, as number:probability"] = ", ".join(
        f"{size}:{share}" for size, share in SIZES.items()
    ),
    selectivity: Annotated[float | None, "share of the rules that an event matches; none: as it comes"] = None,
    paths: Annotated[int, "common expressions of publishers' paths that rules are ANDed with"] = 0,
    hops: Annotated[int, "how many of these a rule is ANDed with"] = 1,
    shared: Annotated[float, "share of the rules that are ANDed with some"] = 1.0,
    zipf: Annotated[float, "how unevenly often the paths are used: rank^-zipf"] = 1.0,
    seed: Seed = 1,
) -> Workload:
    """Rules and visits; `measured` has the selectivity, over all events if one is asked, else over the first 2,000."""
    parameters = dict(locals())
    if selectivity is not None and not 0 < selectivity <= 1:
        raise OptionError(f"trees: selectivity={selectivity} is no share of the rules; give one above 0 and up to 1")

    rng = np.random.default_rng(seed)
    maker = _maker(rng, rules, min_depth, max_depth, children, sizes, paths, hops, shared, zipf)
    known = maker.known
    visits = _visits(rng, known, events)
    if selectivity is None:
        contracts = maker.contracts(rules)
        seen = min(events, _MEASURED)
        matched = int(maker.matches(contracts, visits[:, :seen]).sum())
        reached = matched / (rules * seen)
    else:
        contracts, reached = _adjusted(maker, visits, rules, selectivity)
    draft = _draft(contracts.tidied(), known)
    named = draft.tree[draft.tree >= 0]
    conjunctions, predicates = len(named), int(np.diff(draft.conjunction_offsets)[named].sum())
    measured = {
        "selectivity": reached,
        "conjunctions": conjunctions / rules,
        "rule_size": predicates / rules,
        "conjunction_size": predicates / conjunctions,
        "dimensions": float(len(known.names)),
        "event_size": float(np.count_nonzero(visits >= 0)) / events,
    }
    return Workload("trees", parameters, draft, _table(visits, known), measured)


def _maker(
    rng: np.random.Generator,
    rules: int,
    min_depth: int,
    max_depth: int,
    children: str,
    sizes: str,
    paths: int,
    hops: int,
    shared: float,
    zipf: float,
    **_: object,
) -> Maker:
    """What draws the rules, its paths drawn; parameters that make no sense are refused."""
    child_shares = _distribution("children", children, 0)
    size_shares = _distribution("sizes", sizes, 1)
    known = statistics()
    if len(size_shares) - 1 > len(known.names):
        raise OptionError(
            f"trees: sizes={sizes!r} asks for conjunctions of {len(size_shares) - 1} predicates on as many attributes, "
            f"and there are {len(known.names)}"
        )
    _check_depths(min_depth, max_depth, child_shares, rules)
    _check_paths(paths, hops, shared, zipf)
    maker = Maker(rng, known, min_depth, max_depth, added_up(child_shares), added_up(size_shares))
    maker.pave(paths, hops, shared, zipf)
    return maker


def _adjusted(maker: Maker, visits: I64, rules: int, asked: float) -> tuple[Contracts, float]:
    """Rules of which an event matches the share asked: as many natural ones as that takes, the rest never match."""
    events = visits.shape[1]
    wanted = asked * rules * events
    pilot = maker.matches(maker.contracts(min(rules, _PILOT)), visits)
    needed = 1.1 * wanted / max(1.0, float(pilot.mean())) + 100
    natural = maker.contracts(int(min(rules, needed)))
    matches = maker.matches(natural, visits)
    chosen = _adding_up_to(matches, wanted)
    reached = float(matches[chosen].sum()) / (rules * events)
    if abs(reached - asked) > 0.1 * asked:
        least = float(matches[matches > 0].min(initial=events)) / (rules * events)
        most = float(matches.mean()) / events
        raise OptionError(
            f"trees: selectivity={asked} cannot be had with {rules} rules and {events} events of this depth: about "
            f"{least:.2g} to {most:.2g} can (rules as drawn match {most:.2g} of the events, and adding others that "
            "never match only lowers it); change max_depth (even depths match more), sizes, or the number of rules"
        )
    contracts = maker.joined(natural.taken(chosen), maker.failing(rules - len(chosen), visits))
    return contracts.taken(maker.rng.permutation(rules)), reached


def _adding_up_to(matches: I64, wanted: float) -> I64:
    """Rules whose matches add up to nearly that many: as they come, and at the end those that fill the gap best."""
    sums = np.cumsum(matches)
    first = int(np.searchsorted(sums, wanted, side="right"))
    chosen = list(range(first))
    gap = wanted - (float(sums[first - 1]) if first else 0.0)
    rest = first + np.argsort(-matches[first:], kind="stable")
    for rule in rest.tolist():
        if 0 < matches[rule] <= gap:
            chosen.append(rule)
            gap -= float(matches[rule])
    return np.array(chosen, np.int64)


def _visits(rng: np.random.Generator, known: Statistics, events: int) -> I64:
    """values[a, e]: the number of event e's value of attribute a, -1 where it is not known."""
    values = np.empty((len(known.names), events), np.int64)
    for a in range(len(known.names)):
        first, stop = known.value_offsets[a], known.value_offsets[a + 1]
        drawn = first + np.searchsorted(known.value_cumulative[first:stop], rng.random(events), side="right")
        values[a] = np.where(rng.random(events) < known.known[a], drawn, -1)
    return values


def _table(visits: I64, known: Statistics) -> pa.Table:
    columns = {}
    strings = pa.array(known.strings)
    for a, name in enumerate(known.names):
        missing = visits[a] < 0
        operand = known.operand[np.where(missing, 0, visits[a])]
        numbers = pa.array(operand, pa.int64(), mask=missing)
        columns[name] = strings.take(numbers) if known.textual[a] else numbers
    return pa.table(columns)


def _draft(contracts: Contracts, known: Statistics) -> Draft:
    leaves = contracts.leaves
    one = np.diff(leaves.operand_offsets) == 1
    operator = np.where(leaves.excludes, np.where(one, UNEQUAL, NOT_IN), np.where(one, EQUAL, IN)).astype(np.uint8)
    return Draft(
        known.names,
        known.strings,
        known.textual,
        leaves.attribute,
        operator,
        leaves.operand_offsets,
        known.operand[leaves.operand],
        leaves.conjunction_offsets,
        contracts.trees.offsets,
        contracts.trees.tokens,
    )


def _distribution(name: str, text: str, least: int) -> F64:
    """Probabilities by number, from text such as "1:0.3, 2:0.7"."""
    shares: dict[int, float] = {}
    for part in text.split(","):
        number, _, share = part.partition(":")
        try:
            shares[int(number)] = float(share)
        except ValueError:
            raise OptionError(
                f"trees: {name}={text!r}: {part.strip()!r} is not number:probability, such as 2:0.7"
            ) from None
    if min(shares) < least or max(shares) > 1_000:
        raise OptionError(f"trees: {name}={text!r}: numbers go from {least} to 1000")
    if min(shares.values()) < 0 or abs(sum(shares.values()) - 1) > 1e-6:
        raise OptionError(f"trees: {name}={text!r}: probabilities add up to {sum(shares.values()):g}, not to 1")
    return np.array([shares.get(number, 0.0) for number in range(max(shares) + 1)])


def _check_depths(min_depth: int, max_depth: int, children: F64, rules: int) -> None:
    if not 0 <= min_depth <= max_depth:
        raise OptionError(
            f"trees: min_depth={min_depth} and max_depth={max_depth}: depths are 0 or more, and the minimum is not "
            "above the maximum"
        )
    if children[0] >= 1 and min_depth > 0:
        raise OptionError(
            f"trees: children are all 0 and min_depth={min_depth}: a tree of that depth needs nodes with children"
        )
    mean = float(np.arange(len(children)) @ children)
    leaves = 1.0
    for depth in range(max_depth - 1, -1, -1):
        leaves = leaves * mean / (1 - children[0]) if depth < min_depth else leaves * mean + children[0]
    if leaves > _MOST_LEAVES or leaves * rules > _MOST_CONJUNCTIONS:
        raise OptionError(
            f"trees: max_depth={max_depth} with {mean:g} children a node makes {leaves:,.0f} conjunctions a rule and "
            f"{leaves * rules:,.0f} in all; at most {_MOST_LEAVES:,} a rule and {_MOST_CONJUNCTIONS:,} in all are made"
        )


def _check_paths(paths: int, hops: int, shared: float, zipf: float) -> None:
    if paths < 0 or zipf < 0 or not 0 <= shared <= 1:
        raise OptionError(
            f"trees: paths={paths}, zipf={zipf}, shared={shared}: paths and zipf are 0 or more, shared is from 0 to 1"
        )
    if paths and not 1 <= hops <= paths:
        raise OptionError(f"trees: hops={hops}: a rule has from 1 to paths={paths} different common expressions")
