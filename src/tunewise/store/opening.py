"""Where programs get their store from."""

from collections.abc import Sequence
from pathlib import Path

from tunewise.settings import Place, Settings, current, is_server
from tunewise.store.base import Store
from tunewise.store.layers import LayeredStore
from tunewise.store.ledger import Ledger
from tunewise.store.listening import Heard
from tunewise.store.postgres import PostgresStore
from tunewise.store.safe import SafeStore
from tunewise.store.sqlite import SqliteStore


def open_store(place: Settings | Place, layers: Sequence[Place] = (), *, heard: Heard | None = None) -> Store:
    """Return the user's store over read-only layers, as settings or places name them.

    A place is a store's directory or file, or the address of a PostgreSQL database; `heard` is told what other
    processes conclude there, and when a place that was in trouble can be read. Nothing is touched before the first use,
    and no trouble with a disk or a server is ever raised: see SafeStore.
    """
    home = place.home if isinstance(place, Settings) else current().home
    if isinstance(place, Settings):
        layers = (*layers, *place.layers)
        place = place.store or place.home
    top, is_shared = _safe(place, heard=heard), is_server(place)
    if not layers and not is_shared:
        return top
    below = [_safe(layer, is_shared=True, heard=heard) for layer in layers]
    return LayeredStore(top, below, ledger=Ledger(home), is_shared=is_shared)


def _safe(place: Place, *, is_shared: bool = False, heard: Heard | None) -> SafeStore:
    return SafeStore(store_at(place, is_shared=is_shared, heard=heard), heard=heard, is_remote=is_server(place))


def store_at(place: Place, *, is_shared: bool = False, heard: Heard | None = None) -> SqliteStore | PostgresStore:
    """Return the store at a place, which raises StoreError in any trouble; with `is_shared` it is only read."""
    if is_server(place):
        return PostgresStore(str(place), is_shared=is_shared, heard=heard)
    return SqliteStore(Path(place), is_shared=is_shared)
