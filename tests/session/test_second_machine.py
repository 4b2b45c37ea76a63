"""A second machine over a team's store: what won elsewhere is tried first, and is no answer before it is measured."""

import importlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tunewise import search
from tunewise.decision import (
    Config,
    Declaration,
    Environment,
    Failure,
    Hardware,
    Outcome,
    Part,
    Problem,
    Proposal,
    Space,
    Subject,
    Timing,
    Trial,
    Verdict,
    environment,
)
from tunewise.measure import Replay, Work
from tunewise.session import events, priors
from tunewise.session.ladder import explain, remembered
from tunewise.session.plan import Plan, Task
from tunewise.session.tune import Tuning, question_of, tune
from tunewise.store import LayeredStore, MemoryStore, PostgresStore, Prune, SafeStore, SqliteStore, Store

SPACE = Space({"a": list(range(16)), "b": list(range(16))})
DEFAULT = {"a": 0, "b": 0}
BEST = {"a": 11, "b": 5}
POOR = {"a": 1, "b": 15}
DECLARATION = Declaration("valley", space=SPACE, default=DEFAULT)


def subject(device: str, n: int = 100, facts: Mapping[str, str] | None = None) -> Subject:
    there = environment(Hardware("cuda", device, "sm_80", 108, 2**34), must=facts)
    return Subject("valley", Problem({"n": n}), (), there)


def valley(config: Config) -> Outcome:
    return Timing((1.0 + abs(int(config["a"]) - 11) + abs(int(config["b"]) - 5),))  # type: ignore[arg-type]


def task(about: Subject) -> Task:
    work = Work(lambda config: lambda: None, (), DEFAULT, DECLARATION.check)
    return Task(DECLARATION, about, work, hardware=Hardware("cuda", "any", "sm_80", 108, 2**34))


def tuned(about: Subject, store: Store, *, fails: Config | None = None, **plan: Any) -> Tuning:
    trials = [Trial(c, Failure("crash") if c == fails else valley(c)) for c in SPACE]
    return tune(task(about), Plan(**plan), store, lambda _: Replay(trials))


def won(config: Config, **more: Any) -> Verdict:
    return Verdict("win", DEFAULT, config, (2.0,) * 10, (1.0,) * 10, 2.0, 0.01, evaluations=9, run="r", **more)


def proposals(result: Tuning) -> tuple[Proposal, ...]:
    assert result.verdict is not None
    return result.verdict.proposals


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Start a PostgreSQL server, stop it when the tests are over, and give the address of an empty database."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'tunewise[postgres]'")
    sys.path.append(str(Path(__file__).parent.parent / "store"))
    servers = importlib.import_module("postgres_server")
    try:
        running = servers.started()
    except servers.NoServer as error:
        pytest.skip(f"no PostgreSQL server can be run here: {error}")
    yield running.database()
    running.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def team(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Give a team's empty store."""
    is_file = request.param == "sqlite"
    store = SqliteStore(tmp_path / "team") if is_file else PostgresStore(request.getfixturevalue("address"))
    yield store
    if not is_file:
        store.prune(Prune(decision="valley"))
    store.close()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Store]:
    """Give the second machine's own empty store."""
    store = SqliteStore(tmp_path / "own")
    yield store
    store.close()


def over(own: Store, team: Store) -> LayeredStore:
    return LayeredStore(SafeStore(own), [SafeStore(team)])


def test_a_second_machine_begins_with_the_first_ones_winner(team: Store, own: Store) -> None:
    tuned(subject("first device"), team, budget=100)
    heard: list[events.Event] = []
    result = tuned(subject("second device"), over(own, team), budget=2, listener=heard.append)
    tried = [event for event in heard if isinstance(event, events.Evaluated)]
    assert [event.config for event in tried] == [DEFAULT, BEST]
    assert tried[1].source == "memory of first device"
    (told,) = [event for event in heard if isinstance(event, events.Proposed)]
    assert told.proposals == proposals(result)
    (seed,) = proposals(result)
    assert (seed.by, seed.kind, seed.rank, seed.config, seed.fate) == (tried[1].source, "memory", 1, BEST, "tried")
    assert seed.detail.startswith("won 17.00x over the default with another hardware.name")


