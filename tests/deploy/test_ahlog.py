"""A log that many processes write to at once has one header, whole rows, and none of them twice."""

import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from limits import HANG_S
from tunewise.deploy.ahlog import Log, Row, log_file
from tunewise.errors import InvalidData

WRITER = """
import sys
from pathlib import Path
from tunewise.deploy.ahlog import Log
log = Log(Path(sys.argv[1]), {"name": "crowd"}, ["n"])
for n in range(50):
    log.add([((f"{sys.argv[2]}-{n}", choice), 1.5) for choice in ("a", "b")])
"""


def test_many_writers_tear_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(who)]) for who in range(4)]
    assert [writer.wait(HANG_S) for writer in writers] == [0] * 4
    first, header, *rows = path.read_text().splitlines()
    assert json.loads(first) == {"name": "crowd"}
    assert header == "n,choice,feedback"
    assert Counter(rows) == Counter(f"{who}-{n},{c},1.5" for who in range(4) for n in range(50) for c in "ab")


def test_writers_in_threads_write_one_header(tmp_path: Path) -> None:
    logs = [Log(tmp_path / "log.txt", {"name": "crowd"}, ["n"]) for _ in range(8)]
    with ThreadPoolExecutor(len(logs)) as pool:
        list(pool.map(lambda who: [logs[who].add([((f"{who}-{n}", "a"), 1.5)]) for n in range(20)], range(len(logs))))
    _, header, *rows = logs[0].path.read_text().splitlines()
    assert header == "n,choice,feedback"
    assert Counter(rows) == Counter(f"{who}-{n},a,1.5" for who in range(len(logs)) for n in range(20))


def test_a_log_that_another_begins_meanwhile_is_not_added_to(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"

    class Late(Log):
        def counts(self) -> Counter[Row]:
            known = super().counts()
            Log(path, {"name": "theirs"}, ["n"]).add([(("1", "a"), 1.0)])
            return known

    with pytest.raises(InvalidData, match="its name is 'theirs', and here it is 'ours'; set a directory"):
        Late(path, {"name": "ours"}, ["n"]).add([(("2", "a"), 1.0)])
    assert path.read_text().splitlines()[1:] == ["n,choice,feedback", "1,a,1.0"]


def test_rows_another_process_added_are_seen(tmp_path: Path) -> None:
    ours, theirs = (Log(tmp_path / "log.txt", {"name": "x"}, ["n"]) for _ in range(2))
    theirs.add([(("1", "a"), 1.0)])
    assert ours.counts() == {("1", "a"): 1}
    theirs.add([(("1", "a"), 2.0)])
    assert ours.counts() == {("1", "a"): 2}


def test_a_log_that_was_deleted_begins_anew(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.txt", {"name": "x"}, ["n"])
    log.add([(("1", "a"), 1.0)])
    log.path.unlink()
    assert log.counts() == {}
    log.add([(("1", "a"), 1.0)])
    assert len(log.path.read_text().splitlines()) == 3


def test_two_names_never_share_a_file(tmp_path: Path) -> None:
    names = ["a/b", "a-b", "a b", "../a", "", "x" * 300, "x" * 301]
    places = {log_file(tmp_path, name) for name in names}
    assert len(places) == len(names)
    assert all(place.parent == tmp_path for place in places)
