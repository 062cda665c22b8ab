"""Every figure and table of the four papers' evaluations, and our own, as one table.

A line gives the name, what is on the axes, the workload with its fixed parameters, what varies, who takes part, and
what the figure shows (`experiment.py`). To add one, add a line; `eligo bench list` and the tests find it.

Where a paper's text leaves a value open, ours is chosen and said here or beside the line. The BE-Tree paper names no
exponent for its Zipf workloads, but says that an event satisfies at least one predicate of 80–90% of the rules
(§7.3.2). With 20,000 rules of `begen` that share is 10% for a uniform choice of attributes, 50% for an exponent of
1, 74% for 1.5 and 83% for 2: so it is 2. The defaults of the PS-Tree paper Table 1 are bold in print and lost in the
text: here 40% equality, Med, uniform, and otherwise what its sections say.

The rules of these two papers are single conjunctions, so what their figures call matching is our index phase; result
files have all phases.
"""

from __future__ import annotations

from typing import Any

from eligo_lab.bench.experiment import OTHERS, Experiment, Parameters, Point

CLASSIC = ("scan", "counting", "k-index", "propagation", "op-index", "gryphon")
BE = ("scan", "counting", "k-index", "gryphon", "propagation", "be-tree", "be-tree-batch")
PS = ("scan", "k-index", "propagation", "op-index", "be-tree", "pst-bloom", "pst-hash")
PST = ("pst-bloom", "pst-hash")
STAB = ("naive", "lazy", "stab-cluster", "stab-interval", "stab-hybrid", "segment-tree", "interval-tree")
TREES = ("interval", "dewey", "dnf", "walk", "scan")

K, M = 1_000, 1_000_000
ZIPF = 2.0
LAWS = (("a", "uniform", 0.0), ("b", "Zipf", ZIPF))


def begen(rules: int = M, **others: Any) -> Parameters:
    """The BE-Tree paper Table 3, the values that most of its columns share."""
    base: Parameters = {
        "rules": rules, "dimensions": 400, "cardinality": 48, "rule_size": 7, "event_size": 15, "range_size": 0.12,
        "equality": 0.3, "operators": "med", "match": 0.01,
    }  # fmt: skip
    return base | others


def dense(dimensions: int = 100, **others: Any) -> Parameters:
    """The PS-Tree paper Table 1: the dense workload; with 30,000 dimensions the sparse one."""
    base: Parameters = {
        "rules": M, "dimensions": dimensions, "cardinality": 100, "rule_size": 10, "event_size": 30, "equality": 0.4,
        "operators": "med", "match": 0.001,
    }  # fmt: skip
    return base | others


def pair(paper: str, figure: str, title: str, **line: Any) -> list[Experiment]:
    """The left graph for a uniform, the right one for a Zipf choice of attributes (the BE-Tree paper Figures 5–11)."""
    fixed = line.pop("fixed")
    letters = line.pop("letters", "ab")
    line.setdefault("measure", "index")
    return [
        Experiment(f"{paper}/{figure}{letter}", f"{title}, {law}", "begen", {**fixed, "zipf": alpha}, **line)
        for letter, (_, law, alpha) in zip(letters, LAWS, strict=True)
    ]


def one(figure: str, title: str, **line: Any) -> Experiment:
    """A graph or table of the PS-Tree paper; what shows a cost of building is without scan, which has none."""
    workload, fixed = line.pop("workload", "begen"), line.pop("fixed", dense())
    measure = line.setdefault("measure", "index")
    line.setdefault("indexes", PS[1:] if measure in ("build", "memory") else PS)
    return Experiment(f"ps-tree/{figure}", title, workload, fixed, subject=PST, **line)


def at(order: Any, *values: Any) -> dict[str, Any]:
    """The same order at several values of the axis."""
    return {f"{value:,}" if isinstance(value, int) else str(value): order for value in values}


def both(figure: str, title: str, **line: Any) -> list[Experiment]:
    """The left graph for 100, the right one for 30,000 dimensions (the PS-Tree paper Figures 6–13)."""
    orders = line.pop("orders", ({}, {}))
    line.setdefault("measure", "index")
    return [
        one(f"{figure}{letter}", f"{title}, {dimensions:,} dimensions", fixed=dense(dimensions), orders=own, **line)
        for letter, dimensions, own in zip("ab", (100, 30 * K), orders, strict=True)
    ]


