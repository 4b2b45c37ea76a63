import pytest

from tunewise.errors import InvalidFile
from tunewise.fleet.plans import FleetPlan, Work, read, title, unit_of, units, written


def plan(kind="tune", size=0, **more):
    work = Work("a/b.py:gemm", ({"m": 1}, {"m": 2}), size=size)
    return FleetPlan("shapes", kind, 10, (work,), **more)


def test_plan_travels_as_json_and_keeps_its_id():
    there = read(written(plan()))
    assert there == plan()
    assert there.id == plan().id


def test_name_and_number_of_devices_do_not_make_another_plan():
    renamed = FleetPlan("other", "tune", 10, plan().work, devices=3)
    assert renamed.id == plan().id
    assert plan(seed=1).id != plan().id


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": 1}', '{"name":"a","kind":"x","budget":1,"work":[]}'])
def test_text_that_is_no_plan_is_refused(text):
    with pytest.raises(InvalidFile, match="no plan"):
        read(text)


def test_message_that_is_no_unit_is_refused():
    with pytest.raises(InvalidFile, match="no unit"):
        unit_of({"id": "1", "kind": "dance", "work": 0, "problem": 0})


def test_problem_is_a_unit():
    assert [(unit.kind, unit.problem) for unit in units(plan())] == [("tune", 0), ("tune", 1)]


@pytest.mark.parametrize("size", [1, 16, 17, 1000, 100_000])
def test_slices_cover_a_table_once_and_are_not_too_many(size):
    found = [unit for unit in units(plan("collect", size)) if unit.problem == 0]
    slices = [unit for unit in found if unit.kind == "slice"]
    assert [place for unit in slices for place in range(unit.start, unit.stop)] == list(range(size))
    assert len(slices) <= 256
    assert [unit.kind for unit in found[len(slices) :]] == ["conclude"]
    assert len({unit.id for unit in found}) == len(found)


def test_title_names_target_problem_and_slice():
    slices = units(plan("collect", 20))
    assert title(plan(), slices[0]) == "b.py:gemm m=1, configs 1 to 16"
