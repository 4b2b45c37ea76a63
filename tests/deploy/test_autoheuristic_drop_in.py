"""The drop-in: switches, collecting into a log, and using what was learned, without torch or a GPU."""

import csv
import json
import logging
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from padding import CHOICES, Padding, save_model

import tunewise as tw
from tunewise import autoheuristic
from tunewise.autoheuristic import AHContext, AHOperation, AutoHeuristic, LocalFeedback, switches
from tunewise.deploy import autoheuristic as drop_in
from tunewise.errors import InvalidData, InvalidDecision, InvalidFile, InvalidPolicy, InvalidProblem, InvalidTrial
from tunewise.formats import datasets


def rows_of(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        file.readline()
        return list(csv.reader(file))[1:]


def test_making_one_and_asking_it_measures_nothing_by_default(home: Path) -> None:
    it = Padding()
    assert it.ask().get_choice() == "plain"
    assert not it.asked
    assert not (home / "autoheuristic").exists()


def test_the_constructor_measures_nothing_even_where_collecting_is_on(tmp_path: Path) -> None:
    it = Padding()
    it.ask(collect=True, log_path=tmp_path / "log.txt")
    assert not it.asked


def test_collecting_logs_every_choice_in_autoheuristics_own_format(tmp_path: Path) -> None:
    it, path = Padding(), tmp_path / "log.txt"
    assert it.ask(n=8, collect=True, log_path=path).get_choice() == "plain"
    first, header, *rows = path.read_text().splitlines()
    assert {"name": "padding", "numerical_features": ["n"], "categorical_features": ["dtype"]}.items() <= json.loads(
        first
    ).items()
    assert header == "n,dtype,choice,feedback"
    assert rows == ["8,int32,plain,5.0", "8,int32,pad,10.0"]


def test_a_problem_asked_again_is_neither_measured_nor_logged_again(tmp_path: Path) -> None:
    it, path = Padding(), tmp_path / "log.txt"
    asked = it.ask(collect=True, log_path=path)
    for _ in range(5):
        asked.get_choice()
        it.ask(collect=True, log_path=path).get_choice()
    drop_in._logs.clear()  # as in a new process
    it.ask(collect=True, log_path=path).get_choice()
    assert it.asked == {"plain": 1, "pad": 1}
    assert len(rows_of(path)) == 2


def test_repeats_are_measured_in_turns(tmp_path: Path) -> None:
    it, path = Padding(), tmp_path / "log.txt"
    asked = it.ask(log_path=path)
    assert asked.collect(2) == 4
    assert [row[2] for row in rows_of(path)] == ["plain", "pad", "plain", "pad"]
    assert asked.collect(3) == 2
    assert asked.collect(3) == 0


def test_collected_feedback_can_be_asked_for(tmp_path: Path) -> None:
    asked = Padding().ask(log_path=tmp_path / "log.txt")
    assert asked.get_collected_feedback("pad") is None
    asked.collect()
    assert asked.get_collected_feedback("pad") == 10.0


def test_odd_names_and_values_survive_the_log(tmp_path: Path) -> None:
    it, path = Padding(), tmp_path / "log.txt"
    odd = ["a,b", 'say "hi"', "unit=µs", "two\nlines", "one\rmore"]
    for dtype in odd:
        it.ask(dtype=dtype, choices=["plain", "pad,16"], log_path=path, collect=True).get_choice()
    datasets.write(datasets.read([path]), tmp_path / "written.txt")
    for data in (datasets.read([path]), datasets.read([tmp_path / "written.txt"])):
        assert len(data) == len(odd)
        assert sorted(str(data.problem(number)["dtype"]) for number in range(len(odd))) == sorted(odd)
        assert {config["choice"] for config in data.configs} == {"plain", "pad,16"}


def test_what_the_log_says_of_the_device_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    Padding().ask(collect=True, log_path=path).get_choice()
    (device,) = datasets.read([path]).devices
    assert device["hardware.kind"] == "cpu"
    assert device["hardware.name"]


@pytest.mark.parametrize("difference", [{"name": "other"}, {"dtype": None}])
def test_a_log_about_something_else_is_refused(tmp_path: Path, difference: dict[str, Any]) -> None:
    path = tmp_path / "log.txt"
    Padding().ask(collect=True, log_path=path).get_choice()
    before = path.read_bytes()
    if "name" in difference:
        other = Padding().ask(log_path=path, **difference)
    else:
        context = AHContext()
        context.add_feature("n", 8)
        other = AutoHeuristic(lambda: "plain", CHOICES, LocalFeedback(lambda _: 1.0), context, "padding", log_path=path)
    with pytest.raises(InvalidData, match="something else"):
        other.collect()
    assert path.read_bytes() == before


def test_a_file_that_is_no_log_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("Chapter 1\n")
    with pytest.raises(InvalidFile, match="no AutoHeuristic log"):
        Padding().ask(log_path=path).collect()
    assert path.read_text() == "Chapter 1\n"


def test_a_log_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidFile, match="log path"):
        Padding().ask(log_path=tmp_path / "file" / "log.txt").collect()


