"""A runner makes problems up, measures every choice on each, and goes on where it stopped."""

import csv
import logging
import random
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from padding import Padding, save_model

from tunewise.autoheuristic import BenchmarkRunner
from tunewise.errors import MissingPart
from tunewise.formats import datasets


class Ready(BenchmarkRunner):
    """Says what there is to measure and leaves the rest to us."""

    def __init__(self) -> None:
        super().__init__("padding")
        self.asked: Counter[str] = Counter()

    def create_input(self) -> tuple[Any, ...]:
        return (random.randint(1, 10**6), random.choice(["int32", "int64"]))

    def get_features(self, *args: Any) -> dict[str, Any]:
        return dict(zip(("n", "dtype"), args, strict=True))

    def get_choices(self, *args: Any) -> list[str]:
        return ["plain", "pad"]

    def measure_ms(self, choice: str, *args: Any) -> float:
        self.asked[choice] += 1
        return 1.0 + len(choice)


class Theirs(BenchmarkRunner):
    """Runs code that asks an AutoHeuristic, as AutoHeuristic's own runners do."""

    def __init__(self) -> None:
        super().__init__("padding")
        self.it, self.chosen = Padding(), Counter[str]()

    def create_input(self) -> tuple[Any, ...]:
        return (random.choice([8, 500]),)

    def run_benchmark(self, *args: Any) -> None:
        self.chosen[self.it.ask(*args).get_choice()] += 1


def options(path: Path, samples: int, **more: Any) -> list[str]:
    words = {"out": path, "num-samples": samples, "num-reps": 2, **more}
    return ["--quiet", *(str(word) for name, value in words.items() for word in (f"--{name}", value))]


def rows_of(path: Path) -> list[list[str]]:
    return list(csv.reader(path.read_text().splitlines()[2:]))


def test_every_choice_of_every_problem_is_measured_as_often_as_asked(tmp_path: Path) -> None:
    path = Ready().run(options(tmp_path / "log.txt", 5))
    assert len(rows_of(path)) == 5 * 2 * 2
    assert datasets.read([path]).decision == "padding"


def test_a_run_that_is_started_again_measures_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    Ready().run(options(path, 3))
    again = Ready()
    again.run(options(path, 5))
    assert again.asked == {"plain": 4, "pad": 4}
    whole = tmp_path / "whole.txt"
    Ready().run(options(whole, 5))
    assert sorted(rows_of(whole)) == sorted(rows_of(path))


def test_another_seed_makes_other_problems(tmp_path: Path) -> None:
    first, second = (Ready().run(options(tmp_path / f"{seed}.txt", 3, seed=seed)) for seed in (0, 1))
    assert {row[0] for row in rows_of(first)}.isdisjoint(row[0] for row in rows_of(second))


def test_code_that_asks_an_autoheuristic_is_collected(tmp_path: Path) -> None:
    runner = Theirs()
    path = runner.run(options(tmp_path / "log.txt", 20))
    assert len(rows_of(path)) == 2 * 2 * 2
    assert runner.chosen == {"plain": 20}


def test_the_learned_heuristic_is_used_where_that_is_asked_for(tmp_path: Path, home: Path) -> None:
    save_model(home / "heuristics" / "padding.json")
    runner = Theirs()
    path = runner.run([*options(tmp_path / "log.txt", 20), "--use-heuristic"])
    assert set(runner.chosen) == {"plain", "pad"}
    assert not path.exists()


def test_progress_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Ready().run(options(tmp_path / "log.txt", 2)[1:])
    assert capsys.readouterr().out == ""


def test_a_subclass_adds_options_of_its_own(tmp_path: Path) -> None:
    runner = Ready()
    runner.parser.add_argument("--largest", type=int)
    runner.run([*options(tmp_path / "log.txt", 1), "--largest", "9"])
    assert runner.args is not None
    assert runner.args.largest == 9


@pytest.mark.parametrize("part", ["create_input", "get_features", "get_choices", "run_choice"])
def test_a_part_that_is_missing_is_named(part: str, tmp_path: Path) -> None:
    runner = BenchmarkRunner("padding")
    with pytest.raises(MissingPart, match=part):
        getattr(runner, part)(*([] if part == "create_input" else ["x"]))


def test_a_choice_is_timed_where_only_its_run_is_given() -> None:
    ran = []

    class Timed(Ready):
        measure_ms = BenchmarkRunner.measure_ms

        def run_choice(self, choice: str, *args: Any) -> None:
            ran.append((choice, *args))

    assert Timed().measure_ms("pad", 8) > 0
    assert set(ran) == {("pad", 8)}


@pytest.mark.parametrize("option", ["--num-samples", "--num-reps"])
@pytest.mark.parametrize("value", ["-3", "0", "many"])
def test_a_count_that_is_none_is_refused(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        Ready().run([f"{option}={value}"])
    assert ended.value.code == 2
    said = "'many' is not a whole number" if value == "many" else f"{value} is less than 1"
    assert f"argument {option}: {said}" in capsys.readouterr().err.splitlines()[-1]


def test_where_the_log_is_in_a_directory_is_told(tmp_path: Path) -> None:
    path = Ready().run(options(tmp_path, 2))
    assert path.parent == tmp_path
    assert len(rows_of(path)) == 2 * 2 * 2


def test_a_runner_whose_name_nobody_asks_by_says_that_nothing_was_collected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Misspelled(Theirs):
        def __init__(self) -> None:
            super().__init__()
            self.name = "pading"

    with caplog.at_level(logging.WARNING, "tunewise"):
        Misspelled().run(options(tmp_path / "log.txt", 2))
        Theirs().run(options(tmp_path / "log.txt", 2))
    assert [record.getMessage().split(":")[:2] for record in caplog.records] == [["pading", " nothing was collected"]]


def test_an_interrupted_run_says_so_in_a_line_and_keeps_its_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(Ready):
        def create_input(self) -> tuple[Any, ...]:
            if self.asked["pad"] >= 2:
                raise KeyboardInterrupt
            return super().create_input()

    path = tmp_path / "log.txt"
    with pytest.raises(SystemExit) as ended:
        Interrupted().run(options(path, 9))
    assert ended.value.code == 130
    assert capsys.readouterr().err.splitlines() == [
        f"interrupted: {path} has what was measured, and the same command goes on from there"
    ]
    assert len(rows_of(path)) == 4


def test_chance_of_torch_begins_anew_for_every_sample_without_touching_other_chance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    Ready().run(options(tmp_path / "without.txt", 2))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(manual_seed=seeds.append))  # type: ignore[arg-type]
    for name in ("with.txt", "again.txt"):
        Ready().run(options(tmp_path / name, 2))
    assert seeds[:2] == seeds[2:]
    assert seeds[0] != seeds[1]
    assert rows_of(tmp_path / "with.txt") == rows_of(tmp_path / "without.txt")
