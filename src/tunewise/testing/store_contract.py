"""The contract of every store: inherit it, say how a store is made, and the tests are there."""

import math
import random
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tunewise.decision import Config, Environment, Failure, Miss, Part, Problem, Subject, Timing, Trial, Verdict
from tunewise.errors import InvalidData, InvalidTrial, StoreError
from tunewise.formats.records import Record
from tunewise.store import Prune, Sign, Store, elsewhere


def subject(decision: str = "gemm", m: int = 64, *, cpu: str = "test", release: str = "6.1") -> Subject:
    """Return a subject that differs from others by what is given; `release` is a part that only warns."""
    parts = (Part("hardware.name", cpu, "must"), Part("hardware.isa", ["avx2", "fma"], "must"))
    environment = Environment((*parts, Part("os.release", release, "warn"), Part("python.patch", "3.11.9", "ignore")))
    policy = (("clock", "cpu"), ("threads", 1), ("steps", None))
    return Subject(decision, Problem({"m": m, "ratio": 0.5, "dtype": "float32"}), policy, environment)


def timed(tile: int, *samples_s: float, run: str = "r1", at: float = 100.0) -> Trial:
    """Return a trial that ran."""
    config: Config = {"tile": tile, "order": ("i", "j", "k"), "pack": True, "scale": 1.0, "hint": None}
    return Trial(config, Timing(samples_s or (0.5, 0.25), 0.125), "random", run, at)


def won(tile: int = 32, *, at: float = 100.0) -> Verdict:
    """Return the verdict of a run that a challenger won."""
    return Verdict(
        "win", {"tile": 8}, {"tile": tile}, (0.5,) * 10, (0.25,) * 10, 2.0, 2**-10, 12, "r1", "random", "", at
    )


def sign(key: str, done: int = 0, *, kind: str = "run", at: float | None = None) -> Sign:
    """Return a sign of life, given now if no moment is said."""
    return Sign(kind, key, time.time() if at is None else at, {"done": done, "problem": {"n": 1.5}, "best_s": None})


