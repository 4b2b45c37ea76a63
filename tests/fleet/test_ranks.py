"""Ranks answer alike, whatever each of them remembers and whoever dies: jobs of real processes."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from jobs import Foreman

from limits import stretched

LIMIT_S = stretched(20.0)
APART_S = stretched(8.0)  # where ranks ask one after another: a quarter of the limit is waited for the others
SOON_S = stretched(3.0)  # a limit that is waited for
ELSEWHERE: dict[str, Any] = {"address": "127.0.0.2"}  # not known to be this machine's own: the ranks find out
APART: dict[str, Any] = {**ELSEWHERE, "apart": True}  # and do not see each other's files


@pytest.fixture(scope="module")
def foreman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Foreman]:
    found = Foreman(tmp_path_factory.mktemp("jobs"))
    yield found
    found.close()


def disagreements(seen: list[Any]) -> int:
    """Return on how many problems not all ranks had the same answer."""
    assert all(rank is not None for rank in seen)
    return sum(len(set(ways)) > 1 for ways in zip(*(rank["ways"] for rank in seen), strict=True))


def survivors(seen: list[Any]) -> list[Any]:
    """Return what the ranks that were not killed saw; one was."""
    assert sum(rank is None for rank in seen) == 1
    return [rank for rank in seen if rank is not None]


def litter(place: Path) -> list[Path]:
    return [*place.rglob("board-*"), *place.rglob(".tunewise-ranks-*")]


def tune_alike(foreman: Foreman, problems: int, store: str = "tcp") -> None:
    seen = foreman.run("close_problems", 8, store=store, problems=problems, limit_s=LIMIT_S)
    assert disagreements(seen) == 0
    assert all(rank["again"] == rank["ways"] for rank in seen)
    assert all(rank["kept"] == rank["ways"] for rank in seen)


def test_eight_ranks_agree_on_close_problems(foreman: Foreman) -> None:
    tune_alike(foreman, 4)


@pytest.mark.full
@pytest.mark.parametrize("store", ["tcp", "file"])
def test_eight_ranks_agree_on_forty_close_problems(foreman: Foreman, store: str) -> None:
    tune_alike(foreman, 40, store)


@pytest.mark.parametrize(
    ("store", "where", "board"),
    [("file", {}, "SharedBoard"), ("tcp", ELSEWHERE, "SharedBoard"), ("tcp", APART, "TorchBoard")],
)
def test_four_ranks_share_the_work_and_the_next_job_starts_from_memory(
    foreman: Foreman, tmp_path: Path, store: str, where: dict[str, Any], board: str
) -> None:
    job = {"store": store, "homes": tmp_path, "problems": 2, "limit_s": LIMIT_S, **where}
    seen = foreman.run("close_problems", 4, **job)
    assert disagreements(seen) == 0
    assert {rank["board"] for rank in seen} == {board}
    alone = 4 * 2 * 12  # ranks, problems, configs
    assert 2 * 12 <= sum(rank["measured"] for rank in seen) <= alone / 3
    again = foreman.run("close_problems", 4, **job)
    assert [rank["measured"] for rank in again] == [0, 0, 0, 0]
    assert [rank["ways"] for rank in again] == [rank["ways"] for rank in seen]
    assert not litter(foreman.place)


def test_ranks_with_one_store_agree_and_conclude_once(foreman: Foreman) -> None:
    seen = foreman.run("close_problems", 3, problems=2, one_home=True, limit_s=LIMIT_S)
    assert disagreements(seen) == 0
    assert all(rank["verdicts"] == [1, 1] for rank in seen)


@pytest.mark.parametrize(
    ("who", "signal"), [("leader", "SIGKILL"), ("leader", "SIGSTOP"), ("finisher", "SIGKILL"), ("finisher", "SIGSTOP")]
)
def test_survivors_agree_when_a_rank_dies_or_stops(foreman: Foreman, who: str, signal: str) -> None:
    seen = survivors(foreman.run("one_dies", 4, who=who, signal=signal, limit_s=LIMIT_S))
    assert disagreements(seen) == 0
    assert len({rank["first"] for rank in seen}) == 1
    assert all(rank["seconds"] < 2 * LIMIT_S for rank in seen)
    assert all("configs tried" in rank["reason"] for rank in seen)  # the others went on without it


@pytest.mark.full
@pytest.mark.parametrize("calls", [0, 1, 10, 100, 300, 1000, 3000, 10_000])
@pytest.mark.parametrize("signal", ["SIGKILL", "SIGSTOP"])
def test_survivors_agree_wherever_the_leader_dies(foreman: Foreman, calls: int, signal: str) -> None:
    seen = foreman.run("one_dies", 4, who="leader", signal=signal, calls=calls, limit_s=LIMIT_S)
    assert disagreements([rank for rank in seen if rank is not None]) == 0
    assert sum(rank is None for rank in seen) <= 1  # none, where it did not get that far


def heard_in(job: Path) -> dict[str, set[str]]:
    """Return every answer that any rank had to each problem, those that died later among them."""
    answers: dict[str, set[str]] = {}
    for path in job.glob("heard *"):
        for line in path.read_text().splitlines():
            problem, way = line.split()
            answers.setdefault(problem, set()).add(way)
    return answers


def kill_at_random(foreman: Foreman, seed: int, store: str) -> None:
    rng = random.Random(seed)
    doomed = {0, rng.randrange(1, 4)} if seed % 2 else {rng.randrange(4)}
    deaths = {str(rank): rng.uniform(0.1, 1.2) for rank in doomed}
    seen = foreman.run("chaos", 4, store=store, problems=4, deaths=deaths, limit_s=LIMIT_S)
    assert all(rank == "alive" for number, rank in enumerate(seen) if number not in doomed)
    answers = heard_in(foreman.last)
    assert len(answers) == 4
    assert all(len(ways) == 1 for ways in answers.values())


@pytest.mark.parametrize("seed", [1, 2])
def test_nobody_heard_anything_else_when_ranks_are_killed_at_any_moment(foreman: Foreman, seed: int) -> None:
    kill_at_random(foreman, seed, "tcp")


@pytest.mark.full
@pytest.mark.parametrize("store", ["tcp", "file"])
@pytest.mark.parametrize("seed", range(10, 30))
def test_nobody_heard_anything_else_in_many_jobs(foreman: Foreman, seed: int, store: str) -> None:
    kill_at_random(foreman, seed, store)


def test_the_default_stands_when_the_time_is_up(foreman: Foreman) -> None:
    seen = survivors(foreman.run("one_dies", 3, who="finisher", signal="SIGCONT", limit_s=SOON_S))
    assert all(rank["ways"] == [0, 0] for rank in seen)
    assert all(f"did not agree within {SOON_S:g} s" in rank["reason"] for rank in seen)
    assert all(rank["seconds"] < 10 * SOON_S for rank in seen)


@pytest.mark.parametrize("signal", ["SIGKILL", "SIGSTOP"])
def test_the_default_stands_when_the_store_of_ranks_on_several_machines_is_gone(foreman: Foreman, signal: str) -> None:
    seen = survivors(foreman.run("one_dies", 3, who="leader", signal=signal, limit_s=2 * SOON_S, **APART))
    assert all(rank["ways"] == [0, 0] for rank in seen)
    assert all(rank["seconds"] < 10 * SOON_S for rank in seen)


def test_when_a_store_hung_and_woke_up_the_default_stands_for_those_too_who_did_not_notice(foreman: Foreman) -> None:
    seen = foreman.run("store_hangs", 3, limit_s=SOON_S, **APART)
    assert all(rank["ways"] == [0, 0, 0, 0] for rank in seen)
    assert {rank["board"] for rank in seen} == {"TorchBoard"}


def test_ranks_that_come_when_the_store_is_gone_find_the_answer(foreman: Foreman) -> None:
    seen = survivors(foreman.run("leader_dies_first", 4, limit_s=LIMIT_S))
    assert len({rank["way"] for rank in seen}) == 1
    assert all("configs tried" in rank["reason"] for rank in seen)


def test_what_one_rank_remembers_stands_while_others_measure(foreman: Foreman) -> None:
    seen = foreman.run("warm_rank", 3, limit_s=LIMIT_S)
    assert [rank["way"] for rank in seen] == [7, 7, 7]
    assert seen[1]["measured"] == 0
    assert sum(rank["measured"] for rank in seen) <= 4  # what was begun, and no more


def test_ranks_that_remember_different_answers_use_the_first(foreman: Foreman) -> None:
    seen = foreman.run("warm_caches", 4, limit_s=APART_S)
    assert disagreements(seen) == 0
    assert all(rank["ways"] != [0] * 20 for rank in seen)
    assert [rank["unknown"] for rank in seen] == [0] * 4
    assert [rank["off"] for rank in seen] == [0] * 4
    assert [rank["pinned"] for rank in seen] == [0, 1, 2, 3]  # what a rank insists on is its own


def test_ranks_trace_the_same_code_in_a_mode_that_measures(foreman: Foreman) -> None:
    assert disagreements(foreman.run("traced_code", 2, limit_s=APART_S)) == 0


def test_nobody_waits_for_a_rank_that_never_asks_and_a_late_one_measures_nothing(foreman: Foreman) -> None:
    *asking, silent = foreman.run("some_never_ask", 4, limit_s=LIMIT_S)
    assert silent == "silent"
    assert len({rank["way"] for rank in asking}) == 1
    assert sum(rank["calls"] for rank in asking) > 0
    assert asking[-1]["calls"] == 0
    assert [rank["then"] for rank in asking] == [1, 1, 1]


def test_a_group_ends_with_the_group_and_a_fork_is_no_rank(foreman: Foreman) -> None:
    seen = foreman.run("groups_and_forks", 2, limit_s=APART_S)
    assert len({rank["first"] for rank in seen}) == 1
    assert [rank["in a child"] for rank in seen] == ["None", "None"]
    assert [rank["after"] for rank in seen] == ["None", "None"]
    assert [rank["alone"] for rank in seen] == [1, 2]
    assert [rank["second"] for rank in seen] == [2, 2]  # rank 1 asked first this time


def test_of_two_threads_with_the_same_question_one_measures(foreman: Foreman) -> None:
    seen = foreman.run("threads_of_a_rank", 2, limit_s=LIMIT_S)
    assert disagreements(seen) == 0
    assert all(rank["measured"][0] == 0 for rank in seen)


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("space", "space.way"),
        ("parameter", "space.more"),
        ("rule", "space.rules"),
        ("policy", "policy.clock"),
        ("features", "features"),
        ("check", "check.rtol"),
        ("version", "version"),
        ("library", "library.msgspec"),
    ],
)
def test_ranks_of_different_versions_use_the_default_and_name_what_differs(
    foreman: Foreman, kind: str, part: str
) -> None:
    seen = foreman.run("versions_differ", 2, kind=kind, others=[1], limit_s=LIMIT_S)
    assert [(rank["ways"], rank["some"], rank["measured"]) for rank in seen] == [([0, 0, 0, 0], 0, 0)] * 2
    for rank in seen:
        (said,) = rank["said"]
        assert "new problems get the default" in said
        assert f"{part} is " in said
        assert "on rank 0 and " in said
        assert said.endswith("on rank 1") or kind in ("space", "parameter")


@pytest.mark.parametrize("board", [{}, APART])
def test_one_rank_of_another_version_is_named(foreman: Foreman, board: dict[str, Any]) -> None:
    seen = foreman.run("versions_differ", 4, kind="policy", others=[2], limit_s=LIMIT_S, **board)
    assert [rank["ways"] for rank in seen] == [[0, 0, 0, 0]] * 4
    assert {rank["said"][0] for rank in seen} == {
        "spin: the ranks ask for different things, so new problems get the default: "
        "policy.clock is cpu on ranks 0-1, 3 and wall on rank 2"
    }


def test_ranks_with_different_defaults_use_one_of_them_and_say_so(foreman: Foreman) -> None:
    seen = foreman.run("versions_differ", 3, kind="default", others=[2], limit_s=LIMIT_S)
    assert disagreements(seen) == 0
    assert all(way in (0, 1) for rank in seen for way in rank["ways"])
    assert all("default is way=0 on ranks 0-1 and way=1 on rank 2" in rank["said"][0] for rank in seen)


def test_ranks_that_have_no_config_in_common_use_their_own_defaults_and_say_so(foreman: Foreman) -> None:
    seen = foreman.run("versions_differ", 2, kind="apart", others=[1], limit_s=LIMIT_S)
    assert [rank["ways"] for rank in seen] == [[0, 0, 0, 0], [50, 50, 50, 50]]
    assert all("default is way=0 on rank 0 and way=50 on rank 1" in rank["said"][0] for rank in seen)


def test_a_rank_of_another_version_that_comes_late_uses_what_stands_and_all_say_so(foreman: Foreman) -> None:
    seen = foreman.run("versions_differ", 2, kind="policy", others=[1], late_s={"1": SOON_S}, limit_s=2 * SOON_S)
    assert disagreements(seen) == 0
    assert seen[0]["ways"][0] == 7  # what it remembers, as nobody else had asked by then
    assert all(len(rank["said"]) == 1 for rank in seen)
    assert seen[0]["ways"][-1] == 0  # new problems


def test_a_rank_whose_rules_forbid_what_stands_says_so(foreman: Foreman) -> None:
    job: dict[str, Any] = {"kind": "code", "others": [1], "late_s": {"1": SOON_S}, "limit_s": 2 * SOON_S}
    others, stricter = foreman.run("versions_differ", 2, **job)
    assert (others["ways"][0], stricter["ways"][0]) == (7, 0)
    (said,) = stricter["said"]
    assert "what stands for all ranks is not in the space of rank 1, which uses its default" in said
