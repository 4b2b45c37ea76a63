"""Rows that no tunewise wrote: whatever is in a store, questions are answered, and other problems as before."""

import sqlite3
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tunewise as tw
from tunewise.decision import Environment, Part, Subject, Timing, Trial, Verdict, canonical
from tunewise.errors import InvalidProblem, TunewiseWarning
from tunewise.formats import facts
from tunewise.measure import Replay, Work
from tunewise.session.plan import Plan, Task
from tunewise.session.tune import tune
from tunewise.store import SqliteStore, open_store

SPACE = tw.Space({"tile": [8, 16, 32], "pack": [True, False]})
DEFAULT = {"tile": 8, "pack": False}
BEST = {"tile": 32, "pack": True}
HONEST = Verdict("win", DEFAULT, BEST, (2.0,) * 10, (1.0,) * 10, run="honest")

LONG = 17 << 20
NUMBERS = [0, -1, 2**63 - 1, -(2**63), 1e308, -1e308, 5e-324, float("inf"), float("-inf"), 1.5]
TEXTS = [
    *("", "x", "null", "[]", "{}", "{" * 5000, "[" * 100_000, '{"ending":"win"}', "\x1b[31m", "\u202e", "1e999", "NaN"),
    *('{"decision":"rows","problem":{"n":1e999},"policy":[],"environment":[]}', "\0", "A" * 1_000_000),
]
CELLS = st.one_of(
    st.sampled_from(NUMBERS),
    st.sampled_from(TEXTS),
    st.binary(max_size=64),
    st.text(max_size=64),
    st.sampled_from([b"\xff\xfe", b"\xed\xa0\x80", b"\0" * 16]),
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20), st.sampled_from(["\x1b[2J", "\u202e", "e" * 10_000, 1e308, 5e-324, -0.0, 10**300]),
)  # fmt: skip
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner))
CONFIGS = st.one_of(
    st.sampled_from([DEFAULT, BEST, {}]), st.dictionaries(st.sampled_from(["tile", "pack", ""]), VALUES)
)
STRANGE: list[Any] = ["\ud800", 10**400, True, [], {}, object(), b"\xff", None]
FEATURES = st.dictionaries(
    st.one_of(st.text(max_size=8), st.sampled_from(["n", "\ud800", "\x1b", "\u202e"])),
    st.one_of(SCALARS, st.floats(), st.sampled_from(STRANGE), st.complex_numbers()),
    max_size=4,
)
SAMPLES = st.lists(st.sampled_from([1e-300, 5e-324, 1e-9, 0.5, 1.0, 2.0, 1e6, 1e308]), max_size=12)
VERDICTS = st.fixed_dictionaries(
    {"ending": st.sampled_from(["win", "tie", "failed", "", "won"]), "incumbent": CONFIGS, "challenger": CONFIGS},
    optional={
        "incumbent_s": SAMPLES,
        "challenger_s": SAMPLES,
        "gain": SCALARS,
        "p_value": SCALARS,
        "evaluations": SCALARS,
        "run": SCALARS,
        "source": SCALARS,
        "detail": SCALARS,
        "at": SCALARS,
    },
)
KINDS = st.sampled_from(["crash", "timeout", "no"])
TRIALS = st.fixed_dictionaries(
    {
        "config": CONFIGS,
        "outcome": st.one_of(
            st.fixed_dictionaries({"is": st.just("timing"), "samples_s": SAMPLES}, optional={"compile_s": SCALARS}),
            st.fixed_dictionaries(
                {"is": st.just("failure"), "kind": st.sampled_from(["crash", "timeout", "no"])},
                optional={"detail": SCALARS},
            ),
            VALUES,
        ),
    },
    optional={"source": SCALARS, "run": SCALARS, "at": SCALARS},
)
SUBJECTS = st.fixed_dictionaries(
    {
        "decision": st.sampled_from(["rows", "", "other"]),
        "problem": st.dictionaries(st.sampled_from(["n", "m", "", "\x1b"]), SCALARS, max_size=3),
        "policy": st.lists(st.tuples(st.text(max_size=5), VALUES), max_size=3),
        "environment": st.lists(
            st.tuples(
                st.sampled_from(["hardware.name", "", "decision", "x"]), VALUES, st.sampled_from(["must", "warn", "no"])
            ),
            max_size=3,
        ),
    }
)
COLUMNS = {
    "subjects": ("digest", "decision", "identity", "body"),
    "trials": ("subject", "at", "identity", "body"),
    "verdicts": ("subject", "at", "identity", "body"),
    "misses": ("key", "decision", "asked_as", "body", "count"),
    "signs": ("kind", "key", "at", "body"),
}


def decision() -> tw.Decision:
    return tw.Decision("rows", space=SPACE, default=DEFAULT, near=1)


def subject_of(made: tw.Decision, n: int) -> Subject:
    return made.subject(made.problem({"n": n}))


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Give the bytes of a store's file in which the problem n=1 is tuned."""
    home = tmp_path_factory.mktemp("honest") / "home"
    store = SqliteStore(home)
    store.conclude(subject_of(decision(), 1), HONEST)
    store.add(subject_of(decision(), 2), [Trial(DEFAULT, Timing((1.0,)))])
    store.close()
    return (home / "store.sqlite3").read_bytes()


