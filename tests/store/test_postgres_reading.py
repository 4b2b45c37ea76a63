"""Rows on a server that anybody may have written: none is taken that is longer than what we write."""

import resource
import warnings
from dataclasses import replace

import pytest

import tunewise as tw
from tunewise.errors import StoreWarning
from tunewise.formats import facts
from tunewise.session.context import current_store
from tunewise.store import PostgresStore, postgres_reading
from tunewise.store.connecting import connect
from tunewise.testing.store_contract import subject, timed, won


def test_rows_that_nobody_writes_are_left_out_without_being_sent(url: str) -> None:
    store, about, other = PostgresStore(url), subject(m=1), subject(m=2)
    store.add(about, [timed(8)])
    store.conclude(about, won())
    store.conclude(other, won())
    store.miss(subject(m=3))
    with connect(url) as db:
        key = db.execute("SELECT id FROM tunewise.subjects WHERE digest = %s", (about.digest,)).fetchone()[0]
        long = "INSERT INTO tunewise.{} (subject, at, identity, body) SELECT %s, 0, %s, repeat('x', %s)"
        for statement in (long.format("trials"), long.format("verdicts")):
            db.execute(statement, (key, b"\1" * 16, 300 << 20))
            db.execute(statement, (key, b"\2" * (8 << 20), 1))
        db.execute(
            "INSERT INTO tunewise.subjects (digest, decision, identity, body) SELECT %s, %s, '', repeat('y', %s)",
            ("e" * 64, about.decision, 300 << 20),
        )
        miss = "INSERT INTO tunewise.misses (key, decision, asked_as, body, count)"
        db.execute(miss + " VALUES (%s, 'x', '', repeat('z', %s), 9)", ("f" * 64, 9 << 20))
        db.execute("INSERT INTO tunewise.signs VALUES ('run', 'k', 9, repeat('z', %s))", (9 << 20,))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    postgres_reading._warn.cache_clear()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert store.trials(about) == [timed(8)]
        assert store.verdicts(about) == store.verdicts(other) == [won()]
        assert store.subjects(about.decision) == [about, other]
        assert store.recorded(about) == about
        assert len(list(store.records())) == 3
        assert [miss.count for miss in store.misses()] == [1]
        assert store.signs() == []
    assert [(one.category, "rows of more than 1 MiB" in str(one.message)) for one in told] == [(StoreWarning, True)]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10
    store.close()


def test_more_rows_than_anybody_measures_are_left_out_oldest_first(url: str) -> None:
    store, about = PostgresStore(url), subject()
    store.add(about, [timed(8)])
    with connect(url) as db:
        key = db.execute("SELECT id FROM tunewise.subjects").fetchone()[0]
        db.execute(
            "INSERT INTO tunewise.trials (subject, at, identity, body)"
            " SELECT %s, 0, %s, repeat('x', 1000000) FROM generate_series(1, 300)",
            (key, b"\1" * 16),
        )
    store.add(about, [timed(16)])
    postgres_reading._warn.cache_clear()
    with pytest.warns(StoreWarning, match="are left out"):
        assert store.trials(about) == [timed(16)]
    assert len(list(store.records())) == 2
    store.close()


BODIES = ["", "{}", "[" * 100_000, '{"ending":"win"}', "1e999", "\x1b[2J", "null", '{"is":"timing"}', "\ufffe"]


@pytest.mark.parametrize("body", BODIES)
def test_rows_that_no_tunewise_wrote_change_no_answer(url: str, body: str) -> None:
    tw.configure(store=url)
    decision = tw.Decision("rows", space=tw.Space({"tile": [8, 32]}), default={"tile": 8}, near=1)
    about = decision.subject(decision.problem({"n": 1}))
    store = PostgresStore(url)
    store.conclude(about, replace(won(), challenger={"tile": 32}))
    with connect(url) as db:
        keys = [key for (key,) in db.execute("SELECT id FROM tunewise.subjects").fetchall()]
        subjects = "INSERT INTO tunewise.subjects (digest, decision, identity, body) VALUES (%s, 'rows', '', %s)"
        digests = ("", "d" * 64, about.digest)
        keys += [db.execute(subjects + " RETURNING id", (digest, body)).fetchone()[0] for digest in digests]
        for key in keys:
            for identity in (b"", b"\0" * 16, facts.identity(about.digest, body.encode())):
                for table in ("trials", "verdicts"):
                    fact = f"INSERT INTO tunewise.{table} (subject, at, identity, body) VALUES (%s, 'NaN', %s, %s)"
                    db.execute(fact, (key, identity, body))
        miss = "INSERT INTO tunewise.misses (key, decision, asked_as, body, count) VALUES ('', '', '', %s, -1)"
        db.execute(miss, (body,))
        db.execute("INSERT INTO tunewise.signs VALUES ('run', 'k', 'Infinity', %s)", (body,))
    store.close()
    for n, rung in ((1, "memory"), (2, "default")):
        assert (decision.decide({"n": n}).rung, decision.explain({"n": n}).answer.rung) == (rung, rung)
    held = current_store()
    assert len(list(held.records())) == 1
    assert all(dict(miss.problem) == {"n": 2} for miss in held.misses())
    assert "k" not in [sign.key for sign in held.signs()]
    tw.configure()
