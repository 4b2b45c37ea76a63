"""The ledger of a home: what it has measured itself, whatever happens to the file."""

from pathlib import Path

import pytest

from tunewise.store.ledger import FILE_NAME, Ledger
from tunewise.testing.store_contract import subject, timed, won


def test_other_processes_know_what_was_entered(tmp_path: Path) -> None:
    other = Ledger(tmp_path)
    about = subject()
    assert other.origin(about.digest, won()) == "elsewhere"
    Ledger(tmp_path).add(about, [won(), timed(8)])
    assert other.origin(about.digest, won()) == other.origin(about.digest, timed(8)) == "own"
    assert other.origin(about.digest, won(16)) == other.origin(subject(m=9).digest, won()) == "elsewhere"


@pytest.mark.parametrize("cut", range(1, 68, 3))
def test_a_torn_line_costs_one_entry(tmp_path: Path, cut: int) -> None:
    about, file = subject(), tmp_path / FILE_NAME
    Ledger(tmp_path).add(about, [won(8), won(16)])
    file.write_bytes(file.read_bytes()[:-cut])
    Ledger(tmp_path).add(about, [won(32)])
    assert Ledger(tmp_path).origin(about.digest, won(32)) == "own"
    kept = [Ledger(tmp_path).origin(about.digest, won(tile)) for tile in (8, 16)]
    assert kept.count("own") >= 1 - cut // 34


def test_hostile_bytes_are_nobodys_entries(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"\xff\xfe\x00 zz\n" * 1000)
    assert Ledger(tmp_path).origin(subject().digest, won()) == "elsewhere"


def test_a_home_that_cannot_be_written_is_known_until_the_process_ends(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ledger = Ledger(tmp_path / "file" / "home")
    ledger.add(subject(), [won()])
    assert ledger.origin(subject().digest, won()) == "own"
