"""A store of several users: no row decides for others by what it says of itself."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tunewise as tw
from tunewise.decision import (
    Config,
    Declaration,
    Failure,
    Hardware,
    Problem,
    Space,
    Subject,
    Timing,
    Trial,
    Verdict,
    environment,
)
from tunewise.decision.origin import run_id
from tunewise.errors import InvalidSetting
from tunewise.measure import Replay, Work
from tunewise.session import evidence
from tunewise.session.ladder import Explanation, explain, remembered
from tunewise.session.plan import Plan, Task
from tunewise.session.tune import Tuning, question_of, tune
from tunewise.settings import Trust
from tunewise.store import LayeredStore, MemoryStore, Store
from tunewise.store.ledger import Ledger

SPACE = Space({"a": list(range(16)), "b": list(range(4))})
DEFAULT = {"a": 0, "b": 0}
BEST = {"a": 11, "b": 2}
POOR = {"a": 1, "b": 3}
HARDWARE = Hardware("cuda", "any", "sm_80", 108, 2**34)
DECLARATION = Declaration("dale", space=SPACE, default=DEFAULT)
SUBJECT = Subject("dale", Problem({"n": 100}), (), environment(HARDWARE))
TRUSTS: tuple[Trust, ...] = ("own", "host", "all")


def dale(config: Config) -> Timing:
    return Timing((1.0 + abs(int(config["a"]) - 11) + abs(int(config["b"]) - 2),))  # type: ignore[arg-type]


def task() -> Task:
    return Task(DECLARATION, SUBJECT, Work(lambda config: lambda: None, (), DEFAULT, DECLARATION.check), None, HARDWARE)


def tuned(store: Store, **plan: Any) -> Tuning:
    return tune(task(), Plan(**plan), store, lambda _: Replay([Trial(config, dale(config)) for config in SPACE]))


def explained(store: Store) -> Explanation:
    return explain(question_of(task(), store), "use")


def won(config: Config, default_s: float = 2.0, config_s: float = 1.0, pairs: int = 10, **more: Any) -> Verdict:
    return Verdict("win", DEFAULT, config, (default_s,) * pairs, (config_s,) * pairs, **{"gain": 1e9, **more})


@pytest.fixture
def team() -> MemoryStore:
    """Give a store that others write."""
    return MemoryStore()


@pytest.fixture
def store(team: MemoryStore) -> LayeredStore:
    """Give the user's own store over that of the team."""
    return LayeredStore(MemoryStore(), [team])


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    yield
    tw.configure()


