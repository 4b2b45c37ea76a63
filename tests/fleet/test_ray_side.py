import sys

import pytest

from tunewise.errors import MissingPart, NotFound
from tunewise.fleet import ray_side
from tunewise.fleet.plans import FleetPlan, Work
from tunewise.fleet.supervisor import Supervisor, nodes_at


def test_missing_ray_is_told_before_anything_starts(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    plan = FleetPlan("p", "tune", 1, (Work("gemm", ({"m": 1},)),))
    with pytest.raises(MissingPart, match=r"pip install 'tunewise\[ray\]'"):
        Supervisor(plan, program="tunewise.cli.fleet_device", hear=print)


def test_address_where_nobody_listens_is_no_cluster():
    pytest.importorskip("ray", reason="ray is not installed: pip install 'tunewise[ray]'")
    with pytest.raises(NotFound, match="ray start --head"):
        ray_side.connect("127.0.0.1:1")
    assert nodes_at("127.0.0.1:1") is None


def test_only_programs_of_ours_can_be_the_process_of_a_device():
    from tunewise.fleet.actor import DeviceActor

    with pytest.raises(AssertionError):
        DeviceActor("http.server", "{}")
