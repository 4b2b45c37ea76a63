import os
import stat
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tunewise.decision import Environment, Failure, Part, Problem, Subject, Trial, Verdict
from tunewise.errors import InvalidFile, NotFound, StoreError
from tunewise.formats.records import Record
from tunewise.settings import Settings
from tunewise.store import (
    Imported,
    LayeredStore,
    MemoryStore,
    SafeStore,
    SqliteStore,
    exchange,
    export_to,
    guard,
    import_from,
    merge,
    open_store,
)
from tunewise.store.database import FILE_NAME
from tunewise.testing.store_contract import subject, timed, won


@pytest.fixture
def store(tmp_path):
    return SqliteStore(tmp_path / "home")


def _fill(store):
    store.add(subject("a", 1), [timed(8), timed(16)])
    store.conclude(subject("b", 2), won())


def test_export_then_import_twice_adds_once(store, tmp_path):
    _fill(store)
    assert export_to(store, tmp_path / "x.jsonl") == 3
    other = SqliteStore(tmp_path / "other")
    assert import_from(other, tmp_path / "x.jsonl") == Imported(added=3, known=0)
    assert import_from(other, tmp_path / "x.jsonl") == Imported(added=0, known=3)
    assert other.trials(subject("a", 1)) == store.trials(subject("a", 1))
    assert other.verdicts(subject("b", 2)) == [won()]


def test_an_export_tells_what_failed_and_no_secret(store, tmp_path):
    details = ["OSError: /home/alice/key is missing", 'signal SIGSEGV\n  File "/home/alice/k.py"', "token hunter2"]
    failures = [Failure("crash", detail) for detail in details]
    store.add(subject("a", 1), [Trial({"tile": 8}, failure) for failure in failures])
    store.conclude(subject("a", 1), Verdict("failed", {"tile": 8}, {"tile": 8}, detail="no /home/alice/x"))
    export_to(store, tmp_path / "x.jsonl")
    assert not any(word in (tmp_path / "x.jsonl").read_text() for word in ("alice", "hunter2", "/home"))
    other = SqliteStore(tmp_path / "other")
    import_from(other, tmp_path / "x.jsonl")
    assert [t.outcome.detail for t in other.trials(subject("a", 1))] == ["OSError", "signal SIGSEGV", ""]


def test_one_decision_can_be_exported_alone(store, tmp_path):
    _fill(store)
    assert export_to(store, tmp_path / "x.jsonl", "b") == 1


def test_import_counts_damaged_records_and_takes_the_rest(store, tmp_path):
    _fill(store)
    export_to(store, tmp_path / "x.jsonl")
    raw = (tmp_path / "x.jsonl").read_bytes()
    (tmp_path / "x.jsonl").write_bytes(raw[:-40])
    assert import_from(MemoryStore(), tmp_path / "x.jsonl") == Imported(added=2, known=0, damaged=1)


def test_file_without_a_single_record_is_named(tmp_path):
    (tmp_path / "x.csv").write_text("m,n,k\n1,2,3\n")
    with pytest.raises(InvalidFile, match=r"x\.csv holds no record"):
        import_from(MemoryStore(), tmp_path / "x.csv")
    with pytest.raises(NotFound, match=r"y\.jsonl"):
        import_from(MemoryStore(), tmp_path / "y.jsonl")


def test_large_files_are_absorbed_in_batches(store, tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "_BATCH", 10)
    source = MemoryStore()
    source.add(subject(), [timed(tile) for tile in range(35)])
    export_to(source, tmp_path / "x.jsonl")
    assert import_from(store, tmp_path / "x.jsonl").added == 35
    assert [t.config["tile"] for t in store.trials(subject())] == list(range(35))


def test_long_stores_are_exported_whole(store, tmp_path):
    store.add(subject(), [timed(tile) for tile in range(1234)])
    assert export_to(store, tmp_path / "x.jsonl") == 1234


@pytest.mark.parametrize("name", ["other", f"other/{FILE_NAME}"])
def test_merge_takes_what_another_store_knows(store, tmp_path, name):
    _fill(SqliteStore(tmp_path / "other"))
    store.add(subject("a", 1), [timed(8)])
    assert merge(store, tmp_path / name) == Imported(added=2, known=1)
    assert merge(store, tmp_path / name) == Imported(added=0, known=3)


