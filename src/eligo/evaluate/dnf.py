"""`dnf`: rules expanded into an OR of conjunctions (the paper on complex expressions §5.2, "DNF expansion").

    (A or B) and C and (D or E)      A C D  or  A C E  or  B C D  or  B C E

A term is one choice of leaves: of an OR one child, of an AND all of them. Its conjunction is the union of their
predicates, and the index finds it as any other. Each term completes its rule alone (leaves.py), so the kernels of
`interval` evaluate the terms without covering anything. What this costs is that terms multiply.

    token t    terms[t] of its subtree: 1 for a leaf, the sum of its children for an OR, their product for an AND
               term i of t: for an OR of that child in whose range i falls, for an AND the digits of i, one a child
    after[t]   the token behind t's subtree

Predicates on one attribute stand side by side in a term and are not intersected. An event's value may be an unknown one
of a range, and then a conjunction asks for each attribute for one value that satisfies all of its predicates there, but
two conjunctions of a rule may be met by two values. `(a < 5 or b = 1) and (a > 7 or c = 1)` holds for a between 1 and
10; a term with the empty intersection of `a < 5` and `a > 7` would not. Indexes ask every predicate by itself, so that
side by side the two say what the tree says, whatever the event. For the same reason no term is dropped as impossible.

Equal terms of a rule are kept once. Where a rule has at most 64 terms, one whose predicates are all in another absorbs
that other.

The bound is `Limits.terms`. So that few terms of very many predicates cannot fill the memory, every 64 predicates of
all terms together count for a term at least. A rule past the bound is refused when it is added or, by the user's
choice, stays a tree, whose leaves are labelled as `interval` does it. A rule that grows past it later, because another
one makes an attribute multi-valued, stays a tree in either case: it was accepted, so it is too late for an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I32, I64, Compiled, first_equal_slice, unique
from eligo.errors import LimitError
from eligo.evaluate.interval import Interval
from eligo.jit import inline, kernel
from eligo.language.limits import DEFAULT_LIMITS, exceeded
from eligo.language.tree import And, Constant, Node, Or, Predicate
from eligo.options import Option

PREDICATES = 64  # of all terms together, for each term that the bound allows
FEW = 64  # terms of a rule that are compared pair by pair
MANY = 10**18  # where counting stops


class Dnf(Interval):
    """Evaluator of terms that complete their rule alone; see the top of this file."""

    name = "dnf"
    has_trees = False
    summary = "rules expanded to an OR of conjunctions, up to limits.terms of them"
    bounds = ("terms",)
    options: ClassVar[Mapping[str, Option]] = {
        "past_terms": Option(
            "refuse",
            "a rule of more than limits.terms terms is refused, or left to interval",
            choices=("refuse", "interval"),
        )
    }

    @classmethod
    def check(cls, root: Node, *, terms: int = DEFAULT_LIMITS.terms, past_terms: str = "refuse") -> None:
        if past_terms == "interval":
            return
        size = expanded_size(root)
        if size > terms:
            counted = "; counting stopped there" if size >= MANY else ""
            raise LimitError(
                f"{exceeded('terms', size, terms)}{counted}; "
                f"options={{'past_terms': 'interval'}} leaves such rules to interval"
            )

    @classmethod
    def doubtful(cls, compiled: Compiled, leaves: I32, **settings: Any) -> NDArray[np.bool_]:
        terms = settings.get("terms", DEFAULT_LIMITS.terms)
        if settings.get("past_terms") == "interval":
            return np.zeros(compiled.rules, np.bool_)
        size = _counted(compiled)[2]
        # A term has at most all of a rule's predicates; a flat rule has as many terms as it has conjunctions.
        most = np.where(_nested(compiled), -(-np.minimum(size, terms + 1) * leaves // PREDICATES), 0)
        return (size > terms) | (most > terms)  # type: ignore[no-any-return]

    @classmethod
    def unfit(cls, compiled: Compiled, *, terms: int = DEFAULT_LIMITS.terms, past_terms: str = "refuse") -> str:
        if past_terms == "interval":
            return ""
        size = _counted(compiled)[2]
        past = int((size > terms).sum())
        if not past:
            return ""
        return (
            f"{past:,} of {compiled.rules:,} rules have more than {terms:,} terms in disjunctive normal form, "
            f"the largest {int(size.max()):,}{' or more' if size.max() >= MANY else ''}"
        )

    @classmethod
    def arrange(
        cls,
        compiled: Compiled,
        *,
        terms: int = DEFAULT_LIMITS.terms,
        past_terms: str = "refuse",  # with either, what is past the bound here stays as it is
    ) -> Compiled:
        nested = _nested(compiled)
        if not nested.any():
            return compiled
        below, after, size, items = _counted(compiled)
        chosen = nested & (size <= terms)
        if not chosen.any():
            return compiled
        compiled = unique(compiled)  # equal predicates have one number from here on; trees keep their shape
        conjunction, conjunction_offsets, tree, tree_offsets = expand(
            compiled.tree, compiled.tree_offsets, compiled.conjunction_offsets, compiled.conjunction, below, after,
            items, chosen,
        )  # fmt: skip
        written = {
            "conjunction": conjunction, "conjunction_offsets": conjunction_offsets, "tree": tree,
            "tree_offsets": tree_offsets,
        }  # fmt: skip
        return unique(Compiled(**{**compiled.arrays(), **written}))

    def notes(self) -> dict[str, object]:
        trees = int((np.diff(self.leaves.leaf_start) > 0).sum())
        return {"rules past limits.terms, evaluated as trees": trees} if trees else {}


def expanded_size(root: Node) -> int:
    """Returns how large a rule in normal form is as a DNF, in terms: as large as its compiled tree, or a bit larger."""
    if isinstance(root, Predicate | Constant):
        return 1
    order: list[Node] = []
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        order.append(node)
        if isinstance(node, And | Or):
            stack.extend(child for child in node.children if isinstance(node, Or) or isinstance(child, And | Or))
    done: list[tuple[int, int]] = []  # terms and predicates in them; children stand behind their parents
    for node in reversed(order):
        if isinstance(node, Or):
            some = [done.pop() for _ in node.children]
            terms, items = sum(t for t, _ in some), sum(n for _, n in some)
        elif isinstance(node, And):
            nested = sum(isinstance(child, And | Or) for child in node.children)
            terms, items = 1, len(node.children) - nested
            for t, n in [done.pop() for _ in range(nested)]:
                terms, items = terms * t, items * t + n * terms
        else:
            terms, items = 1, 1
        done.append((min(terms, MANY), min(items, MANY)))
    terms, items = done[0]
    is_flat = not any(isinstance(child, Or) for child in order[1:]) and (len(order) == 1 or isinstance(root, Or))
    return terms if is_flat else max(terms, -(-items // PREDICATES))


def _nested(compiled: Compiled) -> NDArray[np.bool_]:
    """Returns for each rule whether it is neither a conjunction nor an OR of conjunctions."""
    length = np.diff(compiled.tree_offsets)
    root = np.zeros(compiled.rules, np.int64)
    root[length > 0] = compiled.tree[compiled.tree_offsets[:-1][length > 0]]
    flat = (root < 0) & (root & 1 == 1) & (length == -root // 2 + 1)
    nested: NDArray[np.bool_] = (length > 1) & ~flat
    return nested


def _counted(compiled: Compiled) -> tuple[I64, NDArray[np.int32], I64, I64]:
    """Returns terms below each token, the token behind it, each rule's size as a DNF, and predicates in its terms."""
    terms, after, items = count_terms(compiled.tree, compiled.tree_offsets, compiled.conjunction_offsets)
    starts = compiled.tree_offsets[:-1]
    some = np.diff(compiled.tree_offsets) > 0
    size = np.zeros(compiled.rules, np.int64)
    size[some] = terms[starts[some]]
    return terms, after, np.where(_nested(compiled), np.maximum(size, -(-items // PREDICATES)), size), items


@inline
def product(a, b):
    return MANY if b > 0 and a > MANY // b else a * b


@kernel
def count_terms(tree, offsets, conjunction_offsets):
    """Returns the terms below every token, the token behind its subtree, and the predicates in all terms of a rule."""
    terms, after = np.ones(len(tree), np.int64), np.empty(len(tree), np.int32)
    items = np.zeros(len(offsets) - 1, np.int64)
    longest = 0
    for r in range(len(offsets) - 1):
        longest = max(longest, offsets[r + 1] - offsets[r])
    below = np.zeros(longest, np.int64)  # predicates in the terms of each token of the rule at hand
    for r in range(len(offsets) - 1):
        first = offsets[r]
        for t in range(offsets[r + 1] - 1, first - 1, -1):  # children stand behind their parent
            c = tree[t]
            if c >= 0:
                after[t] = t + 1
                below[t - first] = conjunction_offsets[c + 1] - conjunction_offsets[c]
                continue
            child = t + 1
            count, inside = (0, 0) if c & 1 else (1, 0)
            for _ in range((-c) // 2):
                if c & 1:
                    count, inside = count + terms[child], inside + below[child - first]
                else:
                    inside = product(inside, terms[child]) + product(below[child - first], count)
                    count = product(count, terms[child])
                count, inside = min(count, MANY), min(inside, MANY)
                child = after[child]
            terms[t], after[t], below[t - first] = count, child, inside
        if offsets[r + 1] > first:
            items[r] = below[0]
    return terms, after, items


@kernel
def expand(tree, offsets, conjunction_offsets, conjunction, terms, after, items, chosen):
    """Writes the chosen rules as ORs of their terms, whose conjunctions stand behind the known ones, and copies the
    others. Returns the conjunctions, their offsets, the trees, and their offsets.
    """
    rules, known = len(offsets) - 1, len(conjunction_offsets) - 1
    tokens, wanted, room, longest, widest = 0, 0, 0, 1, 1
    for r in range(rules):
        if chosen[r]:
            tokens += 1 + terms[offsets[r]]
            wanted += terms[offsets[r]]
            room += items[r]
            longest, widest = max(longest, offsets[r + 1] - offsets[r]), max(widest, terms[offsets[r]])
        else:
            tokens += offsets[r + 1] - offsets[r]
    written, written_offsets = np.empty(tokens, np.int32), np.zeros(rules + 1, np.int64)
    found = np.empty(len(conjunction) + room, np.int32)
    for i in range(len(conjunction)):
        found[i] = conjunction[i]
    found_offsets = np.zeros(known + wanted + 1, np.int64)
    for i in range(known + 1):
        found_offsets[i] = conjunction_offsets[i]
    stack, keep = np.empty((longest, 2), np.int64), np.empty(widest, np.bool_)
    c, k = known, 0
    for r in range(rules):
        first = offsets[r]
        if not chosen[r]:
            for t in range(first, offsets[r + 1]):
                written[k] = tree[t]
                k += 1
            written_offsets[r + 1] = k
            continue
        count = terms[first]
        for i in range(count):
            found_offsets[c + i + 1] = write_term(
                tree, terms, after, conjunction_offsets, conjunction, first, i, stack, found, found_offsets[c + i]
            )
        keep_terms(found, found_offsets[c : c + count + 1], keep)
        left = 0
        for i in range(count):
            if keep[i]:
                start, stop, at = found_offsets[c + i], found_offsets[c + i + 1], found_offsets[c + left]
                for j in range(stop - start):
                    found[at + j] = found[start + j]
                left += 1
                found_offsets[c + left] = at + stop - start
        if left > 1:
            written[k] = -2 * left - 1
            k += 1
        for i in range(left):
            written[k] = c + i
            k += 1
        c += left
        written_offsets[r + 1] = k
    return found[: found_offsets[c]], found_offsets[: c + 1], written[:k], written_offsets


@inline
def write_term(tree, terms, after, starts, conjunction, root, number, stack, found, at):
    """Writes the predicates of term `number` to found[at:], ascending and each once. Returns where they end."""
    end = at
    stack[0, 0], stack[0, 1] = root, number
    waiting = 1
    while waiting > 0:
        waiting -= 1
        t, i = stack[waiting, 0], stack[waiting, 1]
        c = tree[t]
        if c >= 0:
            for j in range(starts[c], starts[c + 1]):
                found[end] = conjunction[j]
                end += 1
            continue
        child = np.int64(t + 1)
        if c & 1:
            while i >= terms[child]:
                i -= terms[child]
                child = np.int64(after[child])
            stack[waiting, 0], stack[waiting, 1] = child, i
            waiting += 1
            continue
        for _ in range((-c) // 2):
            stack[waiting, 0], stack[waiting, 1] = child, i % terms[child]
            i //= terms[child]
            waiting += 1
            child = np.int64(after[child])
    found[at:end].sort()
    kept = at
    for j in range(at, end):
        if j == at or found[j] != found[j - 1]:
            found[kept] = found[j]
            kept += 1
    return kept


@inline
def keep_terms(found, offsets, keep):
    """Writes to `keep` which of a rule's terms found[offsets[i]:offsets[i+1]] are not repeated and, if they are few,
    not absorbed by another.
    """
    count = len(offsets) - 1
    if count > FEW:
        first = first_equal_slice(found, offsets)
        for i in range(count):
            keep[i] = first[i] == i
        return
    for i in range(count):
        keep[i] = True
    for i in range(count):
        size = offsets[i + 1] - offsets[i]
        for j in range(count):
            other = offsets[j + 1] - offsets[j]
            if i == j or not keep[i] or other > size or (other == size and j > i):
                continue
            at, stop = offsets[i], offsets[i + 1]
            inside = True
            for p in range(offsets[j], offsets[j + 1]):
                while at < stop and found[at] < found[p]:
                    at += 1
                if at == stop or found[at] != found[p]:
                    inside = False
                    break
            if inside:
                keep[i] = False
