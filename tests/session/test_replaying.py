"""A replay depends on its seed only, counts what it should, and is scored by what was recorded."""

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from tunewise.decision import Config, Failure, Timing, Trial
from tunewise.errors import InvalidSetting, NotFound
from tunewise.formats.recorded import Recording, Row, read, recording
from tunewise.search import STRATEGIES
from tunewise.session import replaying
from tunewise.session.contest import Contest, hold
from tunewise.session.replaying import Replayed, replay
from tunewise.session.scores import marks, score_space

PNPOLY = Path(__file__).parents[1] / "data" / "pnpoly.json.gz"
CONVOLUTION = PNPOLY.with_name("convolution.json")
NAMES = ["auto", *(strategy.name for strategy in STRATEGIES if not strategy.name.startswith("optuna:"))]


def five() -> Recording:
    """Five configs: two fail, then 4 s, 2 s and 8 s; one sample of the 2 s looks slower than one of the 8 s."""
    rows = [
        Row({"a": 0}, Failure("compile")),
        Row({"a": 1}, Failure("runtime")),
        Row({"a": 2}, Timing((4.0,)), (4.0,)),
        Row({"a": 3}, Timing((2.0,)), (9.0,)),
        Row({"a": 4}, Timing((8.0,)), (3.0,)),
    ]
    return recording("five", rows)


def test_failed_configs_count_and_the_worst_time_stands_until_one_succeeds() -> None:
    run = replay(five(), "exhaustive", budget=5)
    assert run.curve == (4.0, 4.0, 2.0, 1.0, 1.0)
    assert run.rows == (0, 1, 2, 3, 4)


def test_a_run_ends_with_its_budget_or_with_the_space() -> None:
    assert len(replay(five(), "random", budget=3).curve) == 3
    assert len(replay(five(), "random", budget=100).curve) == 5


def test_a_run_that_ended_early_stays_where_it_was() -> None:
    run = replay(five(), "exhaustive", budget=100)
    assert run.after(3) == 2.0
    assert run.after(100) == 1.0


def test_evaluations_needed_are_counted_from_one() -> None:
    run = replay(five(), "exhaustive", budget=5)
    assert (run.needed(2.0), run.needed(1.05)) == (3, 4)
    assert replay(five(), "exhaustive", budget=3).needed(1.05) == inf


def test_with_noise_the_config_that_looks_best_is_scored_by_its_true_time() -> None:
    run = replay(five(), "exhaustive", budget=5, noise=True)
    assert run.curve == (4.0, 4.0, 2.0, 2.0, 4.0)


def test_noise_depends_on_the_seed_and_on_nothing_else() -> None:
    (pnpoly,) = read(PNPOLY)
    first, again = (replay(pnpoly, "local", budget=60, seed=4, noise=True) for _ in range(2))
    assert (first.rows, first.curve) == (again.rows, again.curve)
    assert first.rows != replay(pnpoly, "local", budget=60, seed=4).rows


@pytest.mark.parametrize("name", NAMES)
def test_a_run_depends_on_its_seed_only(name: str) -> None:
    (pnpoly,) = read(PNPOLY)
    (fresh,) = read(PNPOLY)
    alone = replay(fresh, name, budget=60, seed=1)
    for seed in (0, 1, 2):
        after_others = replay(pnpoly, name, budget=60, seed=seed)
    after_others = replay(pnpoly, name, budget=60, seed=1)
    assert after_others.rows == alone.rows


class Circling:
    """Asks the same two configs again and again, then a third, and hears everything."""

    name = "circling"

    def __init__(self) -> None:
        self.heard: list[Trial] = []
        self.origins: list[str] = []

    def ask(self, n: int) -> list[Config]:
        return [{"a": [2, 3, 2, 3, 2, 4][len(self.heard) % 6]}]

    def tell(self, trials: list[Trial], *, origin: str = "") -> None:
        self.origins.append(origin)
        if not origin:
            self.heard += trials


def test_configs_asked_again_are_free_and_going_in_circles_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    circling = Circling()
    monkeypatch.setattr(replaying, "make", lambda *_, **__: circling)
    run = replay(five(), "circling", budget=4)
    assert run.rows == (2, 3, 4)
    assert len(circling.heard) > 100


def test_priors_are_told_first_under_their_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    circling = Circling()
    monkeypatch.setattr(replaying, "make", lambda *_, **__: circling)
    donor = recording("donor", [Row({"a": 0}, Timing((1.0,)))])
    replay(five(), "circling", budget=2, priors=[donor, replace(donor, name="other")])
    assert circling.origins[:3] == ["donor", "other", ""]


def test_a_prior_that_is_the_recording_itself_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="the prior copy is the recording five itself"):
        replay(five(), "random", budget=2, priors=[replace(five(), name="copy")])


def test_scores_are_geometric_means_and_lower_medians() -> None:
    runs = [Replayed((4.0, 1.0), (0, 1), 0.1), Replayed((4.0, 4.0), (0, 1), 0.3), Replayed((1.0,), (0,), 0.1)]
    score = score_space("x", 2.0, runs, budget=2)
    assert score.curve == pytest.approx((16 ** (1 / 3), 4 ** (1 / 3)))
    assert (score.to_5_percent, score.to_1_percent) == (2, 2)
    assert score.overhead_ms == pytest.approx(100.0)
    assert score_space("x", 2.0, runs[1:2], budget=2).to_5_percent is None


def test_marks_end_with_the_budget() -> None:
    assert marks(400) == (10, 25, 50, 100, 200, 400)
    assert marks(399) == (10, 25, 50, 100, 200)
    assert marks(7) == (7,)
    assert marks(2000)[-2:] == (800, 2000)


def test_the_number_of_processes_changes_no_result() -> None:
    contest = Contest((PNPOLY, CONVOLUTION), ("random", "genetic"), budget=30, seeds=3, noise=True)
    heard: list[tuple[int, int]] = []
    alone = hold(contest, jobs=1)
    together = hold(contest, jobs=2, progress=lambda done, total: heard.append((done, total)))
    assert [[space.curve for space in score.spaces] for score in alone] == [
        [space.curve for space in score.spaces] for score in together
    ]
    assert heard == [(done, 12) for done in range(1, 13)]


def test_a_contest_refuses_its_own_files_as_priors_and_unknown_strategies(tmp_path: Path) -> None:
    link = tmp_path / "other-name.gz"
    link.symlink_to(PNPOLY)
    with pytest.raises(InvalidSetting, match="would give the answer away"):
        hold(Contest((PNPOLY,), ("random",), priors=(link,)))
    with pytest.raises(NotFound, match="'no-such' is not one of"):
        hold(Contest((PNPOLY,), ("random", "no-such")))
