"""Seeds, the trust in who proposed them, and what is tried around them."""

from collections.abc import Callable, Sequence

from tunewise.decision import Config, Failure, Outcome, Space, Timing, Trial
from tunewise.search import Exhaustive, RandomSearch, Seed, Seeded

SPACE = Space({"a": list(range(20)), "b": list(range(20))})


def valley(config: Config) -> Outcome:
    """Return a time that falls towards a=12, b=7, where it is 1 s."""
    return Timing((1.0 + abs(config["a"] - 12) + abs(config["b"] - 7),))  # type: ignore[operator]


def drive(seeded: Seeded, times: int, outcome: Callable[[Config], Outcome] = valley) -> list[tuple[int, int]]:
    """Return the first configs asked, one at a time and told at once."""
    asked = []
    for _ in range(times):
        (config,) = seeded.ask(1)
        asked.append((config["a"], config["b"]))
        seeded.tell([Trial(config, outcome(config))])
    return asked  # type: ignore[return-value]


def of(by: str, *configs: tuple[int, int]) -> list[Seed]:
    return [Seed({"a": a, "b": b}, by, False) for a, b in configs]


def test_seeds_are_asked_first_in_rank_order_and_only_once() -> None:
    seeds = [{"a": 5, "b": 5}, {"a": 1, "b": 2}, {"a": 5, "b": 5}]
    seeded = Seeded(SPACE, [Seed(config) for config in seeds], Exhaustive(SPACE))
    asked = [config for _ in range(100) for config in seeded.ask(7)]
    assert asked[:2] == seeds[:2]
    assert len(asked) == 400


def test_whoever_proposed_a_poor_seed_is_not_asked_for_more() -> None:
    seeded = Seeded(SPACE, of("bad", (0, 19), (0, 18), (0, 17)), RandomSearch(SPACE))
    asked = drive(seeded, 10, lambda config: Timing((9.0 if config["a"] == 0 else 1.0,)))
    assert asked[0] == (0, 19)
    assert not {(0, 18), (0, 17)} & set(asked)
    assert [(seed.config["b"], reason) for seed, reason in seeded.dropped] == [
        (18, "an earlier seed of bad took 9.0 times the best of others"),
        (17, "an earlier seed of bad took 9.0 times the best of others"),
    ]


def test_whoever_proposed_a_seed_that_fails_is_not_asked_for_more() -> None:
    seeded = Seeded(SPACE, of("bad", (0, 19), (0, 18)), RandomSearch(SPACE))
    asked = drive(seeded, 6, lambda config: Failure("compile") if config["b"] == 19 else Timing((1.0,)))
    assert (0, 18) not in asked
    assert "failed" in seeded.dropped[0][1]


def test_a_second_seed_waits_until_the_first_was_compared_with_something() -> None:
    seeded = Seeded(SPACE, of("good", (12, 8), (12, 7)), RandomSearch(SPACE))
    asked = drive(seeded, 3)
    assert asked[0] == (12, 8)
    assert asked[1] not in {(12, 8), (12, 7)}
    assert asked[2] == (12, 7)


def test_one_poor_proposer_does_not_silence_another() -> None:
    seeds = [*of("bad", (0, 19)), *of("good", (12, 8)), *of("bad", (0, 18)), *of("good", (12, 7))]
    asked = drive(Seeded(SPACE, seeds, RandomSearch(SPACE)), 4)
    assert asked[:2] == [(0, 19), (12, 8)]
    assert (12, 7) in asked
    assert (0, 18) not in asked


def test_what_a_user_insists_on_is_tried_whatever_became_of_the_first() -> None:
    seeds = [Seed({"a": 0, "b": b}) for b in (19, 18, 17)]
    assert drive(Seeded(SPACE, seeds, RandomSearch(SPACE)), 3) == [(0, 19), (0, 18), (0, 17)]


def test_single_steps_from_a_seed_that_leads_are_tried_next() -> None:
    seeded = Seeded(SPACE, of("good", (12, 8)), RandomSearch(SPACE))
    asked = drive(seeded, 5)
    steps = [abs(a - 12) + abs(b - 8) for a, b in asked]
    assert steps[0] == 0
    assert steps[1] > 1
    assert steps[2:] == [1, 1, 1]


def test_nothing_is_tried_around_a_seed_that_does_not_lead() -> None:
    seeded = Seeded(SPACE, of("bad", (0, 19)), Exhaustive(SPACE))
    assert drive(seeded, 4, lambda config: Timing((1.0 if config["a"] == 0 else 2.0,)))[1:] == [(0, 0), (0, 1), (0, 2)]


def moving(seen: list[Config]) -> Callable[[Config], Sequence[Seed]]:
    def moves(config: Config) -> Sequence[Seed]:
        seen.append(config)
        return [Seed({"a": 12, "b": b}, "mover") for b in range(20)]

    return moves


def test_moves_of_heuristics_come_in_between_and_carry_their_name() -> None:
    seen: list[Config] = []
    seeded = Seeded(SPACE, (), Exhaustive(SPACE), moves=moving(seen))
    asked = drive(seeded, 12)
    moved = [place for place in asked if place[0] == 12]
    assert 0 < len(moved) <= 3
    assert {seeded.proposer({"a": a, "b": b}) for a, b in moved} == {"mover"}
    assert seeded.proposer({"a": 0, "b": 0}) is None
    assert seen


def test_moves_that_bring_nothing_end() -> None:
    seeded = Seeded(SPACE, (), Exhaustive(SPACE), moves=moving([]))
    asked = drive(seeded, 100, lambda config: Timing((2.0 if config["a"] == 12 else 1.0,)))
    assert len([place for place in asked if place[0] == 12]) == 6


def test_a_move_to_what_the_search_asked_before_stays_the_searchs_own() -> None:
    seeded = Seeded(SPACE, (), Exhaustive(SPACE), moves=lambda config: [Seed({"a": 0, "b": 1}, "mover")])
    seeded.ask(4)
    seeded.tell([Trial({"a": 0, "b": 0}, Timing((1.0,)))])
    seeded.ask(4)
    assert seeded.proposer({"a": 0, "b": 1}) is None
