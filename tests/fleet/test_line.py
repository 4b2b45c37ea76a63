from collections import deque

from tunewise.fleet.line import MOST_DEATHS, MOST_LOSSES, Line
from tunewise.fleet.plans import FleetPlan, Unit, Work, units


def three():
    return [Unit(str(number), "tune", 0, number) for number in range(3)]


def table(size=40):
    work = Work("t", ({"n": 1},), size=size)
    return units(FleetPlan("p", "collect", 100, (work,)))


def test_every_unit_is_handed_out_once():
    line = Line(three())
    assert [line.take().id for _ in range(3)] == ["0", "1", "2"]
    assert line.take() is None
    assert not line.is_over


def test_line_is_over_when_all_are_done_or_failed():
    line = Line(three())
    first, second, third = (line.take() for _ in range(3))
    line.end(first)
    line.fail(second, "no")
    assert not line.is_over
    line.end(third)
    assert line.is_over
    assert line.failed == {"1": "no"}


def test_unit_of_a_lost_node_is_the_next_one():
    line = Line(three())
    unit = line.take()
    line.lost(unit)
    assert line.take() == unit


def test_unit_that_takes_every_node_with_it_fails():
    line = Line(three()[:1])
    for _ in range(MOST_LOSSES):
        line.lost(line.take())
    assert line.is_over
    assert "nodes were lost" in line.failed["0"]


def test_unit_that_kills_its_process_three_times_fails_and_the_others_go_on():
    line = Line(three())
    for _ in range(MOST_DEATHS):
        unit = line.take()
        assert unit.id == "0"
        line.died(unit, "killed by signal 11")
    assert "signal 11" in line.failed["0"]
    assert line.take().id == "1"


def test_busy_unit_waits_while_others_are_done():
    now = [0.0]
    line = Line(three()[:2], clock=lambda: now[0])
    busy = line.take()
    line.give_back(busy, is_busy=True)
    assert line.take().id == "1"
    assert line.take() is None
    now[0] = 60.0
    assert line.take() == busy


def test_table_is_concluded_after_all_its_slices():
    line = Line(table())
    slices = [line.take() for _ in range(3)]
    assert [unit.kind for unit in slices] == ["slice"] * 3
    assert line.take() is None
    for unit in slices[:2]:
        line.end(unit)
    line.give_back(slices[2], is_busy=True)
    assert line.take() is None
    line.delayed = [(0.0, slices[2])]
    assert line.take() == slices[2]
    line.end(slices[2])
    assert line.take().kind == "conclude"


def test_table_with_a_failed_slice_is_not_concluded():
    line = Line(table())
    slices = [line.take() for _ in range(3)]
    line.fail(slices[0], "no")
    for unit in slices[1:]:
        line.end(unit)
    assert line.is_over
    assert len(line.failed) == 2


def test_handing_out_does_not_walk_the_whole_queue():
    class Watched(deque):
        walks = 0

        def __iter__(self):
            Watched.walks += 1
            return super().__iter__()

    work = Work("t", tuple({"n": n} for n in range(50)), size=40)
    line = Line(units(FleetPlan("p", "collect", 100, (work,))))
    line.waiting = Watched(line.waiting)
    while (unit := line.take()) is not None:
        line.end(unit)
    assert line.is_over
    assert Watched.walks == 0
