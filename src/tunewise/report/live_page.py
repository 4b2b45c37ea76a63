"""The live page: one document that can be read without its script, which keeps it up to date."""

import functools
import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import tunewise
from tunewise.report.colours import stylesheet
from tunewise.report.documents import closed, digest_of, head, write
from tunewise.report.live_slots import Shown, Slots
from tunewise.report.live_state import Health, Snapshot
from tunewise.report.live_view import SECTIONS, key_figures
from tunewise.report.markup import Markup, element, fragment

TITLE = "tunewise live"
SILENT = Health(trouble="the store has not answered yet")


@dataclass(frozen=True, slots=True)
class View:
    """A snapshot as the page shows it: what changes in it, by name."""

    seen: Snapshot
    values: dict[str, Shown]

    @property
    def at(self) -> float:
        """When it was so, in seconds since the epoch."""
        return self.seen.at


def view(seen: Snapshot) -> View:
    """Return a snapshot as the page shows it."""
    slots = Slots(is_drawn=False)
    _body(slots, seen)
    return View(seen, slots.values)


def live(shown: View) -> str:
    """Return the page with the script that keeps it up to date."""
    status = fragment(
        element("span", "Connecting", id="status", role="status", aria_live="polite"),
        element("span", f", as of {_moment(shown.at)}", id="moment"),
        element("noscript", ". Without JavaScript it stays as it is: reload it, or read /snapshot.html"),
    )
    return _document(shown, status, element("script", Markup(script())), data_version=version(shown))


def static(shown: View) -> str:
    """Return the page as it is now, for a file or a screen without scripts; it loads nothing and runs nothing."""
    return _document(shown, fragment(f"As of {_moment(shown.at)}. This page stays as it is."))


def save(seen: Snapshot, path: Path | str) -> None:
    """Write the page as it is now to a file, whole or not at all; raises InvalidFile where that cannot be done."""
    write(static(view(seen)), path)


def policy() -> str:
    """Return the policy of the live page: our own style and script, and words with the server it came from."""
    return (
        f"default-src 'none'; style-src 'sha256-{digest_of(style())}'; script-src 'sha256-{digest_of(script())}'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def static_policy() -> str:
    """Return the policy of the page without a script."""
    return f"{closed(style())}; frame-ancestors 'none'"


def version(shown: View) -> str:
    """Return what tells a page from one of another release, whose elements have other names."""
    parts = (tunewise.__version__, style(), script(), *shown.values)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@functools.cache
def style() -> str:
    """Return the stylesheet: the report's, the pictures', and what is the live page's own."""
    return _file("style.css") + stylesheet() + _file("live.css")


@functools.cache
def script() -> str:
    """Return the script."""
    return _file("live.js")


def _document(shown: View, status: Markup, *ending: Markup, data_version: str | None = None) -> str:
    page = element(
        "body",
        element("header", element("h1", TITLE), element("p", status, class_="soft")),
        _body(Slots(), shown.seen),
        element("footer", element("p", f"tunewise {tunewise.__version__}")),
        *ending,
        data_version=data_version,
    )
    return f"<!DOCTYPE html>\n{element('html', head(TITLE, style(), is_alone=not ending), page, lang='en')}\n"


def _body(slots: Slots, seen: Snapshot) -> Markup:
    sections = [_section(slots, seen, *one) for one in SECTIONS]
    return fragment(key_figures(slots, seen), _contents(), slots.fixed("main", *sections))


def _section(slots: Slots, seen: Snapshot, name: str, title: str, tell: object) -> Markup:
    assert callable(tell)
    heading = slots.fixed("h2", title, id=f"{name}-heading")
    return slots.fixed("section", heading, tell(slots, seen), id=name, aria_labelledby=f"{name}-heading")


def _contents() -> Markup:
    links = [element("li", element("a", title, href=f"#{name}")) for name, title, _ in SECTIONS]
    return element("nav", element("ul", *links), aria_label="Contents")


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _file(name: str) -> str:
    return resources.files("tunewise.report").joinpath(name).read_text(encoding="utf-8")
