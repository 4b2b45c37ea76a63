"""The report as one HTML page that stands for itself: no script, nothing from the network, everything escaped."""

import base64
import hashlib
import os
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import tunewise
from tunewise.errors import InvalidFile
from tunewise.report import heuristic, judgement, summary, tuning
from tunewise.report.colours import stylesheet
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
    html = element("html", _head(title), body, lang="en")
    return f"<!DOCTYPE html>\n{html}\n"


def save(findings: Findings, path: Path | str) -> None:
    """Write the page to a file, whole or not at all; raises InvalidFile where that cannot be done."""
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        beside.write_text(page(findings), encoding="utf-8")
        beside.replace(target)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InvalidFile(f"{target} cannot be written: {error.strerror}; choose another place for it") from error


def _head(title: str) -> Markup:
    style = resources.files("tunewise.report").joinpath("style.css").read_text(encoding="utf-8") + stylesheet()
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("style", Markup(style)),
    )


def _policy(style: str) -> str:
    """Return a policy under which nothing is loaded, nothing runs, and only our own stylesheet counts."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _contents(entries: list[tuple[str, str]]) -> Markup:
    links = [element("li", element("a", title, href=f"#{name}")) for name, title in entries]
    return element("nav", element("ul", *links), aria_label="Contents")


def _section(name: str, title: str, body: Markup) -> Markup:
    heading = element("h2", title, id=f"{name}-heading")
    return element("section", fragment(heading, body), id=name, aria_labelledby=f"{name}-heading")
