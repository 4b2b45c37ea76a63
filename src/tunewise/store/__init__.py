"""Remembering: every trial and verdict, in memory or in one SQLite file that many processes share."""

from tunewise.store.base import Flight, Prune, Pruned, Store, StoreInfo, elsewhere
from tunewise.store.exchange import Imported, export_to, import_from, merge
from tunewise.store.layers import LayeredStore
from tunewise.store.locks import renew_in_children
from tunewise.store.memory import MemoryStore
from tunewise.store.opening import open_store
from tunewise.store.safe import SafeStore
from tunewise.store.sqlite import SqliteStore

__all__ = [
    "Flight",
    "Imported",
    "LayeredStore",
    "MemoryStore",
    "Prune",
    "Pruned",
    "SafeStore",
    "SqliteStore",
    "Store",
    "StoreInfo",
    "elsewhere",
    "export_to",
    "import_from",
    "merge",
    "open_store",
    "renew_in_children",
]
