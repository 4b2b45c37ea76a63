"""Runs that go on, a card each: how far they are, the best time so far, and its curve."""

from collections.abc import Sequence

from tunewise.report.live_curve import picture
from tunewise.report.live_signs import Run
from tunewise.report.live_slots import Slots, bar
from tunewise.report.live_state import Snapshot
from tunewise.report.markup import Markup, fragment
from tunewise.report.wording import count, factor, seconds, span

CARDS = 6
_START = "tunewise tune gemm --problem m=256,n=256,k=64"


def running(slots: Slots, seen: Snapshot) -> Markup:
    """Return a card for every run that goes on, or how to start one."""
    rows = seen.running.rows
    cards = [_card(slots, f"run-{place}", _at(rows, place), seen.at) for place in range(CARDS)]
    more = seen.running.total - min(CARDS, len(rows))
    return fragment(
        slots.element(
            "p",
            "run-none",
            "Nothing is being tuned. To start, run: ",
            slots.fixed("code", _START),
            hidden=bool(rows),
        ),
        slots.element("div", "run-cards", *cards, hidden=not rows, class_="cards"),
        slots.sentence("run-more", f"and {count(more, 'more run')}" if more > 0 else ""),
    )


def _card(slots: Slots, name: str, run: Run | None, now: float) -> Markup:
    share = run.done / run.budget if run is not None and run.budget else 0.0
    title, problem, place = (run.decision, run.problem, run.hardware) if run is not None else ("", "", "")
    heading = slots.text("h3", f"{name}-decision", title)
    return slots.element(
        "article",
        name,
        heading,
        slots.text("p", f"{name}-problem", problem, class_="problem"),
        slots.text("p", f"{name}-state", _state(run, now), class_="soft"),
        slots.fixed("div", bar(slots, f"{name}-share", share), class_="progress"),
        slots.text("p", f"{name}-best", _best(run), class_="best"),
        picture(slots, f"{name}-curve", run),
        slots.text("p", f"{name}-place", f"on {place}" if place else "", class_="soft place"),
        hidden=run is None,
        changing={"class": "card stale" if run is not None and run.is_stale else "card"},
        aria_labelledby=f"{name}-decision",
    )


def _state(run: Run | None, now: float) -> str:
    if run is None:
        return ""
    of = f" of {run.budget:,}" if run.budget else ""
    failed = f", {run.failed:,} failed" if run.failed else ""
    told = f"{run.done:,}{of} evaluations{failed}, for {span((run.at if run.is_stale else now) - run.began)}"
    return f"not heard of for {span(now - run.at)}: gone or stuck after {told}" if run.is_stale else told


def _best(run: Run | None) -> str:
    if run is None or run.best_s is None:
        return "no time yet"
    if run.default_s is None:
        return f"best {seconds(run.best_s)}"
    return f"best {seconds(run.best_s)}, default {seconds(run.default_s)}: {factor(run.default_s / run.best_s)}\u00a0x"


def _at(rows: Sequence[Run], place: int) -> Run | None:
    return rows[place] if place < len(rows) else None