class StoreContract:
    """What any store must do. Subclasses say how one is made; `path` is a directory that is theirs alone."""

    def make(self, path: Path) -> Store:
        """Return an empty store, or one that holds what was written under this path before."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        """Return the store under test."""
        return self.make(tmp_path / "home")

    def test_trials_come_back_equal_and_in_order(self, store: Store) -> None:
        """What was added is what is read: values, types and order."""
        given = [timed(8), Trial({"tile": 16}, Failure("crash", "SIGSEGV\n\0 \u2028"), "seed", "r1", 5.0), timed(8)]
        store.add(subject(), given[:1])
        store.add(subject(), given[1:])
        read = store.trials(subject())
        assert read == given
        assert [type(value) for value in read[0].config.values()] == [int, tuple, bool, float, type(None)]

    def test_unknown_subject_has_nothing(self, store: Store) -> None:
        """Empty means unknown."""
        store.add(subject(m=1), [timed(8)])
        assert store.trials(subject(m=2)) == []
        assert store.verdicts(subject(m=1)) == []
        assert store.recorded(subject(m=2)) is None

    def test_adding_nothing_leaves_no_trace(self, store: Store) -> None:
        """An empty batch is no subject."""
        store.add(subject(), [])
        assert store.subjects() == []

    def test_batch_with_a_senseless_trial_is_refused_whole(self, store: Store) -> None:
        """All or none: a NaN, a negative time or no sample at all spoils its batch."""
        senseless = [(float("nan"),), (-1.0,), (0.0,), (float("inf"),), ()]
        for samples in senseless:
            with pytest.raises(InvalidTrial):
                store.add(subject(), [timed(8), Trial({"tile": 1}, Timing(samples))])
        with pytest.raises(InvalidTrial):
            store.add(subject(), [timed(8), Trial({"tile": float("nan")}, Timing((1.0,)))])
        assert store.trials(subject()) == []

    def test_every_part_that_must_match_separates(self, store: Store) -> None:
        """Another decision, problem or device shares nothing; a part that only warns shares all."""
        store.add(subject(), [timed(8)])
        assert store.trials(subject("conv")) == []
        assert store.trials(subject(m=65)) == []
        assert store.trials(subject(cpu="other")) == []
        assert store.trials(subject(release="7.0")) == [timed(8)]

    def test_recorded_shows_the_environment_last_written_in(self, store: Store) -> None:
        """Parts that only warn are kept, so that a difference can be told."""
        store.conclude(subject(release="6.1"), won())
        store.conclude(subject(release="6.2"), won())
        store.conclude(subject(release="6.1"), won())
        found = store.recorded(subject(release="9"))
        assert found == subject(release="6.1")
        assert len(store.subjects()) == 1

    def test_verdicts_come_back_oldest_first(self, store: Store) -> None:
        """The last verdict is the latest."""
        store.conclude(subject(), won(16))
        store.conclude(subject(), replace(won(32), ending="tie", detail="within the noise"))
        assert [v.challenger for v in store.verdicts(subject())] == [{"tile": 16}, {"tile": 32}]
        assert store.verdicts(subject())[0] == won(16)

    def test_subjects_and_decisions_are_listed_once(self, store: Store) -> None:
        """Whatever has facts is listed, whatever was only asked is not."""
        store.add(subject("b", 1), [timed(8)])
        store.conclude(subject("a", 2), won())
        store.add(subject("b", 1), [timed(16)])
        store.miss(subject("c", 3))
        assert store.subjects() == [subject("b", 1), subject("a", 2)]
        assert store.subjects("a") == [subject("a", 2)]
        assert store.decisions() == ["a", "b"]

    def test_last_subjects_are_those_seen_last(self, store: Store) -> None:
        """Who needs a few does not read all."""
        for m in (1, 2, 3):
            store.add(subject(m=m), [timed(8)])
        store.add(subject("conv", 4), [timed(8)])
        assert store.subjects("gemm", last=2) == [subject(m=2), subject(m=3)]
        assert store.subjects(last=2) == [subject(m=3), subject("conv", 4)]
        assert store.subjects("gemm", last=9) == store.subjects("gemm")

    def test_near_subjects_come_nearest_first_with_their_verdicts(self, store: Store) -> None:
        """Only what is tuned counts, and the factor itself is near enough."""
        for m in (80, 52, 70, 81, 51, 1000):
            store.conclude(subject(m=m), won(m))
        store.conclude(subject(m=70), won(71))
        store.add(subject(m=65), [timed(8)])
        store.conclude(subject(m=64), won(64))
        found = store.near(subject(m=64), 1.25, 10)
        assert [one.subject.problem["m"] for one in found] == [70, 52, 80]
        assert [verdict.challenger for verdict in found[0].verdicts] == [{"tile": 70}, {"tile": 71}]
        assert store.near(subject(m=64), 1.25, 2) == found[:2]
        assert store.near(subject(m=64), 1.01, 2) == []

    def test_near_subjects_differ_in_numbers_only(self, store: Store) -> None:
        """Another decision, device or word is not near, however close its numbers are; what only warns may differ."""
        near = subject(m=65)
        word = replace(near, problem=Problem({**near.problem, "dtype": "float64"}))
        zero = replace(near, problem=Problem({**near.problem, "ratio": 0}))
        more = replace(near, problem=Problem({**near.problem, "k": 1}))
        policy = replace(near, policy=(("clock", "wall"), ("threads", 1), ("steps", None)))
        for other in (subject("conv", 65), subject(m=65, cpu="other"), word, zero, more, policy):
            store.conclude(other, won())
        assert store.near(subject(m=64), 2.0, 10) == []
        store.conclude(subject(m=66, release="7.0"), won())
        store.conclude(subject(m=66), won())
        assert [one.subject.problem["m"] for one in store.near(subject(m=64), 2.0, 10)] == [66]
        assert len(store.near(subject(m=64), 2.0, 10)[0].verdicts) == 2

    def test_numbers_of_any_size_are_compared(self, store: Store) -> None:
        """No number is too large, too small or too negative."""
        sizes = (1e300, 1e-300, 5e-324, 0, -3, 2**64 - 1, -(2**63), 1.7976931348623157e308, 1, 2**63)
        for size in sizes:
            store.conclude(replace(subject(), problem=Problem({"n": size})), won())
        for size in sizes:
            asked = replace(subject(), problem=Problem({"n": size}))
            assert [one.subject.problem["n"] for one in store.near(asked, 3.0, 10)] == [
                other for other in sizes if other != size and {other, size} == {2**64 - 1, 2**63}
            ]

    def test_nearest_of_very_many_are_found(self, store: Store) -> None:
        """An index finds what comparing all of them would: on one axis, on several and on more than it has."""
        for names in ("n", "mn", "mnk", "bhmnk"):
            rng = random.Random(names)
            sizes = [Problem({name: rng.randint(900, 1100) for name in names}) for _ in range(400)]
            given = [replace(subject(f"many-{names}"), problem=problem) for problem in dict.fromkeys(sizes)]
            store.absorb(Record(about, won()) for about in given)
            asked = replace(given[0], problem=Problem(dict.fromkeys(names, 1000.5)))

            def far(problem: Problem, names: str = names) -> float:
                return max(abs(math.log(float(problem[name]) / 1000.5)) for name in names)

            expected = sorted(far(about.problem) for about in given if far(about.problem) <= math.log(1.05))[:4]
            found = [far(one.subject.problem) for one in store.near(asked, 1.05, 4)]
            assert found == expected, names

    def test_kin_are_the_nearest_and_the_last_of_a_decision(self, store: Store) -> None:
        """Wherever they were measured; so many of each."""
        for m in range(100, 130):
            store.conclude(subject(m=m, cpu="there"), won(m))
        for m in (9_000, 9_500):
            store.add(subject(m=m), [timed(8)])
        store.conclude(subject("conv", 100), won())
        found = {one.subject.problem["m"]: len(one.verdicts) for one in store.kin(subject(m=99), 3)}
        assert found == {100: 1, 101: 1, 102: 1, 129: 1, 9_000: 0, 9_500: 0}
        assert len(store.kin(subject(m=9_000), 50)) == 31
        assert store.kin(subject("nobody"), 3) == []

    def test_tuned_subjects_are_read_by_the_page(self, store: Store) -> None:
        """The last rows come with how many there are."""
        for m in range(5):
            store.conclude(subject(m=m), won(m))
        store.conclude(subject(m=1), won(64))
        store.add(subject(m=7), [timed(8)])
        page = store.tuned("gemm", limit=2)
        assert ([one.subject for one in page.rows], page.total) == ([subject(m=3), subject(m=4)], 5)
        (one,) = store.tuned("gemm", Problem({"m": 1})).rows
        assert [verdict.challenger for verdict in one.verdicts] == [{"tile": 1}, {"tile": 64}]
        assert store.tuned("gemm", Problem({"m": 1, "dtype": "float32"})).total == 1
        assert store.tuned("gemm", Problem({"m": 1, "dtype": "float64"})).total == 0
        assert store.tuned("gemm", Problem({"dtype": "float32"}), 2) == page
        assert store.tuned("conv").rows == []

    def test_trials_are_read_by_the_page(self, store: Store) -> None:
        """Subject by subject, and only failed ones where that is asked."""
        failed = Trial({"tile": 1}, Failure("compile", '"is":"timing"'), "random", "r1", 5.0)
        tricky = replace(timed(4), source='"outcome":{"is":"failure"')
        store.add(subject(m=1), [timed(8), failed])
        store.add(subject(m=2), [timed(16), tricky])
        store.add(subject(m=1), [timed(32)])
        every = store.measured("gemm")
        assert [row.trial for row in every.rows] == [timed(8), failed, timed(32), timed(16), tricky]
        assert store.measured("gemm", limit=2) == replace(every, rows=every.rows[-2:])
        assert [row.trial for row in store.measured("gemm", failed=True).rows] == [failed]
        assert store.measured("gemm", Problem({"m": 2}), failed=True).total == 0
        assert store.measured("gemm", Problem({"m": 2})).total == 2

    def test_pruned_subjects_are_near_to_nothing(self, store: Store) -> None:
        """What is gone is not found, and what has lost its verdicts is not tuned."""
        store.conclude(subject(m=65), won(at=10.0))
        store.conclude(subject(m=66), won(at=10.0))
        store.add(subject(m=66), [timed(8, at=20.0)])
        assert len(store.near(subject(m=64), 2.0, 10)) == 2
        store.prune(Prune(decision="gemm", before=15.0))
        assert store.near(subject(m=64), 2.0, 10) == []
        assert [one.subject for one in store.kin(subject(m=64), 10)] == [subject(m=66)]
        store.conclude(subject(m=66), won())
        assert [one.subject for one in store.near(subject(m=64), 2.0, 10)] == [subject(m=66)]

    def test_misses_add_up_and_the_most_asked_comes_first(self, store: Store) -> None:
        """Counts are by decision and problem, wherever it was asked."""
        store.miss(subject(m=1))
        store.miss(subject(m=2), 5)
        store.miss(subject(m=1, cpu="other"), 3)
        store.miss(subject("conv"), 1)
        asked = [(miss.problem["m"], miss.count) for miss in store.misses("gemm")]
        assert asked == [(2, 5), (1, 4)]
        assert len(store.misses()) == 3

    def test_latest_sign_of_a_kind_and_key_is_kept(self, store: Store) -> None:
        """A process that goes on says so in the same place; names may hold anything."""
        now = time.time()
        first, second, again = sign("a\0'", 1, at=now - 3), sign("b", 1, at=now - 2), sign("a\0'", 2, at=now - 1)
        for given in (first, second, again, sign("a\0'", 9, kind="node", at=now)):
            store.show(given)
        assert store.signs("run") == [second, again]
        assert [given.kind for given in store.signs()] == ["run", "run", "node"]
        assert store.signs("run", since=now - 1.5) == [again]

    def test_signs_of_yesterday_are_gone(self, store: Store) -> None:
        """What no living process says is forgotten by itself."""
        store.show(sign("old", at=time.time() - 90_000))
        store.show(sign("new"))
        assert [given.key for given in store.signs()] == ["new"]

    def test_sign_that_is_too_long_is_refused(self, store: Store) -> None:
        """Signs are small: everybody who watches reads them all the time."""
        with pytest.raises(InvalidData):
            store.show(Sign("run", "a", 1.0, {"text": "x" * 40_000}))
        assert store.signs() == []

    def test_signs_are_no_facts(self, store: Store) -> None:
        """Nothing that is exported, listed or counted knows of them."""
        store.show(sign("a"))
        assert list(store.records()) == []
        assert store.subjects() == []
        assert store.info().trials == 0

    def test_forgotten_miss_is_gone(self, store: Store) -> None:
        """Tuning a problem settles its misses and no others."""
        store.miss(subject(m=1), 2)
        store.miss(subject(m=2))
        store.forget_miss(subject(m=1))
        store.forget_miss(subject(m=7))
        assert [miss.problem["m"] for miss in store.misses()] == [2]

    def test_records_absorbed_twice_are_kept_once(self, store: Store, tmp_path: Path) -> None:
        """Merging is idempotent and complete."""
        store.add(subject(m=1), [timed(8), timed(16)])
        store.conclude(subject(m=2), won())
        other = self.make(tmp_path / "other")
        assert other.absorb(store.records()) == 3
        assert other.absorb(store.records()) == 0
        assert other.trials(subject(m=1)) == store.trials(subject(m=1))
        assert other.verdicts(subject(m=2)) == [won()]
        other.close()

    def test_records_of_one_decision_leave_out_the_rest(self, store: Store) -> None:
        """A decision can be exported alone."""
        store.add(subject("a"), [timed(8)])
        store.add(subject("b"), [timed(8)])
        assert [record.subject.decision for record in store.records("b")] == ["b"]

    def test_dry_run_counts_what_prune_then_removes(self, store: Store) -> None:
        """Destruction is announced exactly."""
        store.add(subject(m=1), [timed(8, at=10.0), timed(16, at=20.0)])
        store.conclude(subject(m=1), won(at=10.0))
        rule = Prune(decision="gemm", before=15.0)
        announced = store.prune(rule, dry_run=True)
        assert (announced.trials, announced.verdicts) == (1, 1)
        assert len(store.trials(subject(m=1))) == 2
        assert store.prune(rule) == announced
        assert store.trials(subject(m=1)) == [timed(16, at=20.0)]
        assert store.verdicts(subject(m=1)) == []

    def test_prune_of_other_environments_keeps_this_one(self, store: Store) -> None:
        """Only parts that the given environment names are compared."""
        store.add(subject(cpu="here"), [timed(8)])
        store.add(subject(cpu="there"), [timed(8)])
        here = Environment((Part("hardware.name", "here", "must"),))
        assert store.prune(Prune(where=elsewhere(here))).trials == 1
        assert store.subjects() == [subject(cpu="here")]

    def test_pruning_that_keeps_answers_changes_none(self, store: Store) -> None:
        """The latest verdict of each kind stays, however old: whatever a declaration lets hold, held before."""
        older = replace(won(16, at=10.0), run="older")
        tie = replace(won(64, at=12.0), ending="tie")
        store.add(subject(m=1), [timed(8, at=10.0)])
        for verdict in (older, replace(older, run="newer", at=11.0), tie, won(32, at=13.0)):
            store.conclude(subject(m=1), verdict)
        rule = Prune(before=15.0, keep_answers=True)
        announced = store.prune(rule, dry_run=True)
        assert (announced.trials, announced.verdicts, announced.answers) == (1, 1, 0)
        assert store.prune(rule) == announced
        assert [verdict.run for verdict in store.verdicts(subject(m=1))] == ["newer", "r1", "r1"]
        assert store.trials(subject(m=1)) == []

    def test_pruning_tells_how_many_problems_lose_their_answer(self, store: Store) -> None:
        """Only where every verdict goes is there no answer any more."""
        store.conclude(subject(m=1), won(at=10.0))
        store.conclude(subject(m=2), won(at=10.0))
        store.conclude(subject(m=2), won(at=20.0))
        assert store.prune(Prune(before=15.0), dry_run=True).answers == 1
        assert store.prune(Prune(before=15.0)).answers == 1

    def test_a_decision_that_goes_as_a_whole_takes_its_misses_along(self, store: Store) -> None:
        """Misses have no age: they go with their decision only."""
        store.add(subject("a"), [timed(8, at=10.0)])
        store.miss(subject("a", 2))
        store.miss(subject("b", 2))
        assert store.prune(Prune(decision="a", before=15.0)).misses == 0
        assert store.prune(Prune(decision="a"), dry_run=True).misses == 1
        assert store.prune(Prune(decision="a")).misses == 1
        assert [miss.decision for miss in store.misses()] == ["b"]

    def test_misses_from_elsewhere_are_counted_once(self, store: Store) -> None:
        """The higher count stands, however often they are brought."""
        store.miss(subject(m=1), 5)
        store.miss(subject(m=2), 2)
        brought = [
            Miss("gemm", subject(m=m).problem, count, subject(m=m).digest) for m, count in ((1, 3), (2, 7), (3, 4))
        ]
        assert store.absorb_misses(brought) == 2
        assert store.absorb_misses(brought) == 0
        assert [(miss.problem["m"], miss.count) for miss in store.misses()] == [(2, 7), (1, 5), (3, 4)]
        assert store.absorb_misses([]) == 0

    def test_misses_from_elsewhere_that_are_settled_here_stay_settled(self, store: Store) -> None:
        """What has been tuned is not asked in vain."""
        store.conclude(subject(m=1), won())
        assert store.absorb_misses([Miss("gemm", subject(m=1).problem, 3, subject(m=1).digest)]) == 0
        assert store.misses() == []

    def test_prune_without_a_rule_is_refused(self) -> None:
        """Nobody loses everything by leaving out an argument."""
        with pytest.raises(StoreError):
            Prune()

    def test_pruned_facts_can_be_absorbed_again(self, store: Store) -> None:
        """What is gone is not known any more."""
        store.add(subject(), [timed(8)])
        saved = list(store.records())
        store.prune(Prune(decision="gemm"))
        assert store.absorb(saved) == 1

    def test_info_counts_what_is_held(self, store: Store) -> None:
        """Figures for people are right."""
        store.add(subject("a", 1), [timed(8), timed(16)])
        store.conclude(subject("b", 1), won())
        store.miss(subject("c", 1))
        info = store.info()
        assert (info.trials, info.verdicts, info.subjects, info.misses) == (2, 1, 2, 1)
        assert info.decisions == {"a": 2, "b": 0}
        assert info.trouble is None

    def test_flight_has_one_holder_among_threads(self, store: Store) -> None:
        """Threads of one process exclude each other, and every one gets its turn."""
        inside, most, turns = 0, 0, 0
        counting = threading.Lock()

        def tune() -> None:
            nonlocal inside, most, turns
            with store.flight(subject()):
                with counting:
                    inside, turns = inside + 1, turns + 1
                    most = max(most, inside)
                with counting:
                    inside -= 1

        threads = [threading.Thread(target=tune) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert (most, turns) == (1, 8)

    def test_flight_that_is_taken_can_be_declined(self, store: Store) -> None:
        """Who does not want to wait is told at once; other subjects are free."""
        taken, second, other = (store.flight(s) for s in (subject(m=1), subject(m=1), subject(m=2)))
        assert taken.acquire(0)
        assert not second.acquire(0)
        assert not second.acquire(0.03)
        assert other.acquire(0)
        taken.release()
        taken.release()
        assert second.acquire(0)
        second.release()
        other.release()

    def test_threads_lose_nothing(self, store: Store) -> None:
        """Many threads write and read at once."""
        errors: list[BaseException] = []

        def work(place: int) -> None:
            try:
                for step in range(10):
                    store.add(subject(m=place % 2), [timed(8, run=f"{place}.{step}")])
                    assert store.trials(subject(m=place % 2))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(place,)) for place in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert errors == []
        runs = {trial.run for m in (0, 1) for trial in store.trials(subject(m=m))}
        assert len(runs) == 60

    def test_closing_twice_is_harmless_and_use_opens_again(self, store: Store) -> None:
        """Close lets go of files, not of facts."""
        store.add(subject(), [timed(8)])
        store.close()
        store.close()
        assert store.trials(subject()) == [timed(8)]
