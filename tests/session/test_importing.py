"""Others' files are taken in once: measurements as seeds, winners as tables; conflicts are settled by a rule."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tunewise as tw
from tunewise.decision import Failure, Problem, Timing
from tunewise.errors import InvalidData, InvalidFile, NotFound
from tunewise.formats import foreign
from tunewise.formats.findings import Finding
from tunewise.formats.foreign import Foreign
from tunewise.heuristics.table_reading import load_table
from tunewise.session import priors
from tunewise.session.context import current_store
from tunewise.session.exporting import findings_for
from tunewise.session.importing import ImportPlan, carry_out, plan_import, table_path

P = Problem({"m": 64})


def told(tile: int, time_s: float | None, at: float = 0.0, **fields: Any) -> Finding:
    outcome = Timing((time_s,)) if time_s is not None else Failure("runtime", "died")
    return Finding("imported", P, {"tile": tile}, outcome, "H100", at=at, **fields)


def file(name: str, *findings: Finding, format: str = "t4") -> Foreign:
    return Foreign(Path(name), foreign.named(format), findings)


def imported(*files: Foreign, **options: Any) -> ImportPlan:
    plan = plan_import(files, current_store(), **options)
    carry_out(plan, current_store())
    return plan


def held() -> list[tuple[Any, float | None]]:
    found = findings_for("imported", foreign.named("t4"), current_store()).findings
    return [(one.config["tile"], one.time_s) for one in found]


def test_a_plan_changes_nothing() -> None:
    plan = plan_import([file("a", told(1, 1.0))], current_store())
    assert len(plan.records) == 1
    assert current_store().subjects() == []


def test_importing_twice_adds_nothing() -> None:
    assert len(imported(file("a", told(1, 1.0), told(2, None))).records) == 2
    again = imported(file("a", told(1, 1.0), told(2, None)))
    assert (again.records, again.known, again.conflicts) == ((), 2, ())
    assert held() == [(1, 1.0), (2, None)]


def test_one_file_given_twice_is_no_conflict() -> None:
    plan = imported(file("a", told(1, 1.0)), file("b", told(1, 1.0)))
    assert (len(plan.records), plan.known, plan.conflicts) == (1, 1, ())


def test_several_measurements_in_one_file_are_no_conflict() -> None:
    plan = imported(file("a", told(1, 1.0), told(1, 2.0)))
    assert (len(plan.records), plan.conflicts) == (2, ())


@pytest.mark.parametrize(("rule", "stands"), [("best", 1.0), ("newest", 3.0)])
def test_of_two_files_that_differ_the_best_or_the_newest_stands(rule: str, stands: float) -> None:
    plan = imported(file("a", told(1, 1.0, at=5.0)), file("b", told(1, 3.0, at=9.0)), on_conflict=rule)
    assert held() == [(1, stands)]
    (conflict,) = plan.conflicts
    assert (conflict.kept, conflict.dropped) == (("a", "b") if rule == "best" else ("b", "a"))


def test_without_dates_the_file_named_last_is_the_newest() -> None:
    imported(file("a", told(1, 3.0)), file("b", told(1, 1.0)), file("c", told(1, 2.0)), on_conflict="newest")
    assert held() == [(1, 2.0)]


def test_a_config_that_ran_is_better_than_one_that_failed() -> None:
    imported(file("a", told(1, None)), file("b", told(1, 9.0)))
    assert held() == [(1, 9.0)]


@pytest.mark.parametrize(("rule", "after"), [("best", [1.0]), ("newest", [1.0, 3.0])])
def test_the_store_is_a_side_too(rule: str, after: list[float]) -> None:
    imported(file("a", told(1, 1.0, at=5.0)))
    plan = imported(file("b", told(1, 3.0, at=9.0)), on_conflict=rule)
    assert len(plan.conflicts) == 1
    assert [time_s for _, time_s in held()] == after


def test_where_conflicts_must_not_be_nothing_is_added() -> None:
    files = [file("a", told(2, 1.0), told(1, 1.0)), file("b", told(1, 3.0))]
    with pytest.raises(InvalidData, match=r"a and b tell different things of imported, m=64: .*--on-conflict"):
        plan_import(files, current_store(), on_conflict="fail")
    assert current_store().subjects() == []


def test_other_problems_devices_and_versions_do_not_conflict() -> None:
    others = [
        replace(told(1, 2.0), problem=Problem({"m": 65})),
        replace(told(1, 2.0), device="A100"),
        replace(told(1, 2.0), versions={"cuda": "12"}),
    ]
    plan = imported(file("a", told(1, 1.0)), file("b", *others), on_conflict="fail")
    assert len(plan.records) == 4


def test_a_file_that_names_no_decision_needs_one() -> None:
    nameless = file("a", replace(told(1, 1.0), decision=""))
    with pytest.raises(InvalidData, match="a does not say which decision"):
        plan_import([nameless], current_store())
    assert imported(nameless, decision="imported").records[0].subject.decision == "imported"


@pytest.mark.parametrize("name", ["  ", "x" * 1000])
def test_a_name_that_no_decision_can_have_is_refused(name: str) -> None:
    with pytest.raises(InvalidData, match="name a --decision"):
        plan_import([file("a", told(1, 1.0))], current_store(), decision=name)


def test_the_nearest_number_is_refused_where_no_table_comes_of_it() -> None:
    with pytest.raises(InvalidData, match="none of these files tells what won"):
        plan_import([file("a", told(1, 1.0))], current_store(), nearest="m")


def test_features_and_parameters_can_be_renamed() -> None:
    (record,) = imported(file("a", told(1, 1.0)), rename={"m": "rows", "tile": "block"}).records
    assert dict(record.subject.problem) == {"rows": 64}
    assert record.fact.config == {"block": 1}  # type: ignore[union-attr]
    both = replace(told(1, 1.0), problem=Problem({"m": 1, "n": 2}))
    with pytest.raises(InvalidData, match="one name"):
        plan_import([file("a", both)], current_store(), rename={"m": "n"})


def test_a_name_that_is_not_there_cannot_be_changed() -> None:
    with pytest.raises(InvalidData, match="no feature or parameter 'tiel' to rename; there are m, tile"):
        plan_import([file("a", told(1, 1.0))], current_store(), rename={"tiel": "block"})


def decision(**fields: Any) -> tw.Decision:
    return tw.Decision("imported", space=tw.Space({"tile": [1, 2, 4]}), default={"tile": 4}, **fields)


def test_what_was_imported_is_no_answer_here_but_is_told_to_a_search() -> None:
    one = decision()
    imported(file("a", told(1, 1.0), told(2, 2.0)))
    assert one.decide({"m": 64}).rung == "default"
    (prior,) = priors.of(current_store(), one.subject(P), one.space)
    assert [trial.config["tile"] for trial in prior.trials] == [1, 2]


VLLM = {"1": {"tile": 1}, "64": {"tile": 2}, "1024": {"tile": 4}}


def vllm(place: Path, body: Any = VLLM, name: str = "E=8,N=64") -> Foreign:
    path = place / f"{name},device_name={here()}.json"
    path.write_text(json.dumps(body))
    return foreign.read(path, "vllm")


def here() -> str:
    """Return what this device is called, as vLLM writes it."""
    from tunewise.decision import detect

    return detect().name.replace(" ", "_")


def test_a_vllm_file_answers_the_nearest_m_when_asked_to_and_says_so(tmp_path: Path) -> None:
    one = decision()
    imported(vllm(tmp_path), decision="imported", nearest="M")
    explanation = one.explain({"M": 70, "E": 8, "N": 64})
    assert (explanation.answer.rung, explanation.answer.config) == ("table", {"tile": 2})
    assert explanation.answer.reason == "nearest M: 64 for M=70, as vLLM does"
    assert "nearest M: 64 for M=70, as vLLM does" in str(explanation)
    assert one.decide({"M": 10**6, "E": 8, "N": 64}).config == {"tile": 4}
    assert one.decide({"M": 70, "E": 9, "N": 64}).rung == "default"


def test_a_vllm_file_answers_only_what_it_lists_when_not_asked_to(tmp_path: Path) -> None:
    one = decision()
    imported(vllm(tmp_path), decision="imported")
    assert one.decide({"M": 64, "E": 8, "N": 64}).config == {"tile": 2}
    assert one.decide({"M": 70, "E": 8, "N": 64}).rung == "default"


def test_a_table_for_another_device_does_not_answer(tmp_path: Path) -> None:
    one = decision()
    path = tmp_path / "E=8,N=64,device_name=NVIDIA_H100.json"
    path.write_text(json.dumps(VLLM))
    imported(foreign.read(path), decision="imported")
    explanation = one.explain({"M": 64, "E": 8, "N": 64})
    assert explanation.answer.rung == "default"
    assert "is for hardware.name='NVIDIA H100'" in str(explanation)


def test_winners_of_several_files_become_one_table_and_stay_so(tmp_path: Path) -> None:
    files = [vllm(tmp_path), vllm(tmp_path, name="E=16,N=64")]
    plan = imported(*files, decision="imported", nearest="M")
    ((path, table),) = plan.tables.items()
    assert path == table_path("imported", files[0].findings[0].device)
    assert load_table(path) == table
    assert len(table.rules) == 6
    again = imported(*files, decision="imported")
    assert (again.tables, again.known) == ({}, 6)
    assert load_table(path).nearest == "M"


@pytest.mark.parametrize(("rule", "tile"), [("best", 1), ("newest", 1)])
def test_of_two_winners_without_times_the_last_stands(tmp_path: Path, rule: str, tile: int) -> None:
    old = vllm(tmp_path, {"64": {"tile": 2}})
    new = vllm(tmp_path, {"64": {"tile": 1}})
    imported(old, decision="imported")
    plan = imported(new, decision="imported", on_conflict=rule)
    ((_, table),) = plan.tables.items()
    assert table.rules[0].configs == ({"tile": tile},)
    (conflict,) = plan.conflicts
    assert (conflict.about, conflict.dropped) == ("the winner", "the table at home")


def test_two_winners_conflict_where_that_is_forbidden(tmp_path: Path) -> None:
    imported(vllm(tmp_path, {"64": {"tile": 2}}), decision="imported")
    with pytest.raises(InvalidData, match="the winner"):
        plan_import([vllm(tmp_path, {"64": {"tile": 1}})], current_store(), decision="imported", on_conflict="fail")


def test_of_two_timed_winners_the_faster_stands(tmp_path: Path) -> None:
    slow, fast = (tmp_path / f"{name}.csv" for name in ("slow", "fast"))
    slow.write_text("op,nn_1_2_3,slow,2.0\n")
    fast.write_text("op,nn_1_2_3,fast,1.0\n")
    imported(foreign.read(fast, "tunable"))
    plan = imported(foreign.read(slow, "tunable"))
    assert plan.tables == {}
    assert load_table(table_path("op", "")).rules[0].configs == ({"solution": "fast"},)


@pytest.mark.parametrize("name", ["vllm", "tunable"])
def test_what_was_imported_is_exported_as_it_was(tmp_path: Path, name: str) -> None:
    csv = tmp_path / "t.csv"
    csv.write_text("Validator,PT_VERSION,2\nop,nn_1_2_3,a,1.5\nop,odd,b,0\n")
    found = vllm(tmp_path, {**VLLM, "triton_version": "3.4"}) if name == "vllm" else foreign.read(csv)
    imported(found, decision="op")
    back = findings_for("op", foreign.named(name), current_store()).findings
    wanted = [replace(one, decision="op") for one in found.findings]
    assert sorted(map(repr, map(_bare, back))) == sorted(map(repr, map(_bare, wanted)))


def _bare(finding: Finding) -> Any:
    return finding.problem, dict(finding.config), finding.outcome, finding.device, dict(finding.versions)


def test_winners_of_tuning_runs_are_exported_and_rules_about_more_are_counted(home: Path) -> None:
    one = decision(inputs=lambda problem, seed: (int(problem["m"]),), features=lambda m: {"m": m})
    one.implementation(lambda m, *, tile: sum(range(m * tile)))
    one.tune({"m": 500}, budget=3)
    (home / "heuristics").mkdir()
    rules = [{"when": {"m": {"min": 1}}, "configs": [{"tile": 1}]}, {"when": {"m": 7}, "configs": [{"tile": 2}]}]
    (home / "heuristics" / "t.json").write_text(json.dumps({"decision": "imported", "rules": rules}))
    told = findings_for("imported", foreign.named("vllm"), current_store())
    assert told.left_out == 1
    assert sorted(int(one.problem["m"]) for one in told.findings) == [7, 500]


def test_a_plan_does_not_stand_once_somebody_else_changed_its_table(tmp_path: Path) -> None:
    first = plan_import([vllm(tmp_path)], current_store(), decision="imported")
    second = plan_import([vllm(tmp_path, name="E=16,N=64")], current_store(), decision="imported")
    carry_out(first, current_store())
    with pytest.raises(InvalidData, match="import once more"):
        carry_out(second, current_store())
    (path,) = first.tables
    assert load_table(path) == first.tables[path]
    imported(vllm(tmp_path, name="E=16,N=64"), decision="imported")
    assert len(load_table(path).rules) == 6


def test_a_table_that_cannot_be_read_is_not_replaced(tmp_path: Path) -> None:
    (path,) = imported(vllm(tmp_path), decision="imported").tables
    path.write_text("{")
    with pytest.raises(InvalidFile, match="repair it or move it elsewhere"):
        plan_import([vllm(tmp_path)], current_store(), decision="imported")
    path.unlink()
    path.mkdir()
    with pytest.raises(NotFound, match="cannot be read"):
        plan_import([vllm(tmp_path)], current_store(), decision="imported")


def test_a_table_that_could_not_be_read_again_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tunewise.heuristics.table_reading.MAX_RULES", 3)
    csv = tmp_path / "t.csv"
    csv.write_text("".join(f"op,nn_{m}_1_1,a,0\n" for m in range(1, 5)))
    with pytest.raises(InvalidData, match=r"4 rules are more than the 3 .* cut the file"):
        plan_import([foreign.read(csv, "tunable")], current_store())


def test_a_file_where_tables_should_lie_is_told(tmp_path: Path, home: Path) -> None:
    plan = plan_import([vllm(tmp_path)], current_store(), decision="imported")
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "heuristics").write_text("")
    with pytest.raises(InvalidFile, match=r"heuristics takes no tables: File exists; move"):
        carry_out(plan, current_store())


def test_a_nearest_feature_that_is_no_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match="no number 'dtype'"):
        plan_import([vllm(tmp_path)], current_store(), decision="imported", nearest="dtype")


def test_a_hostile_name_leads_nowhere_else(home: Path) -> None:
    for name in ("../../etc/x", "/etc/passwd", "..", "a\0b", "x" * 5000):
        path = table_path(name, "../..")
        assert path.parent == home / "heuristics"
        assert len(path.name) < 200