def test_merge_of_nothing_is_named(store, tmp_path):
    with pytest.raises(NotFound, match="no store at"):
        merge(store, tmp_path / "missing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="no store at"):
        merge(store, tmp_path / "empty")


def test_merge_of_two_stores_into_each_other_ends(tmp_path):
    one, two = SqliteStore(tmp_path / "one"), SqliteStore(tmp_path / "two")
    one.add(subject(m=1), [timed(8)])
    two.add(subject(m=2), [timed(8)])
    assert merge(one, two).added == 1
    assert merge(two, one).added == 1


def test_own_facts_come_after_those_of_the_layers_below(tmp_path):
    low, high = SqliteStore(tmp_path / "low"), SqliteStore(tmp_path / "high")
    low.conclude(subject(), won(1))
    high.conclude(subject(), won(2))
    low.add(subject("only-low"), [timed(8)])
    store = LayeredStore(SqliteStore(tmp_path / "top"), [high, low])
    assert [v.winner["tile"] for v in store.verdicts(subject())] == [1, 2]
    store.conclude(subject(), won(3))
    assert [v.winner["tile"] for v in store.verdicts(subject())] == [1, 2, 3]
    assert store.decisions() == ["gemm", "only-low"]
    assert len(store.subjects("gemm")) == 1
    assert high.verdicts(subject()) == [won(2)]


def test_settings_name_home_and_layers(tmp_path):
    SqliteStore(tmp_path / "layer").add(subject(), [timed(8)])
    store = open_store(Settings(home=tmp_path / "home", layers=(tmp_path / "layer",)))
    assert store.trials(subject()) == [timed(8)]
    store.add(subject(), [timed(16)])
    assert store.trials(subject()) == [timed(8), timed(16)]
    assert [layer.trials for layer in store.info().layers] == [1]
    assert store.info().layers[0].is_read_only


def test_opening_touches_nothing_before_the_first_use(tmp_path):
    open_store(tmp_path / "home", [tmp_path / "layer"])
    assert list(tmp_path.iterdir()) == []


def test_layer_is_read_from_a_directory_that_cannot_be_written(tmp_path):
    layer = SqliteStore(tmp_path / "layer")
    layer.add(subject(), [timed(8)])
    layer.close()
    for path in [*(tmp_path / "layer").iterdir(), tmp_path / "layer"]:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)
    try:
        shared = SqliteStore(tmp_path / "layer", is_shared=True)
        assert shared.trials(subject()) == [timed(8)]
        shared.close()
    finally:
        (tmp_path / "layer").chmod(0o700)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_layer_is_read_from_a_read_only_file_system(tmp_path):
    import subprocess

    layer = SqliteStore(tmp_path / "layer")
    layer.add(subject(), [timed(8)])
    layer.close()
    mount = ["mount", "--bind", "-o", "ro", str(tmp_path / "layer"), str(tmp_path / "layer")]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this system does not allow mounting")
    try:
        shared = SqliteStore(tmp_path / "layer", is_shared=True)
        assert shared.trials(subject()) == [timed(8)]
        shared.close()
        with pytest.raises(StoreError):
            SqliteStore(tmp_path / "layer").add(subject(), [timed(8)])
    finally:
        subprocess.run(["umount", "-l", str(tmp_path / "layer")], check=True)


def test_layer_in_use_shows_what_its_owner_wrote_last(tmp_path):
    owner = SqliteStore(tmp_path / "layer")
    owner.add(subject(), [timed(8)])
    shared = SqliteStore(tmp_path / "layer", is_shared=True)
    assert len(shared.trials(subject())) == 1
    owner.add(subject(), [timed(16)])
    assert len(shared.trials(subject())) == 2


def test_damaged_row_is_passed_over_by_readers_and_exports(store, tmp_path):
    _fill(store)
    with store._database.writing() as db:
        db.execute("UPDATE trials SET body = replace(body, '\"tile\":8', '\"tile\":9') WHERE id = 1")
    assert store.trials(subject("a", 1)) == [timed(16)]
    assert export_to(store, tmp_path / "x.jsonl") == 2


_NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40) | st.sampled_from(
    ["'; DROP TABLE trials; --", "../../etc/passwd", "\0", "%s", "?1", "a\nb", "\u202e", "🦜", "NULL", "x" * 200, "{}"]
)


def _names_come_back(store, root, name, value):
    environment = Environment((Part("x." + name, value, "must"), Part("y." + value, name, "warn")))
    about = Subject(name, Problem({name: value}), ((name, value),), environment)
    store.add(about, [timed(8, run=name)])
    store.miss(about)
    assert store.trials(about)[-1].run == name
    assert store.subjects(name)[-1].decision == name
    assert store.misses(name)[0].decision == name
    assert [record.fact.run for record in store.records(name)][-1] == name
    assert {path.name for path in root.iterdir()} <= {"home", "other"}


@given(_NAMES, _NAMES)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_hostile_names_come_back_and_harm_nothing(store, tmp_path, name, value):
    _names_come_back(MemoryStore(), tmp_path, name, value)
    _names_come_back(store, tmp_path, name, value)


@pytest.mark.full
@given(_NAMES, _NAMES)
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_10000_hostile_names_come_back_and_harm_nothing(store, tmp_path, name, value):
    _names_come_back(MemoryStore(), tmp_path, name, value)
    environment = Environment((Part("x." + name, value, "must"),))
    about = Subject(name, Problem({name: value}), ((name, value),), environment)
    store.add(about, [timed(8, run=name)])
    assert store.trials(about)[-1].run == name
    assert store.recorded(about) == about


def test_what_is_imported_is_waited_for_however_long_it_takes(tmp_path, monkeypatch):
    monkeypatch.setattr(guard, "_WRITTEN_S", 0.0)
    absorb = SqliteStore.absorb

    def slowly(self, records):
        time.sleep(0.3)
        return absorb(self, records)

    monkeypatch.setattr(SqliteStore, "absorb", slowly)
    told = []
    store = SafeStore(SqliteStore(tmp_path / "home"), warn=told.append)
    assert store.absorb([Record(subject(), timed(8))]) == 1
    assert told == []
    assert SqliteStore(tmp_path / "home").trials(subject()) == [timed(8)]
