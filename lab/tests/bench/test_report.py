"""Result files become tables and a page with plots."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eligo.cli import application
from eligo.errors import OptionError
from eligo_lab.bench.campaign import Wish, run_all
from eligo_lab.bench.experiment import OTHERS, Experiment, Point
from eligo_lab.bench.plots import apart, style
from eligo_lab.bench.progress import Progress
from eligo_lab.bench.report import report
from eligo_lab.bench.results import read
from eligo_lab.bench.tables import digits, duration, size
from eligo_lab.bench.verdicts import everything, ordered

FOUNDATION: dict[str, Any] = {
    "name": "foundation",
    "machine": "a machine, 2 cores, Linux, Python 3.11",
    "result": {
        "rules": 1000, "load_rules": 1000, "load_text_s": 1.0, "load_json_s": 1.0, "load_arrow_s": 1.0,
        "match_one_us": 9.0, "match_batch_us": 1.0, "scan_ms": 1.5, "bytes_per_rule": 160.0, "bytes": {"index/first": 4000},
        "predicates": 10, "conjunctions": 20, "add_ms": 0.5, "remove_ms": 0.5, "update_worst_ms": 5.0, "save_s": 1.0,
        "open_s": 0.1, "open_unverified_s": 0.001, "fresh_process_s": 1.0, "equalities_us": 9.0, "json_bytes": 900.0,
        "json_us": 4.0, "ndjson_us": 1.0, "nested_us": 5.0,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "figures.json"
    small = {"rules": 60, "events": 10}
    limits: dict[str, Any] = {"limits": {"build_s": 60, "bytes": 3e9}, "orders": {"a": ("counting", "scan")}}
    experiments = [
        Experiment("test/fig1", "by presence", "tiny", small, "present", (0.1, 0.5, 0.9), ("scan", "counting", "later")),
        Experiment("test/fig2", "memory", "tiny", small, "present", (0.2, 0.8), ("scan",), measure="memory"),
        Experiment("test/table1", "cases", "tiny", small, "case", (Point("a"), Point("b", None, {"present": 0.2})),
                   ("scan", "counting"), **limits),
        Experiment("tiny", "a comparison", "tiny", small, indexes=("scan", "counting")),
    ]  # fmt: skip
    wish = Wish(repeat=2, inserts=5, outside=("dict", "lambdas"), outside_rules=30, outside_events=5)
    run_all(experiments, wish, path, Progress(quiet=True), "eligo bench run test")
    return path


def test_tables(file: Path) -> None:
    page = report([FOUNDATION, read(file)], "eligo bench report …")
    assert page.index("## Foundation") < page.index("## Comparisons") < page.index("### test/fig1: by presence")
    assert "| present | 0.1 | 0.5 | 0.9 |" in page
    assert "later (no such index yet)" in page
    assert "Time of an event" in page
    assert "Bytes of index and labels" in page
    assert "| the paper | counting < scan |  |" in page
    assert "| all bytes < 3.00 GB |" in page
    assert "from a dict to a list of ids" in page
    assert "the reference agreed on" in page
    lines = page.splitlines()
    for above, below in pairwise(lines):  # every row has the columns of its table
        if above.startswith("|") and below.startswith("|"):
            assert above.count("|") == below.count("|"), below


def test_pages_from_the_command_line(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page, html = tmp_path / "performance.md", tmp_path / "report.html"
    done = CliRunner().invoke(application(), ["bench", "report", str(file), "-o", str(page), "--html", str(html)])
    assert done.exit_code == 0, done.output
    assert page.read_text().startswith("# Performance")
    content = html.read_text()
    assert (
        content.count("<svg") == 4 + 3 + 2 + 2 + 1
    )  # an experiment each, and the contenders from outside at each point
    assert content.count("<svg") == content.count("</svg>")
    assert content.count("<table>") == content.count("</table>") > 10
    assert "http://www.w3.org/2000/svg" in content
    assert "<script" not in content
    assert "src=" not in content  # nothing is fetched
    first = content[content.index("<svg") : content.index("</svg>")]
    for word in ("test/fig1: by presence", "workload tiny", "scan", "counting"):
        assert word in first
    assert "legend" not in first


def test_a_report_needs_a_page_and_a_result_file(file: Path, tmp_path: Path) -> None:
    assert CliRunner().invoke(application(), ["bench", "report", str(file)]).exit_code == 2
    other = tmp_path / "other.json"
    for content in ("{}", "[1]", "no json", json.dumps({"format": 99, "experiments": []})):
        other.write_text(content)
        with pytest.raises(OptionError, match=r"other\.json"):
            read(other)


def test_names_at_line_ends_do_not_overlap() -> None:
    for heights in ([0.0, 0.0, 0.0], [0.0, 5.0, 100.0], [1.0, 2.0, 3.0, 30.0, 31.0], []):
        placed = apart(heights, 10)
        assert all(b - a >= 9.9 for a, b in pairwise(placed))
        assert sum(placed) == pytest.approx(sum(heights))
    assert apart([0.0, 50.0], 10) == [0.0, 50.0]


def test_everyone_is_told_apart_without_colour() -> None:
    names = [
        "scan",
        "counting",
        "k-index",
        "propagation",
        "op-index",
        "gryphon",
        "be-tree",
        "be-tree-batch",
        "pst-bloom",
    ]
    looks = [(style(n, 0)["marker"], style(n, 0)["linestyle"]) for n in names]
    assert len(set(looks)) == len(names)


def test_figures_are_readable() -> None:
    assert [duration(n) for n in (12, 1234, 45_600, 7.89e6, 3.2e9)] == [
        "12.0 ns",
        "1.23 µs",
        "45.6 µs",
        "7.89 ms",
        "3.20 s",
    ]
    assert [size(n) for n in (12, 1234, 3e9)] == ["12 B", "1.23 kB", "3.00 GB"]
    assert [digits(n) for n in (0.00025, 0.5, 1234)] == ["0.00025", "0.5", "1,234"]


def test_orders_may_be_several_and_name_the_others() -> None:
    point = {"contenders": {name: {"build_s": s, "bytes": 1} for name, s in (("a", 1.0), ("b", 2.0), ("c", 3.0))}}

    def judged(*orders: Any) -> str:
        table = ordered(point, [list(order) for order in orders], "build")
        assert table[2][0][1] == "a < b < c"
        return table[2][0][2]

    assert judged(("a", OTHERS)) == "the same"
    assert judged(("b", OTHERS)) == "another"
    assert judged((OTHERS, "c"), ("b", "a"), ("a", "b", OTHERS)) == "the same; another; the same"


def test_an_order_of_which_nobody_is_left_is_not_shown(tmp_path: Path) -> None:
    experiment = Experiment(
        "test/fig1", "x", "tiny", {"rules": 40, "events": 5}, "present", (0.3, 0.6), ("scan", "counting"),
        orders={"0.3": ("later", OTHERS), "0.6": (("later", "scan"), ("scan", "counting"))}, measure="build",
        published={"scan": (2e6, None, None), "later": (1e6, 1e9, 1e6), "counting": (1e6, 2e9, 5e6)},
    )  # fmt: skip
    content = run_all([experiment], Wish(repeat=1, inserts=0), tmp_path / "f.json", Progress(quiet=True), "test")
    tables = list(everything(json.loads(json.dumps(content["experiments"][0]))))
    assert [title for title, _, _ in tables[1:]] == [
        "order", "0.3: beside the paper's table", "0.6: beside the paper's table",
    ]  # fmt: skip
    assert [row[0] for row in tables[1][2]] == ["0.6"]
    assert tables[1][2][0][2] == "scan < counting"
    rows = {row[0]: row for row in tables[2][2]}
    assert rows["counting"][2] == "1.00 ms"
    assert rows["counting"][4] == "2.00"  # times faster than scan, in that paper
    assert rows["counting"][6] == "2.00 s"
    assert rows["scan"][5:] == ("", "", "", "")