SIZES = tuple(
    Point(f"{rule}/{event}", rule, {"rule_size": rule, "event_size": event})
    for rule, event in ((5, 13), (14, 24), (27, 38), (40, 53), (53, 67), (66, 81))  # the ends are the paper's
)
SELECTIVITIES = tuple(Point(f"{1 - 1 / c:.2f}", 1 - 1 / c, {"cardinality": c}) for c in (2, 3, 4, 6, 8, 10))
PROBABILITIES = (0.0001, 0.001, 0.01, 0.03, 0.05, 0.07, 0.09)
DATA_SETS = (
    Point("uniform", None, begen(M, zipf=0.0)),
    Point("Zipf", None, begen(M, zipf=ZIPF)),
    Point("authors", None, {"rules": 760 * K}, "authors"),
    Point("titles", None, {"rules": 250 * K}, "titles"),
)
CAPACITIES = {"max_cap": (5, 20, 80, 160, 320)}  # the paper's, and one more
SELDOM = tuple(Point(f"{match:.3g}%", match, {"match": match / 100}) for match in (0.1, 1, 10))

_BE_TREE = [
    Experiment(
        "be-tree/fig4", "match time by capacity of l-nodes, for several match probabilities", "begen",
        begen(events=200), "match", SELDOM, ("be-tree",), subject=("be-tree",), measure="index",
        options=CAPACITIES, across="max_cap",
    ),
    Experiment(
        "be-tree/table4", "the best capacity of l-nodes by match probability", "begen", begen(events=200), "match",
        SELDOM, ("be-tree", "be-tree-batch"), subject=("be-tree",), measure="index", options=CAPACITIES,
    ),
    Experiment("be-tree/table5", "time to build, and size", "begen", {}, "data", DATA_SETS, BE, measure="build"),
    *pair(
        "be-tree", "fig5", "match time by number of rules", fixed=begen(), vary="rules",
        values=(100 * K, 250 * K, 500 * K, 750 * K, M), indexes=BE,
    ),
    *pair(
        "be-tree", "fig6", "match time by number of dimensions", fixed=begen(), vary="dimensions",
        values=(50, 100, 200, 400, 800, 1_400), indexes=BE,
    ),
    *pair(
        "be-tree", "fig7", "match time by size of rules and events", fixed=begen(100 * K), vary="sizes", values=SIZES,
        indexes=BE,
    ),
    *pair(
        "be-tree", "fig8", "match time by cardinality", fixed=begen(100 * K), vary="cardinality",
        values=(48, 150, 1_500, 6 * K, 15 * K, 150 * K), indexes=BE,
    ),
    *pair(
        "be-tree", "fig8", "match time by size of ranges", letters="cd", fixed=begen(100 * K), vary="range_size",
        values=(0.06, 0.12, 0.25, 0.5), indexes=BE,
    ),
    *pair(
        "be-tree", "fig9", "match time by selectivity of dimensions", vary="selectivity", values=SELECTIVITIES,
        indexes=BE, fixed=begen(100 * K, operators="min", equality=1.0, match=None),
    ),
    *pair(
        "be-tree", "fig10", "match time by share of equality predicates", fixed=begen(), vary="equality",
        values=(0.2, 0.4, 0.6, 0.8, 1.0), indexes=BE,
    ),
    *[
        experiment
        for operators, letters in (("low", "ab"), ("med", "cd"), ("high", "ef"))
        for experiment in pair(
            "be-tree", "fig11", f"match time by match probability, operators {operators}", letters=letters,
            fixed=begen(operators=operators), vary="match", values=PROBABILITIES, indexes=BE,
        )
    ],
    Experiment(
        "be-tree/fig12a", "match time by number of rules, authors", "authors", {}, "rules",
        (100 * K, 250 * K, 400 * K, 550 * K, 760 * K), BE, measure="index",
    ),
    Experiment(
        "be-tree/fig12b", "match time by number of rules, titles", "titles", {}, "rules",
        (50 * K, 100 * K, 150 * K, 200 * K, 250 * K), BE, measure="index",
    ),
    *[
        Experiment(
            f"be-tree/fig13{letter}", f"match time while rules are replaced, {here} to {there} and back", "begen",
            begen(match=0.001, zipf=start, events=512), f"share of the rules that are {there}", (),
            ("be-tree", "pst-bloom", "pst-hash"), subject=("be-tree",), measure="index", method="replace",
            other={"zipf": end},
        )
        for letter, here, there, start, end in (
            ("a", "uniform", "Zipf", 0.0, ZIPF), ("b", "Zipf", "uniform", ZIPF, 0.0),
        )
    ],
    Experiment(
        "be-tree/mixed", "one update to nine matches through the matcher", "begen", begen(match=0.001, events=90 * K),
        "who works", (), ("be-tree",), measure="pause", method="mix",
    ),
    Experiment(
        "be-tree/summary", "BE-Tree beside the classic indexes", "begen", begen(), "case",
        (
            Point("uniform 1%", None, {"zipf": 0.0, "match": 0.01}),
            Point("uniform 0.1%", None, {"zipf": 0.0, "match": 0.001}),
            Point("Zipf 1%", None, {"zipf": ZIPF, "match": 0.01}),
            Point("Zipf 0.1%", None, {"zipf": ZIPF, "match": 0.001}),
        ),
        (*CLASSIC, "be-tree", "be-tree-batch"), subject=("be-tree", "be-tree-batch"), measure="index",
    ),
]  # fmt: skip

