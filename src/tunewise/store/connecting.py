"""Getting a connection to a PostgreSQL server, and saying why there is none without a word about the user."""

import functools
import importlib
import os
import re
from contextlib import suppress
from typing import Any

from tunewise.errors import StoreError, UnreachableStore
from tunewise.settings import shown
from tunewise.store import postgres_schema as schema
from tunewise.store.locks import keep_for_ever
from tunewise.store.replying import replying

# Unless the user's address says otherwise. A server that is gone must cost a program seconds, never a hang.
_USUAL: dict[str, object] = {
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "client_encoding": "utf8",
    "fallback_application_name": "tunewise",
}
# Where a server has them. One that ends idle sessions ends the flights of who measures for long, and one that does not
# look after its clients keeps the flights of a machine that vanished.
_SESSION = """
    SELECT set_config(name, wanted, false) FROM pg_settings JOIN (VALUES
        ('lock_timeout', '30s'), ('idle_in_transaction_session_timeout', '60s'), ('idle_session_timeout', '0'),
        ('default_transaction_isolation', 'read committed'), ('synchronous_commit', 'on'),
        ('tcp_keepalives_idle', '30'), ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '3')
    ) AS ours (name, wanted) USING (name) WHERE name <> 'synchronous_commit' OR setting = 'off'
"""


def connect(url: str) -> Any:
    """Return a new connection; raises StoreError with the place and the reason, never with user or password."""
    psycopg, place = driver(), shown(url)
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
        if _is_cut_wrongly(url):
            raise StoreError(f"the password for {place} holds a sign that ends it; write %40 for @ and %2F for /")
    except psycopg.Error:
        form = "write postgresql://host/database, or postgresql:///?service=NAME"
        raise StoreError(f"{place} is not an address of a PostgreSQL database; {form}") from None
    usual = {name: value for name, value in _USUAL.items() if name not in given}
    try:
        db = replying(psycopg.Connection, place).connect(url, autocommit=True, **usual)
    except psycopg.Error as error:
        raise UnreachableStore(f"the store {place} cannot be reached: {said(error, url)}") from None
    try:
        _check(db, place)
        db.execute(_SESSION)
    except BaseException:
        db.close()
        raise
    return db


def abandon(inherited: Any) -> None:
    """Let go of a parent's connection in a forked child, without a word to the server."""
    # To close it would end the parent's session; to keep its socket would keep the parent's locks after its death.
    if inherited is not None and not inherited.closed:
        keep_for_ever(inherited)
        with suppress(OSError):
            os.close(inherited.fileno())


def said(error: Exception, url: str) -> str:
    """Return what the server or libpq said in one line, without the user's name and password."""
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    line = (primary or str(error).strip() or type(error).__name__).splitlines()[0]
    line = re.sub(r'\b(user|role) "(?:[^"]|"")*"', r"\1", line)
    given = driver().conninfo.conninfo_to_dict(url)
    if given.get("user"):  # a server that speaks another language quotes it in other ways
        line = re.sub(rf"(?<!\w){re.escape(str(given['user']))}(?!\w)", "...", line)
    return line.replace(str(given["password"]), "...") if given.get("password") else line


def _is_cut_wrongly(url: str) -> bool:
    """Return whether libpq takes a part of an address for a host or a database that belongs to the password."""
    server, _, rest = url.partition("://")[2].partition("/")
    return server.count("@") > 1 or "@" in rest.partition("?")[0]


@functools.cache
def driver() -> Any:
    """Return psycopg; raises StoreError if it is not installed, so that a program goes on without it."""
    try:
        return importlib.import_module("psycopg")
    except ImportError as error:
        raise StoreError(f"PostgreSQL needs psycopg ({error}): pip install 'tunewise[postgres]'") from None


def _check(db: Any, place: str) -> None:
    if db.info.server_version < schema.OLDEST_SERVER:
        raise StoreError(f"{place} is a PostgreSQL server older than 13; upgrade it")
    encoding = db.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"{place} is a database in {encoding}; make one with: createdb --encoding UTF8 --template template0"
        )