def asked(home: Path, honest: bytes, write: Callable[[sqlite3.Connection], None]) -> None:
    """Write rows into an honest store, ask it all that programs ask, and see that the tuned problem is answered."""
    file = home / "store.sqlite3"
    tw.configure()
    home.mkdir(mode=0o700, exist_ok=True)
    for old in home.glob("store.sqlite3*"):
        old.unlink()
    file.write_bytes(honest)
    with closing(sqlite3.connect(file)) as db:
        write(db)
        db.commit()
    made = decision()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TunewiseWarning)
        tw.configure(home=home)
        for n in (1, 2, 3):
            answer, explanation = made.decide({"n": n}), made.explain({"n": n})
            str(explanation)
            assert answer.config in SPACE
            assert n != 1 or (answer.rung, answer.config) == ("memory", BEST)
        store = open_store(home)
        about = subject_of(made, 3)
        task = Task(made, about, Work(lambda config: lambda: None, (), DEFAULT, made.check), None, made.hardware())
        timed = [Trial(config, Timing((1.0 if config == BEST else 2.0,))) for config in SPACE]
        assert tune(task, Plan(), store, lambda _: Replay(timed)).answer.config in SPACE
        store.misses(), store.signs(), store.info(), list(store.records())
        store.close()
    assert not list(home.glob("*.damaged-*"))
    tw.configure()


def inserted(db: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> None:
    columns = COLUMNS[table]
    marks = ", ".join("?" * len(columns))
    db.execute(
        f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})", [row[name] for name in columns]
    )


ROWS = st.sampled_from(sorted(COLUMNS)).flatmap(
    lambda table: st.tuples(st.just(table), st.fixed_dictionaries(dict.fromkeys(COLUMNS[table], CELLS)))
)
WILD = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@WILD
@given(rows=st.lists(ROWS, min_size=1, max_size=6), key=st.integers(0, 3))
def test_any_cell_in_any_column_changes_no_answer(tmp_path: Path, honest: bytes, rows: list[Any], key: int) -> None:
    def write(db: sqlite3.Connection) -> None:
        for table, row in rows:
            inserted(db, table, {**row, "subject": key} if "subject" in row else row)

    asked(tmp_path / "home", honest, write)


@WILD
@given(about=SUBJECTS, verdicts=st.lists(VERDICTS, max_size=3), trials=st.lists(TRIALS, max_size=3))
def test_sound_rows_with_senseless_facts_change_no_other_answer(
    tmp_path: Path, honest: bytes, about: Any, verdicts: list[Any], trials: list[Any]
) -> None:
    def write(db: sqlite3.Connection) -> None:
        body = msgspec.json.encode(about).decode()
        try:
            digest = facts.read_subject(body).digest
        except Exception:
            digest = canonical.digest({})
        inserted(db, "subjects", {"digest": digest, "decision": "rows", "identity": b"\0" * 16, "body": body})
        key = db.execute("SELECT max(id) FROM subjects").fetchone()[0]
        other = db.execute(
            "SELECT id, digest FROM subjects WHERE digest = ?", (subject_of(decision(), 3).digest,)
        ).fetchone()
        for table, bodies in (("verdicts", verdicts), ("trials", trials)):
            for fact in bodies:
                raw = msgspec.json.encode(fact)
                for number, named in filter(None, ((key, digest), other)):
                    row = {"subject": number, "at": 1.0, "identity": facts.identity(named, raw), "body": raw.decode()}
                    inserted(db, table, row)

    asked(tmp_path / "home", honest, write)


TEXT_COLUMNS = [(table, name) for table in COLUMNS for name in COLUMNS[table] if name not in ("subject", "at", "count")]


@pytest.mark.parametrize(("table", "column"), TEXT_COLUMNS)
def test_a_value_longer_than_any_of_ours_costs_its_row(tmp_path: Path, honest: bytes, table: str, column: str) -> None:
    def write(db: sqlite3.Connection) -> None:
        usual = {"digest": "d", "decision": "rows", "identity": b"\0" * 16, "body": "{}", "subject": 1, "at": 1.0}
        row = {**usual, "key": "k", "kind": "run", "asked_as": "", "count": 1, column: "x" * LONG}
        inserted(db, table, row)

    asked(tmp_path / "home", honest, write)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(features=FEATURES)
def test_any_features_get_an_answer_or_are_refused_as_a_problem(honest: bytes, features: Any) -> None:
    made = decision()
    for ask in (made.decide, made.explain):
        try:
            said = ask(features)
        except InvalidProblem as error:
            str(error).encode()
        else:
            str(said)


def test_an_explanation_of_a_row_stays_short(home: Path) -> None:
    made = decision()
    here = subject_of(made, 1)
    parts = (*here.environment.parts, Part("x" * 100_000, "\x1b" + "y" * 100_000, "must"))
    store = SqliteStore(home)
    store.conclude(replace(here, environment=Environment(parts)), HONEST)
    store.close()
    said = str(made.explain({"n": 1}))
    assert "differs in xxx" in said
    assert len(said) < 3_000