def test_a_verdict_of_another_machine_is_no_answer_before_it_is_measured_here(team: Store, own: Store) -> None:
    team.conclude(subject("first device"), won(BEST))
    question = question_of(task(subject("second device")), over(own, team))
    assert remembered(question) is None
    said = explain(question, "use")
    assert said.answer.rung == "default"
    assert "differs in hardware.name (now 'second device', then 'first device')" in str(said)
    assert "tuning would first try a=11 b=5, from memory of first device" in str(said)


def test_a_verdict_of_an_equal_machine_is_an_answer_without_measuring(team: Store, own: Store) -> None:
    team.conclude(subject("first device"), won(BEST))
    result = tuned(subject("first device"), over(own, team))
    assert (result.answer.config, result.answer.rung, result.measured) == (BEST, "memory", 0)


@pytest.mark.parametrize("facts", [{"source": "b"}, {"library.kernels": "2"}])
def test_an_equal_device_with_another_version_is_another_machine(facts: dict[str, str]) -> None:
    store = MemoryStore()
    store.conclude(subject("device", facts={"source": "a"}), won(BEST))
    about = subject("device", facts=facts)
    assert remembered(question_of(task(about), store)) is None
    (seed,) = proposals(tuned(about, store, budget=2))
    assert (seed.by, seed.config) == ("memory", BEST)
    assert next(iter(facts)) in seed.detail


def test_what_was_verified_here_is_answered_from_the_own_store_alone(team: Store, own: Store) -> None:
    team.conclude(subject("first device"), won(BEST))
    about = subject("second device")
    tuned(about, over(own, team), budget=2)
    assert not team.verdicts(about)
    assert not team.trials(about)
    question = question_of(task(about), own)
    answer = remembered(question)
    assert answer is not None
    assert (answer.config, answer.rung) == (BEST, "memory")
    assert "proposed by memory of first device" in str(explain(question, "use"))


@pytest.mark.parametrize(
    "config", [{"a": 999, "b": 5}, {"a": "x; rm -rf", "b": None}, {"other": 1}, {}, {"a": [1], "b": -1e300}]
)
def test_winners_that_are_not_in_the_space_do_no_harm(config: Any) -> None:
    store = MemoryStore()
    store.conclude(subject("first device"), won(config))
    result = tuned(subject("second device"), store, budget=256)
    assert result.answer.config == BEST
    assert all(proposal.fate == "dropped" or proposal.config in SPACE for proposal in proposals(result))
    explain(question_of(task(subject("third device")), store), "use")


def test_a_winner_that_fails_here_costs_one_evaluation(team: Store, own: Store) -> None:
    team.conclude(subject("first device"), won(POOR))
    team.conclude(subject("first device", 101), won({"a": 2, "b": 14}))
    result = tuned(subject("second device"), over(own, team), fails=POOR, budget=60)
    assert result.answer.config == BEST
    assert result.failures == {"crash": 1}
    assert [proposal.fate for proposal in proposals(result)] == ["tried", "skipped"]
    assert "failed" in proposals(result)[1].detail


def test_a_machine_whose_winner_is_poor_here_is_not_asked_for_another() -> None:
    store = MemoryStore()
    store.conclude(subject("first device"), won(POOR))
    store.conclude(subject("first device", 101), won({"a": 2, "b": 14}))
    store.conclude(subject("other device", 102), won(BEST))
    found = proposals(tuned(subject("second device"), store, budget=30))
    first, other = "memory of first device", "memory of other device"
    assert [(proposal.by, proposal.fate) for proposal in found] == [
        (first, "tried"),
        (first, "skipped"),
        (other, "tried"),
    ]


def test_times_made_up_elsewhere_never_reach_an_answer(team: Store, own: Store) -> None:
    about = subject("first device")
    team.add(about, [Trial(config, Timing((1e-9,))) for config in (POOR, {"a": 15, "b": 15})])
    team.conclude(about, replace(won(POOR), challenger_s=(1e-9,), gain=2e9))
    result = tuned(subject("second device"), over(own, team), budget=60)
    assert result.answer.config == BEST
    assert result.verdict is not None
    assert result.verdict.challenger_s[0] == 1.0


