import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from limits import HANG_S
from tunewise.errors import NotFound
from tunewise.fleet import cluster
from tunewise.fleet.below import end_those_of


def test_keeper_that_dies_leaves_no_directory(monkeypatch, tmp_path):
    monkeypatch.setattr(cluster, "_short", lambda place: tmp_path)
    monkeypatch.setattr(cluster.sys, "executable", "/bin/false")
    nodes = cluster.LocalNodes(1)
    with pytest.raises(NotFound, match="its keeper died"):
        nodes.start()
    nodes.stop()
    assert os.listdir(tmp_path) == []


def test_processes_that_outlive_a_killed_keeper_are_ended_by_their_directory(tmp_path):
    with (tmp_path / "ab").open("w") as other:
        (tmp_path / "a").mkdir()
        with (tmp_path / "a" / "log").open("w") as log:
            theirs = subprocess.Popen(["sleep", "600"], stdout=log)
        others = subprocess.Popen(["sleep", "600"], stdout=other)
    end_those_of(str(tmp_path / "a"))
    assert theirs.wait(HANG_S) == -signal.SIGKILL
    assert others.poll() is None
    others.kill()
    others.wait()


def test_token_is_for_this_user_alone(tmp_path):
    cluster.token_in(tmp_path / "token")
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        cluster.token_in(tmp_path / "token")


def test_long_path_of_temporary_files_is_avoided():
    assert cluster._short(Path("/" + "x" * 40)) == Path("/tmp")
    assert cluster._short(Path("/var/tmp")) == Path("/var/tmp")


def test_a_node_is_started_again_three_times_and_then_left_out(monkeypatch, tmp_path):
    def started(keeper, place, *words):
        (tmp_path / f"node-{place}.log").write_text("it fell over\n")
        return subprocess.Popen(["false"])

    monkeypatch.setattr(cluster.Keeper, "_started", started)
    keeper = cluster.Keeper(2, tmp_path)
    keeper._nodes = [started(keeper, place) for place in range(2)]
    said = []
    for _ in range(6):
        keeper._nodes[1].wait()
        said.append(keeper.mend())
    assert said[:3] == ["node 2 of 2 is gone (it fell over): starting it again"] * 3
    assert said[3:] == [
        "node 2 of 2 is gone (it fell over): it is left out, as it was started again 3 times",
        None,
        None,
    ]
    keeper._nodes[0].wait()
