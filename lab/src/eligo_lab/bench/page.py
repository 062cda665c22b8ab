"""Result files as one HTML page with plots and tables, complete in itself."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from eligo_lab.bench.plots import outside_plot, plot
from eligo_lab.bench.report import notes
from eligo_lab.bench.verdicts import everything

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #111; }
h2 { margin-top: 3rem; border-top: 1px solid #ccc; padding-top: 1rem; }
svg { max-width: 100%; height: auto; display: block; margin: 1rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; margin: 0.5rem 0 1.5rem; }
caption { text-align: left; font-weight: 600; padding: 0.25rem 0; }
th, td { padding: 0.2rem 0.6rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
@media print { h2 { break-before: page; } }
"""


def page(results: list[dict[str, Any]]) -> str:
    """All experiments of the files; `foundation` has no plot and stays in the Markdown page."""
    runs = [(result["machine"], one) for result in results for one in result.get("experiments", []) if one["points"]]
    machines = "; ".join(dict.fromkeys(machine for machine, _ in runs))
    names = ", ".join(dict.fromkeys(one["name"] for _, one in runs))
    links = " · ".join(f'<a href="#{_anchor(one["name"])}">{escape(one["name"])}</a>' for _, one in runs)
    body = "\n".join(part for machine, one in runs for part in _section(one, machine))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>eligo: {escape(names)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{_STYLE}</style>\n'
        f"</head>\n<body>\n<h1>eligo: measurements</h1>\n<p>{escape(machines)}</p>\n<p>{links}</p>\n{body}\n"
        "</body>\n</html>\n"
    )


def _section(experiment: dict[str, Any], machine: str) -> Iterator[str]:
    name = experiment["name"]
    yield f'<h2 id="{_anchor(name)}">{escape(name)}: {escape(experiment["title"])}</h2>'
    yield _inline(plot(experiment, machine))
    for line in notes(experiment):
        yield f"<p>{escape(line.replace('`', ''))}</p>"
    for point in experiment["points"]:
        if "outside" in point:
            title = f"{name} {point['label']}".strip()
            yield _inline(outside_plot(point["outside"], title, machine))
    for title, columns, rows in everything(experiment):
        yield _table(title, columns, rows)


def _table(title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = "".join("<tr>" + "".join(f"<td>{escape(c.replace('*', ''))}</td>" for c in row) + "</tr>" for row in rows)
    return (
        f'<div class="wide"><table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _inline(svg: bytes) -> str:
    """The picture without the XML head that a page must not repeat."""
    text = svg.decode()
    return text[text.index("<svg") :]


def _anchor(name: str) -> str:
    return name.replace("/", "-").replace(" ", "-")
