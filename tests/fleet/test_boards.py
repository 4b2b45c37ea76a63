"""Boards: what was published first stands, for threads and processes, and a board that hangs is given up."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from limits import HANG_S
from tunewise.fleet import places, presence
from tunewise.fleet.boards import MOST_BYTES, Board, FileBoard, Lost, wait_for
from tunewise.fleet.torch_board import TorchBoard


def files(place: Path) -> Board:
    return FileBoard(place)


def hash_store(place: Path) -> Board:
    distributed = pytest.importorskip("torch.distributed", reason="PyTorch is not installed")
    return TorchBoard(distributed.HashStore(), 5.0)


def file_store(place: Path) -> Board:
    distributed = pytest.importorskip("torch.distributed", reason="PyTorch is not installed")
    return TorchBoard(distributed.PrefixStore("theirs", distributed.FileStore(str(place / "store"), 1)), 5.0)


every_board = pytest.mark.parametrize("make", [files, hash_store, file_store])


@every_board
def test_what_was_published_first_stands(make: Callable[[Path], Board], tmp_path: Path) -> None:
    board = make(tmp_path)
    assert board.read("a/b") is None
    assert board.publish("a/b", "one") == "one"
    assert board.publish("a/b", "two") == "one"
    assert board.read("a/b") == "one"
    assert board.publish("a/c", "two") == "two"


@every_board
def test_of_many_threads_one_is_first(make: Callable[[Path], Board], tmp_path: Path) -> None:
    board, heard = make(tmp_path), list[str]()
    threads = [
        threading.Thread(target=lambda text=str(number): heard.append(board.publish("k", text))) for number in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(heard) == 16
    assert len(set(heard)) == 1


def test_of_many_processes_one_is_first_for_every_key(tmp_path: Path) -> None:
    def publish(me: int) -> None:
        board = FileBoard(tmp_path)
        heard = [board.publish(f"k{key}", str(me)) for key in range(50)]
        (tmp_path / f"heard-{me}").write_text(" ".join(heard))

    children = []
    for me in range(4):
        pid = os.fork()
        if pid == 0:
            publish(me)
            os._exit(0)
        children.append(pid)
    for pid in children:
        assert os.waitpid(pid, 0)[1] == 0
    assert len({(tmp_path / f"heard-{me}").read_text() for me in range(4)}) == 1
    assert not list(tmp_path.glob(".*"))  # no drafts are left


def test_a_board_whose_directory_is_gone_is_lost(tmp_path: Path) -> None:
    board = FileBoard(tmp_path / "gone")
    with pytest.raises(Lost):
        board.read("k")
    with pytest.raises(Lost):
        board.publish("k", "text")


def test_no_more_is_read_than_one_publication_may_hold(tmp_path: Path) -> None:
    (tmp_path / "k").write_bytes(b"\xff" * (MOST_BYTES + 100))
    said = FileBoard(tmp_path).read("k")
    assert said is not None
    assert len(said) == MOST_BYTES


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("theirs")
    (tmp_path / "k").symlink_to(tmp_path / "secret")
    with pytest.raises(Lost):
        FileBoard(tmp_path).read("k")


class Hanging:
    """A store whose host never answers."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.heard: list[str] = []

    def compare_set(self, key: str, expected: str, text: str) -> bytes:
        self.heard.append(text)
        return text.encode()

    def check(self, keys: list[str]) -> bool:
        self.answers.wait(HANG_S)
        return False


def test_a_store_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tunewise.fleet.torch_board._own", lambda store, patience_s: store)
    store = Hanging()
    board = TorchBoard(store, 0.05)
    with pytest.raises(Lost, match="no answer"):
        board.read("k")
    store.answers.set()
    with pytest.raises(Lost, match="no answer"):
        board.read("k")


def test_a_store_that_wakes_up_hears_what_was_decided_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tunewise.fleet.torch_board._own", lambda store, patience_s: store)
    store = Hanging()
    board = TorchBoard(store, 0.05)
    with pytest.raises(Lost):
        board.read("k")
    board.leave_word("k", "the default")
    assert not store.heard
    store.answers.set()
    wait_for(lambda: "".join(store.heard) or None, time.monotonic() + HANG_S)
    assert store.heard == ["the default"]
    wait_for(lambda: None if board._late else "in time", time.monotonic() + HANG_S)
    assert board.publish("k2", "text") == "text"


def test_a_store_that_raises_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tunewise.fleet.torch_board._own", lambda store, patience_s: store)
    board: Any = TorchBoard(object(), 1.0)
    with pytest.raises(Lost, match="AttributeError"):
        board.read("k")


def test_waiting_ends_with_the_time() -> None:
    assert wait_for(lambda: None, time.monotonic() + 0.01) is None
    found = iter([None, None, "here"])
    assert wait_for(lambda: next(found), time.monotonic() + HANG_S) == "here"


def test_a_living_process_is_not_gone_and_a_dead_one_is() -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writing, presence.name(3).encode())
        os._exit(0)
    child = os.read(reading, 200).decode()
    os.close(reading)
    os.close(writing)
    while not presence.is_gone(child):  # a zombie is as dead as one that is reaped
        time.sleep(0.01)
    os.waitpid(pid, 0)
    assert presence.is_gone(child)
    assert presence.rank_of(child) == "3"
    assert not presence.is_gone(presence.name(0))
    assert not presence.is_idle(presence.name(0))


@pytest.mark.parametrize("name", ["", "x", "||", "elsewhere|1|2|3", "a|b|c|d"])
def test_nobody_knows_whether_a_stranger_is_gone(name: str) -> None:
    assert not presence.is_gone(name)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_the_last_of_all_ranks_clears_up(temporary: Path) -> None:
    about = places.make("1/2", None)
    first, second = places.enter(about, 0, 2), places.enter(about, 1, 2)
    first.close()
    assert Path(about.place).is_dir()
    second.close()
    assert not Path(about.place).exists()


def test_a_board_waits_for_ranks_that_have_not_come(temporary: Path) -> None:
    about = places.make("1/2", None)
    board = places.enter(about, 0, 2)
    board.publish("k", "text")
    board.close()
    assert places.enter(about, 1, 2).read("k") == "text"


def test_only_the_directory_with_the_token_is_entered(temporary: Path) -> None:
    about, other = places.make("1/2", None), places.make("1/2", None)
    with pytest.raises(Lost, match="not the directory"):
        places.enter(places.About("files", other.place, about.token), 0, 2)
    with pytest.raises(Lost):
        places.enter(places.About("files", str(temporary / "none"), about.token), 0, 2)


def test_a_directory_that_others_may_write_to_is_refused(temporary: Path) -> None:
    places.home().chmod(0o777)
    with pytest.raises(Lost, match="others may write"):
        places.home()


def test_a_board_is_found_by_its_address_unless_this_process_was_in_it(temporary: Path) -> None:
    ours, theirs = places.make("1/2", None), places.make("3/2", None)
    assert places.find("1/2") is None  # it was not opened to all yet
    places.open_to_all(ours)
    places.open_to_all(theirs)
    assert places.find("1/2") == ours
    places.enter(ours, 0, 2)
    assert places.find("1/2") is None


def test_boards_of_dead_jobs_are_swept_when_they_are_old(temporary: Path) -> None:
    old, alive, young = (places.make("1/2", None) for _ in range(3))
    places.enter(alive, 0, 2)
    for about in (old, alive):
        os.utime(about.place, (1, 1))
    places.sweep(None)
    assert [Path(about.place).exists() for about in (old, alive, young)] == [False, True, True]
