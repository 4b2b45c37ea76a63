"""Who proposed what, how it did, and who is worth asking."""

from collections.abc import Sequence

import pytest

from tunewise.decision import Config, Failure, Problem, Proposal, Subject, Timing, Trial, Verdict, detect, environment
from tunewise.errors import NotFound
from tunewise.session.context import current_store
from tunewise.session.provenance import records, seedings

DEFAULT, GOOD, SLOW, BEST = ({"t": n} for n in (0, 1, 2, 3))
TIMES = {0: 4.0, 1: 1.02, 2: 8.0, 3: 1.0}


def tuned(n: int, order: Sequence[tuple[Config, str]], proposals: Sequence[Proposal], by: str = "auto") -> None:
    """Put a concluded run into the store: its configs in order, with who proposed each."""
    subject = Subject("toy", Problem({"n": n}), (), environment(detect()))
    trials = [Trial(config, Timing((TIMES[int(config["t"])],)), source, f"r{n}") for config, source in order]  # type: ignore[arg-type]
    current_store().add(subject, trials)
    current_store().conclude(subject, Verdict("win", DEFAULT, BEST, run=f"r{n}", source=by, proposals=tuple(proposals)))


def test_the_record_of_a_heuristic_counts_runs_wins_places_and_what_it_saved() -> None:
    order = [(DEFAULT, "default"), (GOOD, "rule"), (SLOW, "auto"), (BEST, "auto")]
    tuned(1, order, [Proposal("rule", "expert", 1, GOOD), Proposal("rule", "expert", 2, DEFAULT, "known")])
    tuned(2, [(DEFAULT, "default"), (BEST, "rule"), (SLOW, "auto")], [Proposal("rule", "expert", 1, BEST)], by="rule")
    (record,) = records(seedings("toy"))
    assert (record.name, record.kind, record.runs, record.wins, record.win_rate) == ("rule", "expert", 2, 1, 0.5)
    assert (record.proposed, record.tried, record.repeated) == (3, 2, 1)
    assert record.first_regret == pytest.approx((1.02 * 1.0) ** 0.5)
    assert record.best_place == 1.5
    assert record.saved == 1 + 1  # the slow one came first; in the second run the search never came near
    assert not record.is_dead_weight


def test_a_heuristic_that_never_helps_is_dead_weight_after_three_runs() -> None:
    for n in range(3):
        assert not any(record.is_dead_weight for record in (records(seedings("toy")) if n else []))
        tuned(n, [(DEFAULT, "default"), (SLOW, "bad"), (BEST, "auto")], [Proposal("bad", "table", 1, SLOW)])
    (record,) = records(seedings("toy"))
    assert record.is_dead_weight
    assert record.first_regret == pytest.approx(8.0)


def test_seeds_that_failed_are_counted_and_have_no_regret() -> None:
    subject = Subject("toy", Problem({"n": 1}), (), environment(detect()))
    current_store().add(subject, [Trial(SLOW, Failure("compile"), "bad"), Trial(BEST, Timing((1.0,)), "auto")])
    proposals = (Proposal("bad", "expert", 1, SLOW), Proposal("bad", "expert", 2, {}, "dropped", "no such parameter"))
    current_store().conclude(subject, Verdict("tie", DEFAULT, BEST, proposals=proposals))
    (record,) = records(seedings("toy"))
    assert (record.failed, record.dropped, record.first_regret, record.best_place) == (1, 1, None, None)


def test_winners_come_first_and_then_whoever_was_nearest() -> None:
    order = [(DEFAULT, "default"), (SLOW, "far"), (GOOD, "near"), (BEST, "winner")]
    proposals = [Proposal(name, "expert", 1, config) for name, config in (("far", SLOW), ("near", GOOD))]
    tuned(1, order, [*proposals, Proposal("winner", "expert", 1, BEST)], by="winner")
    assert [record.name for record in records(seedings("toy"))] == ["winner", "near", "far"]


def test_runs_without_proposals_do_not_count() -> None:
    tuned(1, [(DEFAULT, "default"), (BEST, "auto")], [])
    assert seedings("toy") == []


def test_a_decision_nobody_knows_is_named() -> None:
    with pytest.raises(NotFound, match="'toy'"):
        seedings("toy")