def test_a_torn_row_costs_no_other(tmp_path: Path) -> None:
    it, path = Padding(), tmp_path / "log.txt"
    it.ask(n=1, log_path=path).collect()
    path.write_bytes(path.read_bytes()[:-9])  # killed in the middle of the last row
    drop_in._logs.clear()
    it.ask(n=2, log_path=path).collect()
    assert [row[:3] for row in rows_of(path) if len(row) == 4 and row[0] == "2"] == [
        ["2", "int32", "plain"],
        ["2", "int32", "pad"],
    ]
    it.ask(n=1, log_path=path).collect()
    assert it.asked == {"plain": 2, "pad": 3}


def test_a_choice_that_fails_is_a_row_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def feedback(choice: str) -> float:
        if choice == "pad":
            raise MemoryError("too large")
        return 1.0

    path = tmp_path / "log.txt"
    with caplog.at_level(logging.WARNING):
        Padding().ask(feedback=feedback, collect=True, log_path=path).get_choice()
    assert [row[-1] for row in rows_of(path)] == ["1.0", "inf"]
    assert "choice pad failed with MemoryError" in caplog.text


def test_timings_from_elsewhere_are_recorded_once(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    asked = Padding().ask(feedback=None, log_path=path)
    assert asked.record({"plain": 2.0, "pad": math.nan}) == 2
    assert asked.record({"plain": 3.0}) == 0
    assert [row[2:] for row in rows_of(path)] == [["plain", "2.0"], ["pad", "inf"]]
    with pytest.raises(InvalidTrial, match="not a time"):
        Padding().ask(n=9, log_path=path).record({"plain": 0.0})
    with pytest.raises(InvalidTrial, match="the feedback None of pad is not a time"):
        Padding().ask(n=9, log_path=path).record({"pad": None})  # type: ignore[dict-item]
    with pytest.raises(InvalidTrial, match="'pda' is not one of the choices plain, pad"):
        Padding().ask(n=9, log_path=path).record({"plain": 1.0, "pda": 1.0})
    assert len(rows_of(path)) == 2


def test_without_feedback_nothing_is_collected(tmp_path: Path) -> None:
    asked = Padding().ask(feedback=None, collect=True, log_path=tmp_path / "log.txt")
    assert asked.get_choice() == "plain"
    with pytest.raises(InvalidDecision, match="no feedback"):
        asked.collect()


def test_the_environment_switches_by_the_decisions_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    it, path = Padding(), tmp_path / "log.txt"
    monkeypatch.setenv("TUNEWISE_COLLECT", "other, padding")
    monkeypatch.setenv("TUNEWISE_LOG_PATH", str(path))
    tw.configure()
    it.ask().get_choice()
    it.ask(name="third").get_choice()
    assert it.asked == {"plain": 1, "pad": 1}
    assert len(rows_of(path)) == 2


def test_a_mode_block_and_a_switches_block_switch_too(tmp_path: Path) -> None:
    tw.configure(log_path=tmp_path / "log.txt")
    it = Padding()
    with tw.mode("collect"):
        it.ask(n=1).get_choice()
    with switches(collect="padding", log_path=tmp_path / "other.txt", repeats=2):
        it.ask(n=2).get_choice()
        assert not it.ask(n=2).is_using
    with tw.mode("off"):
        it.ask(n=3, use=None).get_choice()
    assert (len(rows_of(tmp_path / "log.txt")), len(rows_of(tmp_path / "other.txt"))) == (2, 4)


def test_switches_take_names_with_commas_between_them(tmp_path: Path) -> None:
    with switches(collect="other, padding", use="padding,third", log_path=tmp_path / "log.txt"):
        asked = Padding().ask(n=2)
        assert asked.is_collecting
        assert asked.is_using


def test_a_directory_holds_a_log_for_each_decision(tmp_path: Path) -> None:
    it = Padding()
    for name in ("padding", "../../etc/passwd", "a/b"):
        it.ask(name=name, log_path=tmp_path).collect()
    assert len(list(tmp_path.glob("*.txt"))) == 3
    assert {datasets.read([path]).decision for path in tmp_path.glob("*.txt")} == {"padding", "../../etc/passwd", "a/b"}


def test_logs_lie_in_the_home_by_default(home: Path) -> None:
    Padding().ask().collect()
    assert len(list((home / "autoheuristic").glob("padding-*.txt"))) == 1


def test_a_learned_heuristic_answers_where_use_is_on(home: Path) -> None:
    save_model(home / "heuristics" / "padding.json")
    it = Padding()
    assert [it.ask(n=n, use=True).get_choice() for n in (8, 500)] == ["plain", "pad"]
    assert it.ask(n=500).get_choice() == "plain"
    assert not it.asked


def test_the_environment_switches_use_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(home / "heuristics" / "padding.json")
    monkeypatch.setenv("TUNEWISE_USE", "padding")
    tw.configure()
    assert Padding().ask(n=500).get_choice() == "pad"


def test_the_fallback_answers_where_the_heuristic_is_unsure(home: Path) -> None:
    save_model(home / "heuristics" / "padding.json")
    assert Padding().ask(n=5000, use=True).get_choice() == "plain"
    assert Padding().ask(n=math.pi * 100, use=True).get_choice() == "pad"


def test_the_fallback_answers_where_the_choice_is_not_offered(home: Path) -> None:
    save_model(home / "heuristics" / "padding.json")
    asked = Padding().ask(n=500, use=True, choices=["plain", "transpose"])
    assert asked.get_choice() == "plain"
    assert asked.get_top_k_choices(2) == ["plain"]


def test_the_fallback_answers_on_other_hardware(home: Path) -> None:
    save_model(home / "heuristics" / "padding.json", fence={"hardware.capability": "9.0"})
    assert Padding().ask(n=500, use=True).get_choice() == "plain"


def test_top_choices_come_in_order_with_those_always_included(home: Path) -> None:
    save_model(home / "heuristics" / "padding.json")
    asked = Padding().ask(n=500, use=True)
    assert asked.get_top_k_choices(1) == ["pad"]
    assert asked.get_top_k_choices(2) == ["pad", "plain"]
    assert asked.get_top_k_choices(1, always_included=["plain", "pad"]) == ["pad", "plain"]
    assert asked.get_top_k_choices(1, always_included=["plain", "plain"]) == ["pad", "plain"]
    assert asked.get_top_k_choices(-1) == []
    assert asked.get_top_k_choices(0, always_included=["plain"]) == ["plain"]
    assert Padding().ask(n=5000, use=True).get_top_k_choices(2) is None
    assert Padding().ask(n=500).get_top_k_choices(2) is None


def test_a_precondition_keeps_everything_out(home: Path, tmp_path: Path) -> None:
    save_model(home / "heuristics" / "padding.json")
    it, seen = Padding(), []

    def never(metadata: autoheuristic.AHMetadata, context: AHContext) -> bool:
        seen.append((metadata.name, metadata.choices, context.get_value("n")))
        return False

    asked = it.ask(n=500, precondition=never, use=True, collect=True, log_path=tmp_path / "log.txt")
    assert asked.get_choice() == "plain"
    assert asked.get_top_k_choices(1) is None
    assert not it.asked
    assert seen[0] == ("padding", ("plain", "pad"), 500)


def test_operations_add_features_that_are_never_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []
    heuristic = tw.Heuristic("mine", "padding", lambda features: given.append(dict(features)) or [])  # type: ignore[func-returns-value]
    monkeypatch.setattr("tunewise.session.shelf.load_plugin", lambda name: (heuristic,))
    tw.load_heuristic(plugin="mine")
    operations = [
        AHOperation("twice", lambda data: 2 * data["n"]),
        AHOperation("is_large", lambda data: data["twice"] > 10, is_categorical=True),
    ]
    path = tmp_path / "log.txt"
    Padding().ask(augment_context=operations, use=True, collect=True, log_path=path).get_choice()
    assert given == [{"n": 8, "dtype": "int32", "twice": 16, "is_large": "True"}]
    assert path.read_text().splitlines()[1] == "n,dtype,choice,feedback"


def test_operations_become_features_of_a_training_run() -> None:
    added = autoheuristic.add_features([AHOperation("is_large", lambda data: data["n"] > 10, is_categorical=True)])
    assert added["is_large"](tw.Problem({"n": 11})) == "True"


def test_an_operation_says_the_same_in_training_as_in_use(tmp_path: Path) -> None:
    operations = [
        AHOperation("is_wide", lambda data: data["is_flat"] and data["bits"] > 8, is_categorical=True),
        AHOperation("wide_bits", lambda data: data["bits"] * data["is_wide"]),
        AHOperation("is_known", lambda data: data["owner"] is not None, is_categorical=True),
    ]
    path, used = tmp_path / "log.txt", []
    for is_flat, bits, owner in ((True, 16, None), (False, 16, "me"), (True, 8, None)):
        context = AHContext()
        for name, value in {"is_flat": is_flat, "bits": bits, "owner": owner}.items():
            context.add_feature(name, value, is_categorical=True)
        AutoHeuristic(lambda: "a", ["a", "b"], lambda choice: 1.0, context, "x", log_path=path).collect()
        used.append({name: context.plain(operations)[name] for name in ("is_wide", "wide_bits", "is_known")})
    data, added = datasets.read([path]), autoheuristic.add_features(operations)
    trained = [{name: function(data.problem(number)) for name, function in added.items()} for number in range(3)]
    assert trained == used
    assert [one["is_wide"] for one in used] == ["True", "False", "False"]
    assert [one["wide_bits"] for one in used] == [16, 0, 0]
    assert [one["is_known"] for one in used] == ["False", "True", "False"]


def test_what_breaks_on_the_way_to_an_answer_is_logged_and_the_fallback_used(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    save_model(home / "heuristics" / "padding.json")
    broken = AHOperation("ratio", lambda data: 1 / 0)
    with caplog.at_level(logging.WARNING):
        for n in (500, 501):
            assert Padding().ask(n=n, use=True, augment_context=[broken]).get_choice() == "plain"
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "ZeroDivisionError" in caplog.text


def test_a_heuristic_of_configs_is_reported_and_the_fallback_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    heuristic = tw.Heuristic("tiles", "padding", lambda features: [{"tile": 8}])
    monkeypatch.setattr("tunewise.session.shelf.load_plugin", lambda name: (heuristic,))
    tw.load_heuristic(plugin="tiles")
    with caplog.at_level(logging.WARNING):
        assert Padding().ask(use=True).get_choice() == "plain"
    assert "heuristic tiles of padding broke" in caplog.text


@pytest.mark.parametrize("choices", [[], ["a", "a"], [1, 2], "plain"])
def test_choices_are_distinct_words(choices: Any) -> None:
    with pytest.raises(InvalidDecision, match="distinct words"):
        Padding().ask(choices=choices)


def test_a_feature_has_one_name_and_numbers_are_numbers(tmp_path: Path) -> None:
    context = AHContext()
    context.add_feature("n", True)
    with pytest.raises(InvalidProblem, match="twice"):
        context.add_feature("n", 1)
    context.add_feature("dtype", "int32")
    with pytest.raises(InvalidProblem, match="is_categorical=True"):
        context.plain()


def test_a_feature_may_not_be_called_like_a_column_of_the_log(tmp_path: Path) -> None:
    context = AHContext()
    context.add_feature("choice", 1)
    asked = AutoHeuristic(lambda: "a", ["a"], LocalFeedback(lambda _: 1.0), context, "odd", log_path=tmp_path / "l")
    with pytest.raises(InvalidData, match="rename it"):
        asked.collect()


def test_a_timed_feedback_runs_the_choice() -> None:
    ran = []
    assert LocalFeedback.timed(ran.append)("pad") > 0
    assert set(ran) == {"pad"}


def test_a_clock_that_there_is_not_is_told_before_a_choice_is_blamed() -> None:
    with pytest.raises(InvalidPolicy, match="clock='cup' is not one of"):
        LocalFeedback.timed(lambda choice: None, clock="cup")  # type: ignore[arg-type]


def test_importing_it_loads_neither_torch_nor_numpy() -> None:
    heavy = "{'torch', 'numpy', 'sklearn', 'rich'}"
    code = f"import sys, tunewise; tunewise.autoheuristic.AutoHeuristic; print(sorted({heavy} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_it_explains_what_decides(home: Path) -> None:
    it = Padding()
    assert it.ask().explain().startswith("use is not switched on")
    assert it.ask(use=True).explain() == "no heuristic for padding is loaded: the fallback decides"
    save_model(home / "heuristics" / "padding.json")
    tw.refresh()
    assert it.ask(n=500, use=True).explain() == "padding.json answers 'pad'"
    assert "is not offered here" in it.ask(n=500, use=True, choices=["plain"]).explain()
    assert it.ask(n=5000, use=True).explain().startswith("padding.json abstains")
    renamed = AHContext()
    renamed.add_feature("size", 500)
    asked = AutoHeuristic(lambda: "plain", CHOICES, None, renamed, "padding", use=True)
    assert asked.explain() == "padding.json needs the feature n, which is not among size: the fallback decides"
    assert it.ask(use=True, precondition=lambda metadata, context: False).explain().startswith("the precondition")
    broken = [AHOperation("share", lambda data: 1 / (data["n"] - 500))]
    said = "padding.json is not asked, as the features cannot be had: ZeroDivisionError: "
    assert it.ask(n=500, use=True, augment_context=broken).explain().startswith(said)
    save_model(home / "heuristics" / "padding.json", fence={"hardware.kind": "cuda"})
    tw.refresh()
    assert "is for hardware.kind='cuda'" in it.ask(n=500, use=True).explain()
    assert not it.asked