def test_what_is_told_of_a_machine_names_neither_host_nor_user_nor_values() -> None:
    store, about = MemoryStore(), subject("first device", facts={"variable.TOKEN": "hush"})
    private = (Part("host", "secret-host", "ignore"), Part("user", "secret-user", "warn"))
    store.conclude(replace(about, environment=Environment((*about.environment.parts, *private))), won(BEST))
    heard: list[events.Event] = []
    result = tuned(subject("second device"), store, budget=2, listener=heard.append)
    said = str([heard[1:], result.verdict, result.answer])
    assert "memory of first device" in said
    assert "variable.TOKEN" in said
    assert not [word for word in ("secret-host", "secret-user", "hush") if word in said]


def test_a_hostile_device_name_is_one_short_line() -> None:
    store = MemoryStore()
    store.conclude(subject("x\n\x1b[31m" + "y" * 10_000), won(BEST))
    (seed,) = proposals(tuned(subject("second device"), store, budget=2))
    assert seed.by.isprintable()
    assert len(seed.by) < 80


def test_the_same_problem_comes_before_heuristics_and_other_problems_after_their_first_guesses() -> None:
    store = MemoryStore()
    store.conclude(subject("first device"), won(BEST))
    store.conclude(subject("second device", 120), won(POOR))
    found = priors.winners(store, subject("second device"), DEFAULT)
    assert [(winner.by, winner.config, winner.is_same) for winner in found] == [
        ("memory of first device", BEST, True),
        ("memory", POOR, False),
    ]
    assert found[1].said == "won 2.00x over the default for n=120"


def test_winners_are_the_latest_of_each_machine_each_config_once_and_few() -> None:
    store = MemoryStore()
    for place in range(9):
        store.conclude(subject(f"device {place}"), won(POOR))
        store.conclude(subject(f"device {place}"), won({"a": 1, "b": place // 2}))
    store.conclude(subject("failed"), Verdict("failed", POOR, POOR))
    store.conclude(subject("default"), Verdict("tie", DEFAULT, POOR))
    found = priors.winners(store, subject("second device"), DEFAULT)
    assert len({tuple(winner.config.values()) for winner in found}) == len(found) == priors.WINNERS
    assert not [winner for winner in found if winner.config in (POOR, DEFAULT)]


def test_all_machines_with_the_same_problem_are_looked_at_where_only_they_count() -> None:
    store, here = MemoryStore(), subject("second device")
    for place in range(priors.MOST + 3):
        store.add(subject(f"busy {place}"), [Trial(DEFAULT, Timing((1.0,)))])
    for place in range(8):
        store.conclude(subject(f"device {place}"), won({"a": 1, "b": place}))
    store.conclude(subject("tied"), Verdict("tie", DEFAULT, POOR))
    store.conclude(subject("second device", 101), won(BEST))
    found = priors.winners(store, here, most=20, only_same=True)
    assert {tuple(winner.config.values()) for winner in found} == {(0, 0), *((1, place) for place in range(8))}
    assert len(found) == 9
    assert len(priors.winners(store, here, DEFAULT, most=5, only_same=True)) == 5


def test_any_strategy_begins_with_winners_of_elsewhere_and_a_data_set_does_not() -> None:
    store = MemoryStore()
    store.conclude(subject("first device"), won(BEST))
    assert tuned(subject("second device"), store, budget=2, strategy="random").answer.config == BEST
    assert proposals(tuned(subject("third device"), store, budget=2, measure_all=True)) == ()


def test_a_run_over_an_empty_store_is_the_search_and_nothing_else() -> None:
    heard: list[events.Event] = []
    assert proposals(tuned(subject("device"), MemoryStore(), budget=40, seed=7, listener=heard.append)) == ()
    plain = search.make("auto", SPACE, seed=7, budget=40)
    plain.tell([Trial(DEFAULT, valley(DEFAULT))])
    expected: list[Config] = [DEFAULT]
    while len(expected) < 40:
        batch = plain.ask(min(4, 40 - len(expected)))
        plain.tell([Trial(config, valley(config)) for config in batch])
        expected += batch
    assert [event.config for event in heard if isinstance(event, events.Evaluated)] == expected