DIMENSIONS = (100, 300, K, 3 * K, 10 * K, 30 * K)
MILLIONS = (300 * K, M, 3 * M, 10 * M)  # the paper goes on to 100M, for which there is no memory here
SIX = (5, 10, 15, 20, 25, 30)
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
BLOOM, HASH = ("pst-bloom", OTHERS), ("pst-hash", OTHERS)  # the best of all
SKEWED = (HASH, ("be-tree", "op-index"), ("scan", "k-index"))  # §7.2.2, Workload Distribution
LEAST = (("propagation", OTHERS), ("pst-bloom", "be-tree"), ("pst-bloom", "op-index"))  # §7.2.3
RANKING = ("pst-bloom", "op-index", "pst-hash", "be-tree", "k-index", "propagation", "scan")  # §7.3


_PS_TREE = [
    one("fig5a", "time to build by number of rules", vary="rules", values=MILLIONS, measure="build",
        orders=at(BLOOM, *MILLIONS)),
    one("fig5b", "time to build by number of dimensions", vary="dimensions", values=DIMENSIONS, measure="build",
        indexes=(*PS[1:], "op-index-kept"), orders=at(tuple((own, "op-index-kept") for own in (*PST, "be-tree")), 100)),
    one("fig5c", "time to build by size of rules", vary="rule_size", values=SIX, measure="build"),
    one("fig5d", "time to build by share of equality predicates", vary="equality", values=SHARES, measure="build",
        orders=at(BLOOM, *SHARES)),
    *both("fig6", "match time by number of rules", vary="rules", values=MILLIONS,
          orders=(at(BLOOM, 300 * K) | at(HASH, 3 * M, 10 * M), at(BLOOM, *MILLIONS))),
    *both("fig7", "match time by Zipf exponent", vary="zipf", values=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0),
          orders=2 * (at(("op-index", "be-tree"), 0.0) | at(SKEWED, 1.0, 2.0, 3.0, 4.0, 5.0),)),
    one("fig8a", "match time by number of dimensions", vary="dimensions", values=DIMENSIONS, orders=at(BLOOM, 30 * K)),
    one("fig8b", "match time by number of dimensions, 33 rules for each", vary="dimensions",
        values=tuple(Point(f"{d:,}", d, {"dimensions": d, "rules": 100 * d // 3}) for d in DIMENSIONS),
        orders=at(BLOOM, K, 3 * K, 10 * K, 30 * K)),
    *both("fig9", "match time by cardinality", vary="cardinality", values=(3, 10, 30, 100, 300, K),
          orders=(at(HASH, 3, 10, 30, 100) | at(BLOOM, K), {})),
    *both("fig10", "match time by size of rules", vary="rule_size", values=SIX),
    *both("fig11", "match time by size of events", vary="event_size", values=(30, 42, 54, 66, 78, 90),
          orders=(at(HASH, 90), at(BLOOM, 90))),
    *both("fig12", "match time by match probability", vary="match", values=(0.001, 0.005, 0.01, 0.05, 0.1, 0.5),
          orders=2 * (at((("pst-bloom", "scan"), ("pst-hash", "scan")), 0.5),)),
    *both("fig13", "match time by share of equality predicates", vary="equality", values=SHARES,
          orders=(at(HASH, *SHARES), {})),
    one("fig14a", "memory by number of rules", vary="rules", values=MILLIONS, measure="memory",
        orders=at(LEAST, *MILLIONS)),
    one("fig14b", "memory by size of rules", vary="rule_size", values=SIX, measure="memory", orders=at(LEAST, *SIX)),
    one("fig15a", "match time on keywords", workload="keywords", fixed={"rules": 2_100 * K}, orders={"": RANKING}),
    one("fig15b", "time to build on keywords", workload="keywords", fixed={"rules": 2_100 * K}, measure="build",
        orders={"": RANKING[:-1]}),
    one("table2", "advertisements: match time, time to build, memory", workload="ads", fixed={"rules": 3 * M},
        orders={"": ("pst-hash", "pst-bloom", "be-tree", "op-index", "propagation", "scan", "k-index")},
        published={
            "be-tree": (2.26e6, 13.70e9, 393.21e6), "pst-hash": (0.24e6, 8.22e9, 759.72e6),
            "pst-bloom": (0.82e6, 7.81e9, 55.93e6), "op-index": (3.21e6, 24.92e9, 574.38e6),
            "propagation": (168.73e6, 62.43e9, 14.41e6), "k-index": (616.42e6, 140.76e9, 7.32e9),
            "scan": (435.27e6, None, None),
        }),
    Experiment(
        "ps-tree/table3", "100,000 intervals on one attribute, 100,000 points", "intervals",
        {"rules": 100 * K, "events": 100 * K}, "case",
        (Point("narrow", None, {"coverage": 5.0}), Point("wide", None, {"coverage": 0.0})),
        ("scan", "interval-tree", "segment-tree", "ps-tree"), measure="locate", method="stab", limits={"bytes": 10e6},
        published={
            "segment-tree": (6.27e6, 29.71e6, 6.86e6), "ps-tree": (0.71e6, 91.88e6, 54.13e6),
            "interval-tree": (2.52e9, 16.02e6, 1.61e6), "scan": (23.11e9, None, None),
        },
    ),
    Experiment(
        "ps-tree/summary", "PSTBloom and PSTHash beside all others", "begen", dense(), "case",
        (Point("dense", None, {"dimensions": 100}), Point("sparse", None, {"dimensions": 30 * K})),
        (*CLASSIC, "be-tree", "be-tree-batch", *PST), subject=PST, measure="index",
        orders={"dense": HASH, "sparse": BLOOM},
    ),
]  # fmt: skip

DEPTHS = tuple(Point(str(d), d, {"min_depth": 1, "max_depth": d}) for d in (1, 2, 3, 4))
SHALLOW = DEPTHS[:2]
HALF: Parameters = {"events": 2_000, "min_depth": 1, "max_depth": 2, "selectivity": 0.5}
RULES = (10 * K, 20 * K, 50 * K, 100 * K, 150 * K)
DEEP: Parameters = {"rules": 100 * K, "events": 2_000}


def trees(name: str, title: str, fixed: Parameters, vary: str, values: tuple[Any, ...], **line: Any) -> Experiment:
    """An experiment of the paper on complex expressions §5, on the index that it used."""
    return Experiment(f"complex/{name}", title, "trees", fixed, vary, values, ("k-index",), **line)


_COMPLEX = [
    trees("table2", "memory by depth", DEEP, "depth", DEPTHS, evaluators=TREES, measure="memory"),
    trees("fig7", "size of a rule as DNF by depth", {"rules": K}, "depth", DEPTHS[:3], evaluators=("dnf",),
          measure="rule"),
    trees("fig8", "match time of all evaluators by depth", DEEP, "depth", SHALLOW, evaluators=TREES),
    trees("table3", "share of the rules that match, by depth", DEEP, "depth", DEPTHS, measure="selectivity"),
    trees("fig9", "match time by depth", DEEP, "depth", SHALLOW, evaluators=TREES[:3]),
    trees("fig10", "match time by depth", DEEP, "depth", DEPTHS, evaluators=TREES[:2]),
    trees("fig11", "evaluation alone by depth", DEEP, "depth", DEPTHS, evaluators=TREES[:2], measure="evaluate"),
    trees("table4", "memory by number of rules", HALF, "rules", RULES, evaluators=TREES[:2], measure="memory"),
    trees("fig12", "match time by number of rules", HALF, "rules", RULES, evaluators=TREES[:2]),
    trees("fig13", "evaluation alone by number of rules", HALF, "rules", RULES, evaluators=TREES[:2],
          measure="evaluate"),
    trees("fig14", "evaluation alone by selectivity", {**DEEP, "max_depth": 3}, "selectivity",
          (0.01, 0.03, 0.05, 0.08, 0.11), evaluators=TREES[:2], measure="evaluate"),  # by itself depth 3 has 14%
]  # fmt: skip

FEW: Parameters = {"rules": 100 * K, "events": 500, "selectivity": 0.01}
HOPS = (
    Point("none", 0, {"paths": 0}),
    *(Point(f"{hops} of 1,000", hops, {"paths": K, "hops": hops}) for hops in (1, 2, 3, 5)),
)
EXCHANGE: Parameters = {"rules": 100 * K, "events": 500, "min_depth": 1, "max_depth": 2}
BOTH = ("interval", "shared")


def sharing(name: str, title: str, fixed: Parameters, vary: str, values: tuple[Any, ...], **line: Any) -> Experiment:
    """What one DAG of all sub-expressions saves; on an index that is not the bottleneck."""
    workload = line.pop("workload", "trees")
    line.setdefault("evaluators", BOTH)
    return Experiment(f"sharing/{name}", title, workload, fixed, vary, values, ("propagation",), **line)


_SHARING = [
    sharing("selective", "evaluation alone by depth, where 1% of the rules match", FEW, "depth", DEPTHS,
            evaluators=("interval", "dewey", "shared", "walk", "scan"), measure="evaluate"),
    sharing("none", "evaluation alone by depth, where rules share little", {"rules": 100 * K, "events": 500}, "depth",
            DEPTHS, measure="evaluate"),
    sharing("paths", "evaluation alone by edges on a campaign's path", EXCHANGE, "hops", HOPS, measure="evaluate"),
    sharing("memory", "index and labels by edges on a campaign's path", EXCHANGE, "hops", HOPS, measure="rule"),
    sharing("nested", "evaluation alone by number of rules, sub-expressions repeated by a Zipf law", {"events": 200},
            "rules", (100 * K, 300 * K, M), workload="nested", measure="evaluate"),
    Experiment("sharing/total", "all of a match, where 1% of the rules match", "trees", FEW, "depth", DEPTHS,
               ("scan", "propagation"), evaluators=("interval", "shared", "scan")),
]  # fmt: skip

PROFILES = (100, 200, 400, 600, 800, K)
OVERLAPS = (0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 0.98)
FAR_FROM_NAIVE = (OTHERS, "lazy", "naive")  # the report on profile matching §4.1.6, as what follows
BEST_AT_LOW_OVERLAP = tuple(
    (best, other)
    for best in ("stab-interval", "stab-cluster")
    for other in ("stab-hybrid", "segment-tree", "interval-tree")
)
LOW_OVERLAP = (("stab-interval", "segment-tree"), ("stab-cluster", "stab-hybrid"))
HIGH_OVERLAP = (("stab-interval", OTHERS), ("stab-hybrid", "stab-cluster"))
GROWTH = tuple(
    Point(f"{rules:,}, {overlap:.0%}", x, {"rules": rules, "overlap": overlap})
    for x, (overlap, rules) in enumerate((o, n) for o in (0.1, 0.98) for n in (400, 25_600))
)

_PROFILES = [
    Experiment(
        "profiles/fig7", "predicate evaluations by number of profiles", "profiles", {"events": 50, "overlap": 0.1},
        "rules", PROFILES, STAB, measure="evaluations", orders=at((*BEST_AT_LOW_OVERLAP, FAR_FROM_NAIVE), *PROFILES),
    ),
    Experiment(
        "profiles/fig8", "predicate evaluations by overlap", "profiles", {"rules": 100, "events": 50}, "overlap",
        OVERLAPS, STAB, measure="evaluations",
        orders=at((*LOW_OVERLAP, FAR_FROM_NAIVE), *OVERLAPS[:-1]) | at((*HIGH_OVERLAP, FAR_FROM_NAIVE), OVERLAPS[-1]),
    ),
    Experiment(
        "profiles/table1", "growth of predicate evaluations, at low and at high overlap", "profiles",
        {"events": 50, "domain": M}, "profiles, overlap", GROWTH, STAB, measure="evaluations",
        bounds={
            "naive": ("kn", "kn"), "lazy": ("n", "kn"), "stab-cluster": ("k log n", "kn"),
            "stab-interval": ("k", "k log n"), "stab-hybrid": ("k log n", "k log n"),
            "segment-tree": ("k log n", "k log n"), "interval-tree": ("k log n", "kn"),
        },
    ),
]  # fmt: skip

CROWDS = tuple(
    Point(f"{rules:,}, {documents:,}", x, {"rules": rules, "documents": documents})
    for x, (documents, rules) in enumerate((d, n) for d in (10 * K, 100 * K, M) for n in (K, 10 * K, 100 * K))
)
DOCUMENT_COSTS = {"publish": 3.0, "load_s": 10.0, "bytes": 100.0}


def joins(name: str, title: str, fixed: Parameters, values: tuple[Point, ...], **line: Any) -> Experiment:
    """Rules that ask about documents, by how many there are of both."""
    fixed = {"events": 200, **fixed}
    return Experiment(f"profiles/{name}", title, "alerts", fixed, "rules, documents", values, method="join", **line)


_JOINS = [
    joins("joins", "rules with one join, by number of rules and documents", {"form": "one"}, CROWDS,
          limits={"all": 1_000.0, "plain": 3.0, **DOCUMENT_COSTS}),
    joins("two-joins", "rules with two joins and a constant, by number of rules and documents", {"form": "two"}, CROWDS,
          limits={"all": 200.0, **DOCUMENT_COSTS}),
    joins("prefilter", "pre-filtering, where no document satisfies nine rules in ten",
          {"form": "two", "impossible": 0.9}, CROWDS[1::3], limits={"unfiltered": 5.0}),
    joins("phases", "which phase comes first, where seven events in eight are done by one question", {"form": "newer"},
          CROWDS[:3], limits={"phases": 1.2}),
]  # fmt: skip

UNIFORM_ORDER = ("k-index", "propagation", "counting", "scan")  # the BE-Tree paper §7.3.2 and §8
ZIPF_ORDER = ("propagation", "k-index", "counting")  # and scan before the last two "in some cases"

_OWN = [
    Experiment(
        "classic", "the classic indexes beside scan", "begen", begen(), "case",
        (
            Point("uniform 1%", None, {"zipf": 0.0, "match": 0.01}),
            Point("uniform 0.1%", None, {"zipf": 0.0, "match": 0.001}),
            Point("Zipf 1%", None, {"zipf": ZIPF, "match": 0.01}),
        ),
        CLASSIC, limits={"build_s": 60, "bytes": 3e9},
        orders={"uniform 1%": UNIFORM_ORDER, "uniform 0.1%": UNIFORM_ORDER, "Zipf 1%": ZIPF_ORDER},
    ),
]  # fmt: skip

_BATCHES = [
    Experiment(
        "batch/summary", "batches in blocks of events, beside an index and one by one", "begen", {"events": 4096},
        "case",
        (
            Point("uniform 1%", None, begen(M, zipf=0.0, match=0.01)),
            Point("uniform 0.1%", None, begen(M, zipf=0.0, match=0.001, events=16 * K)),
            Point("rules later", None, begen(M, zipf=0.0, match=0.001, events=16 * K), options={"later": 0.001}),
            Point("dense 0.1%", None, dense(events=16 * K)),
            Point("Zipf 0.1%", None, begen(M, zipf=ZIPF, match=0.001, events=16 * K)),
            Point("sparse", None, dense(30_000, rules=100 * K, events=2048)),
            Point("trees", None, {"rules": 100 * K, "events": 2048}, "trees"),
            Point("nested", None, {"rules": 100 * K}, "nested"),
            Point("ads", None, {"rules": 3 * M}, "ads"),
            *(Point(w, None, {"rules": 100 * K}, w) for w in ("authors", "titles", "keywords", "flights", "profiles")),
            Point("tenants", None, {"rules": 20 * K}, "tenants"),
        ),
        method="batch",
    ),
]  # fmt: skip

EXPERIMENTS = {e.name: e for e in (*_OWN, *_BATCHES, *_BE_TREE, *_PS_TREE, *_COMPLEX, *_SHARING, *_PROFILES, *_JOINS)}
