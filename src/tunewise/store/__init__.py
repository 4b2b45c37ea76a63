"""Remembering: every trial and verdict, in memory, in an SQLite file that processes share, or on a team's server."""

from tunewise.store.backup import Backup, backup, restore
from tunewise.store.base import (
    Flight,
    Holder,
    Measured,
    Page,
    Prune,
    Pruned,
    Remembered,
    Sign,
    Store,
    StoreInfo,
    elsewhere,
)
from tunewise.store.exchange import Imported, export_to, import_from, merge, migrate
from tunewise.store.guard import before_closing
from tunewise.store.layers import LayeredStore, hasty
from tunewise.store.locks import renew_in_children
from tunewise.store.memory import MemoryStore
from tunewise.store.opening import open_store, store_at
from tunewise.store.points import are_near, log_ratio
from tunewise.store.postgres import PostgresStore
from tunewise.store.safe import SafeStore
from tunewise.store.sqlite import SqliteStore

__all__ = [
    "are_near",
    "log_ratio",
    "Measured",
    "Page",
    "Remembered",
    "Backup",
    "Flight",
    "Holder",
    "Imported",
    "LayeredStore",
    "MemoryStore",
    "PostgresStore",
    "Prune",
    "Pruned",
    "SafeStore",
    "Sign",
    "SqliteStore",
    "Store",
    "StoreInfo",
    "backup",
    "before_closing",
    "elsewhere",
    "export_to",
    "hasty",
    "import_from",
    "merge",
    "migrate",
    "open_store",
    "renew_in_children",
    "restore",
    "store_at",
]
