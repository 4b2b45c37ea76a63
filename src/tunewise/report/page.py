"""The report as one HTML page that stands for itself: no script, nothing from the network, everything escaped."""

from collections.abc import Callable
from importlib import resources
from pathlib import Path

import tunewise
from tunewise.report import heuristic, judgement, summary, tuning
from tunewise.report.colours import stylesheet
from tunewise.report.documents import head, write
from tunewise.report.findings import Findings
from tunewise.report.markup import Markup, element, fragment

# The order of a reader's questions; a section that has nothing to tell is left out.
SECTIONS: tuple[tuple[str, str, Callable[[Findings], Markup | None]], ...] = (
    ("data", "The data", summary.data),
    ("headroom", "Headroom", summary.headroom),
    ("regret", "Regret", judgement.regret),
    ("tree", "The heuristic", heuristic.tree),
    ("importance", "What matters", heuristic.importance),
    ("worst", "Worst problems", judgement.worst),
    ("progress", "Tuning progress", tuning.progress),
)


def page(findings: Findings) -> str:
    """Return the whole page as text."""
    written = [(name, title, section(findings)) for name, title, section in SECTIONS]
    told = [(name, title, body) for name, title, body in written if body is not None]
    title = f"{findings.decision}: tunewise report"
    body = element(
        "body",
        element(
            "header",
            element("h1", findings.decision),
            element("p", summary.subtitle(findings), class_="soft"),
            summary.key_figures(findings),
            _contents([(name, heading) for name, heading, _ in told]),
        ),
        element("main", *(_section(*one) for one in told)),
        element("footer", element("p", f"Written by tunewise {tunewise.__version__} on {findings.written}.")),
    )
    html = element("html", head(title, _style()), body, lang="en")
    return f"<!DOCTYPE html>\n{html}\n"


def save(findings: Findings, path: Path | str) -> None:
    """Write the page to a file, whole or not at all; raises InvalidFile where that cannot be done."""
    write(page(findings), path)


def _style() -> str:
    return resources.files("tunewise.report").joinpath("style.css").read_text(encoding="utf-8") + stylesheet()


def _contents(entries: list[tuple[str, str]]) -> Markup:
    links = [element("li", element("a", title, href=f"#{name}")) for name, title in entries]
    return element("nav", element("ul", *links), aria_label="Contents")


def _section(name: str, title: str, body: Markup) -> Markup:
    heading = element("h2", title, id=f"{name}-heading")
    return element("section", fragment(heading, body), id=name, aria_labelledby=f"{name}-heading")
