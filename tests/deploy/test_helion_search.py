"""Our search over a Helion kernel: what it spends, remembers and answers."""

from math import inf
from typing import Any

import pytest
from helion_standins import Bench, Config, call, matmul_spec, whole_is_best

import tunewise
from tunewise.decision import Failure
from tunewise.deploy import helion_memory as memory
from tunewise.deploy.helion_search import Budget, Hunt, Seeds
from tunewise.errors import InvalidSetting
from tunewise.heuristics import Heuristic
from tunewise.session.context import current_store

SPEND = Budget(evaluations=20, patience=8, gain=1.05)


def hunt(size: int, bench: Bench, budget: Budget = SPEND, **options: Any) -> Config:
    return Hunt(call(size), bench, budget, **options).go()


def test_the_best_is_found_remembered_and_answered_without_measuring() -> None:
    bench = Bench(whole_is_best(64))
    assert hunt(64, bench).config["block_sizes"] == [64, 64]
    answer = memory.answer(call(64))
    assert answer is not None
    assert (answer.rung, answer.config["block_sizes_0"]) == ("memory", 64)
    assert memory.answer(call(32)) is None


def test_every_result_is_in_the_store_failures_too() -> None:
    def broken(config: dict[str, Any]) -> float:
        return inf if config["loop"] == "pipelined" else whole_is_best(64)(config)

    bench = Bench(broken)
    hunt(64, bench)
    trials = current_store().trials(call(64).subject)
    assert len(trials) == len(bench.asked)
    failed = [trial for trial in trials if isinstance(trial.outcome, Failure)]
    assert {trial.outcome for trial in failed} == {Failure("runtime", "Helion says: error")}
    assert all(trial.config["loop"] == "pipelined" for trial in failed)


def test_what_is_known_of_another_size_comes_first_and_spares_configs() -> None:
    alone, seeded = Bench(whole_is_best(64)), Bench(whole_is_best(64))
    hunt(64, alone)
    tunewise.configure(home=tunewise.settings.current().home / "other")
    hunt(32, Bench(whole_is_best(32)))
    hunt(64, seeded)
    assert seeded.asked[1]["block_sizes"] == [64, 64]  # the largest there is the largest here
    assert len({str(config) for config in seeded.asked}) < len({str(config) for config in alone.asked})
    (verdict,) = current_store().verdicts(call(64).subject)
    assert verdict.source == "memory"


def test_seeds_of_users_heuristics_and_helion_are_told_apart() -> None:
    rule = Heuristic("rule", "helion.matmul", lambda features: [{"block_sizes_0": 32}])
    tunewise.load_heuristic(rule)
    seeds = Seeds([Config({"block_sizes": [16, 16]})], [Config({"block_sizes": [32, 32]}), Config({"nonsense": 1})])
    hunt(64, Bench(whole_is_best(64)), seeds=seeds)
    tunewise.drop_heuristics()
    (verdict,) = current_store().verdicts(call(64).subject)
    assert [(p.by, p.fate) for p in verdict.proposals][:3] == [
        ("seed", "tried"),
        ("rule", "tried"),
        ("helion", "tried"),
    ]


def test_a_killed_search_measures_nothing_again() -> None:
    bench = Bench(whole_is_best(64), dies_after=5)
    with pytest.raises(KeyboardInterrupt):
        hunt(64, bench)
    first = [str(trial.config) for trial in current_store().trials(call(64).subject)]
    rest = Bench(whole_is_best(64))
    resumed = Hunt(call(64), rest, SPEND)
    resumed.go()
    runs = {trial.run for trial in current_store().trials(call(64).subject)}
    assert len(first) > 0
    assert runs == {resumed.run}
    searched = current_store().trials(call(64).subject)[len(first) : len(first) + resumed.measured]
    assert not {str(trial.config) for trial in searched} & set(first)


def test_the_default_stands_where_nothing_is_faster_beyond_the_noise() -> None:
    bench = Bench(lambda config: 1.0)
    default = call(64).knobs.helion(call(64).knobs.default)
    assert hunt(64, bench) == default
    (verdict,) = current_store().verdicts(call(64).subject)
    assert verdict.ending == "tie"


def test_the_default_is_returned_and_nothing_remembered_where_nothing_runs() -> None:
    default = call(64).knobs.helion(call(64).knobs.default)
    assert hunt(64, Bench(lambda config: inf)) == default
    assert current_store().verdicts(call(64).subject) == []


def test_no_more_is_spent_than_allowed() -> None:
    bench = Bench(whole_is_best(64))
    searching = Hunt(call(64), bench, Budget(evaluations=3, patience=None))
    searching.go()
    assert searching.measured == 3
    late = Hunt(call(32), Bench(whole_is_best(32)), SPEND, is_over=lambda: True)
    late.go()
    assert late.measured == 1  # the default, without which there is no answer


def test_configs_that_helion_refuses_are_passed_over() -> None:
    spec = matmul_spec(64, refuses=lambda config: config["block_sizes"][0] > 16)
    found = Hunt(call(64, spec), Bench(whole_is_best(64)), SPEND).go()
    assert found.config["block_sizes"] == [16, 64]


def test_trouble_of_ours_ends_the_search_with_the_best_so_far(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*given: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(memory, "conclude", broken)
    assert hunt(64, Bench(whole_is_best(64))).config["block_sizes"] == [64, 64]
    assert "the search ends early: OSError: no room" in caplog.text
    monkeypatch.setattr(memory, "known", broken)
    assert hunt(64, Bench(whole_is_best(64))) == call(64).knobs.helion(call(64).knobs.default)


def test_trouble_of_helions_benchmark_is_helions() -> None:
    def broken(configs: list[Any]) -> list[Any]:
        raise RuntimeError("no device")

    with pytest.raises(RuntimeError, match="no device"):
        Hunt(call(64), broken, SPEND).go()


def test_the_mode_says_what_spares_tuning() -> None:
    tunewise.load_heuristic(Heuristic("rule", "helion.matmul", lambda features: [{"block_sizes_0": 32}]))
    said = {}
    for mode in ("use", "tune", "collect", "replay", "off"):
        with tunewise.mode(mode):
            answer = memory.answer(call(64))
            said[mode] = None if answer is None else answer.rung
    assert said == {"use": "learned", "tune": None, "collect": None, "replay": "default", "off": None}
    with tunewise.mode("tune", accept=["learned"]):
        accepted = memory.answer(call(64))
    assert accepted is not None
    assert accepted.config["block_sizes_0"] == 32
    tunewise.drop_heuristics()


@pytest.mark.parametrize("wrong", [{"evaluations": 0}, {"patience": 0}, {"gain": 0.5}, {"evaluations": 2.5}])
def test_a_budget_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match=next(iter(wrong))):
        Budget(**wrong)