FORGED = {
    "no samples": (won(POOR, pairs=0), "no samples of the winner"),
    "few pairs": (won(POOR, pairs=6), "6 pairs of samples; 7 are needed"),
    "as fast": (won(POOR, 1.0, 1.0), "which is no win"),
    "slower": (won(POOR, 1.0, 2.0), "10 pairs show 0.50x"),
    "within the margin": (won(POOR, 1.0, 0.995), "which is no win"),
    "impossibly fast": (won(POOR, 1.0, 1e-9), "not times that a call can take"),
    "impossibly slow": (won(POOR, 1e9, 1.0), "not times that a call can take"),
    "one impossible sample": (replace(won(POOR), challenger_s=(1.0,) * 9 + (1e-12,)), "not times that"),
    "no pairs": (replace(won(POOR), incumbent_s=(2.0,) * 9), "no pairs of the default and the winner"),
    "against itself": (replace(won(DEFAULT), challenger=DEFAULT), "is the one it won against"),
    "a tie of nothing": (Verdict("tie", DEFAULT, DEFAULT, gain=1e9), "no samples of the default"),
    "a failure": (Verdict("failed", DEFAULT, DEFAULT, detail="give up"), "a tuning run failed on another host"),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_verdict_that_its_samples_do_not_show_neither_answers_nor_stops_tuning(
    store: LayeredStore, team: MemoryStore, case: str
) -> None:
    forged, reason = FORGED[case]
    team.conclude(SUBJECT, forged)
    said = explained(store)
    assert said.answer.rung == "default"
    assert reason in str(said)
    assert tuned(store).answer.config == BEST


def test_the_gain_and_p_value_of_an_answer_are_those_of_its_samples(store: LayeredStore, team: MemoryStore) -> None:
    team.conclude(SUBJECT, won(POOR, gain=1e9, p_value=0.0))
    answer = remembered(question_of(task(), store))
    assert answer is not None
    assert answer.reason.startswith("beat the default 2.00x in 10 pairs (p=0.00098)")
    assert answer.confidence == 1 - 2**-10


def test_a_samples_gain_is_told_in_own_stores_too() -> None:
    own = MemoryStore()
    own.conclude(SUBJECT, won(POOR))
    own.conclude(SUBJECT, won(POOR, 1.0, 1.0))
    answer = remembered(question_of(task(), own))
    assert answer is not None
    assert "2.00x" in answer.reason


def test_own_verdicts_of_fewer_pairs_and_of_a_vendor_answer_as_before() -> None:
    own = MemoryStore()
    own.conclude(SUBJECT, won(POOR, pairs=3))
    assert explained(own).answer.config == POOR
    own.conclude(SUBJECT, Verdict("win", DEFAULT, BEST, gain=1.5, detail="as Triton timed them"))
    assert "the fastest that ran; as Triton timed them" in explained(own).answer.reason


@pytest.mark.parametrize(
    ("trust", "run", "is_answered", "reason"),
    [
        ("all", "r1", True, ""),
        ("host", "r1", False, "measured on another host; not trusted with trust='host'"),
        ("own", "r1", False, "measured on another host; not trusted with trust='own'"),
        ("all", "here", True, ""),
        ("host", "here", True, ""),
        ("own", "here", False, "measured on this host by another home; not trusted with trust='own'"),
    ],
)
def test_trust_says_whose_verdicts_answer(
    store: LayeredStore, team: MemoryStore, trust: Trust, run: str, is_answered: bool, reason: str
) -> None:
    team.conclude(SUBJECT, won(POOR, run=run_id() if run == "here" else run))
    tw.configure(trust=trust)
    said = explained(store)
    assert (said.answer.rung == "memory") == is_answered
    assert reason in str(said)


def test_a_verdict_that_is_not_trusted_is_the_first_seed(store: LayeredStore, team: MemoryStore) -> None:
    team.conclude(SUBJECT, won(POOR, run="r1"))
    tw.configure(trust="host")
    assert "tuning would first try a=1 b=3, from memory" in str(explained(store))
    result = tuned(store, budget=2)
    assert result.verdict is not None
    (seed,) = result.verdict.proposals
    assert (seed.by, seed.kind, seed.config, seed.fate) == ("memory", "memory", POOR, "tried")
    assert seed.detail == "won 2.00x over the default"


@pytest.mark.parametrize("trust", TRUSTS)
def test_what_was_measured_here_outranks_a_later_verdict_of_others(
    store: LayeredStore, team: MemoryStore, trust: Trust
) -> None:
    tw.configure(trust=trust)
    tuned(store)
    team.conclude(SUBJECT, won(POOR))
    assert explained(store).answer.config == BEST


@pytest.mark.parametrize("trust", TRUSTS)
def test_forged_trials_neither_fail_nor_win_for_others(store: LayeredStore, team: MemoryStore, trust: Trust) -> None:
    tw.configure(trust=trust)
    team.add(
        SUBJECT, [Trial(DEFAULT, Failure("crash")), Trial(BEST, Failure("crash")), Trial(POOR, Timing((1e-6,) * 99))]
    )
    result = tuned(store)
    assert (result.answer.config, result.measured) == (BEST, SPACE.count())


def test_impossible_times_in_an_own_store_win_nothing() -> None:
    own = MemoryStore()
    own.add(SUBJECT, [Trial(POOR, Timing((5e-324,) * 9)), Trial(DEFAULT, Timing((1e308,) * 9))])
    assert tuned(own).answer.config == BEST


def test_a_failure_of_this_home_is_not_tried_again() -> None:
    own = MemoryStore()
    own.conclude(SUBJECT, Verdict("failed", DEFAULT, DEFAULT, detail="all candidates failed"))
    assert tuned(own).measured == 0


def test_a_server_believes_a_home_what_is_in_its_ledger(tmp_path: Path) -> None:
    server = MemoryStore()
    mine, theirs = (LayeredStore(server, ledger=Ledger(tmp_path / name), is_shared=True) for name in ("mine", "theirs"))
    tw.configure(trust="own")
    tuned(mine)
    again = LayeredStore(server, ledger=Ledger(tmp_path / "mine"), is_shared=True)
    assert [verdict.origin for verdict in again.verdicts(SUBJECT)] == ["own"]
    assert [verdict.origin for verdict in theirs.verdicts(SUBJECT)] == ["host"]
    assert {trial.origin for trial in again.trials(SUBJECT)} == {"own"}
    assert explained(again).answer.config == BEST
    assert explained(theirs).answer.rung == "default"
    copied = replace(won(POOR), run=server.verdicts(SUBJECT)[0].run)  # whoever reads a row can write its run into his
    server.conclude(SUBJECT, copied)
    assert explained(again).answer.config == BEST


def test_what_is_imported_by_hand_counts_as_own(tmp_path: Path) -> None:
    team = MemoryStore()
    team.conclude(SUBJECT, won(POOR, run="r1"))
    mine = LayeredStore(MemoryStore(), ledger=Ledger(tmp_path), is_shared=True)
    mine.absorb(team.records())
    tw.configure(trust="own")
    assert explained(mine).answer.config == POOR


def test_a_trust_that_there_is_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidSetting, match="TUNEWISE_TRUST='me' is not one of own, host, all"):
        tw.configure(trust="me")  # type: ignore[arg-type]
    monkeypatch.setenv("TUNEWISE_TRUST", "own")
    tw.configure()
    assert evidence.settings.current().trust == "own"


def test_a_row_of_any_length_is_weighed_at_once(store: LayeredStore, team: MemoryStore) -> None:
    for _ in range(5):
        team.conclude(SUBJECT, won(POOR, 1.0, 0.999, pairs=50_000))
    began = time.monotonic()
    assert explained(store).answer.rung == "default"
    assert time.monotonic() - began < 2


def test_a_win_of_others_over_another_config_than_the_default_does_not_answer(
    store: LayeredStore, team: MemoryStore
) -> None:
    team.conclude(SUBJECT, replace(won(POOR), incumbent=BEST))
    assert explained(store).answer.rung == "default"


def test_all_pairs_of_a_long_row_are_weighed_alike(store: LayeredStore, team: MemoryStore) -> None:
    pairs = [(2.0, 1.0)] * 1_000 + [(1.0, 2.0)] * 9_000
    incumbent_s, challenger_s = zip(*pairs, strict=True)
    team.conclude(SUBJECT, replace(won(POOR), incumbent_s=incumbent_s, challenger_s=challenger_s))
    assert explained(store).answer.rung == "default"
