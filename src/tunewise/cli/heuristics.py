"""`tunewise heuristics`: which rules, tables and models propose seeds, and what they are worth."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from tunewise.cli.home import sound_store
from tunewise.cli.screen import Screen, count, example, json_option, pass_screen
from tunewise.errors import InvalidSetting, NotFound
from tunewise.heuristics import Expert
from tunewise.heuristics.registry import BY_BACKEND
from tunewise.session import provenance, shelf
from tunewise.session.ladder import show
from tunewise.session.provenance import Record, Seeding


@click.command(
    epilog=example(
        "tunewise heuristics",
        "tunewise tune gemm --problem m=64,n=64,k=64 --budget 8",
        "tunewise heuristics gemm",
        "tunewise heuristics gemm --runs --json",
    )
)
@click.argument("decision", required=False)
@click.option("--runs", "with_runs", is_flag=True, help="Show every proposal of every tuning run, with its place.")
@json_option
@pass_screen
def heuristics(screen: Screen, decision: str | None, with_runs: bool, as_json: bool) -> None:
    """Show what heuristics proposed and how it did.

    DECISION is its name: who proposed seeds in its tuning runs, how often they won, how far the first seed was from the
    best, about how many evaluations that saved, and who is dead weight. Without it: the rules of thumb that ship.
    """
    if decision is None and with_runs:
        raise InvalidSetting("--runs needs a decision, such as: tunewise heuristics gemm --runs")
    if decision is None:
        _show_shipped(screen, as_json)
        return
    in_force = {heuristic.name: heuristic.kind for heuristic in shelf.heuristics_for(decision)}
    found = _seedings(decision, bool(in_force))
    known = provenance.records(found)
    if as_json:
        rows = [_row(record) for record in known]
        runs = {"runs": [_run(seeding) for seeding in found]} if with_runs else {}
        screen.json({"decision": decision, "tuned": len(found), "heuristics": rows, "in_force": in_force, **runs})
        return
    if with_runs:
        _show_runs(screen, found)
    elif known:
        columns = ("heuristic", "kind", "runs", "won", "first seed", "place", "saved", "seeds", "no-ops", "note")
        screen.table(columns, [_cells(record) for record in known], right=columns[2:9])
    there_are = "; in force: " + ", ".join(f"{name} ({kind})" for name, kind in in_force.items()) if in_force else ""
    screen.say(f"{count(len(found), 'tuning run')} of {decision} heard proposals{there_are}")


def _seedings(decision: str, is_known: bool) -> list[Seeding]:
    """Return the runs of a decision that heard proposals; a decision that heuristics know need not be in the store."""
    sound_store()
    try:
        return provenance.seedings(decision)
    except NotFound:
        if not is_known:
            raise
        return []


def _show_shipped(screen: Screen, as_json: bool) -> None:
    rows = [(backend, expert) for backend, experts in BY_BACKEND.items() for expert in experts]
    if as_json:
        named = [{"backend": b, "name": e.name, "seeds": e.most, "about": _about(e)} for b, e in rows]
        screen.json({"heuristics": named})
        return
    screen.table(("backend", "heuristic", "about"), [(b, e.name, _about(e)) for b, e in rows])


def _about(expert: type[Expert]) -> str:
    return (expert.__doc__ or "").strip().partition("\n")[0]


def _cells(record: Record) -> tuple[str, ...]:
    return (
        record.name,
        record.kind,
        str(record.runs),
        f"{record.wins} ({record.win_rate:.0%})",
        "-" if record.first_regret is None else f"{record.first_regret:.3f}x",
        "-" if record.best_place is None else f"{record.best_place:g}",
        str(record.saved),
        str(record.proposed),
        str(record.repeated),
        _note(record),
    )


def _note(record: Record) -> str:
    counts = [(record.failed, "failed"), (record.dropped, "dropped"), (record.skipped, "skipped")]
    parts = [f"{number} {what}" for number, what in counts if number]
    return "; ".join([*(["dead weight"] if record.is_dead_weight else []), *parts])


def _row(record: Record) -> dict[str, Any]:
    return {**asdict(record), "win_rate": record.win_rate, "is_dead_weight": record.is_dead_weight}


def _run(seeding: Seeding) -> dict[str, Any]:
    verdict = seeding.verdict
    proposals = [{**asdict(p), "config": dict(p.config), "place": seeding.place(p.config)} for p in verdict.proposals]
    return {
        "problem": dict(seeding.subject.problem),
        "run": verdict.run,
        "ending": verdict.ending,
        "winner": dict(verdict.winner),
        "winner_by": verdict.source,
        "evaluations": len(seeding.times_s),
        "proposals": proposals,
    }


def _show_runs(screen: Screen, found: Sequence[Seeding]) -> None:
    for seeding in found:
        by = f", proposed by {seeding.verdict.source}" if seeding.verdict.ending == "win" else ""
        screen.show(f"{seeding.subject.problem}: {seeding.verdict.ending}{by}")
        rows = [
            (p.by, str(p.rank), show(p.config), p.fate, str(seeding.place(p.config) or "-"), p.detail)
            for p in seeding.verdict.proposals
        ]
        screen.table(("heuristic", "rank", "config", "fate", "place", "detail"), rows, right=("rank", "place"))
