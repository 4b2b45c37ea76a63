"""Where programs get their store from."""

from collections.abc import Sequence
from pathlib import Path

from tunewise.settings import Settings
from tunewise.store.base import Store
from tunewise.store.layers import LayeredStore
from tunewise.store.safe import SafeStore
from tunewise.store.sqlite import SqliteStore


def open_store(place: Settings | Path, layers: Sequence[Path] = ()) -> Store:
    """Return the user's store over read-only layers, each a store's directory or file, as settings or a path name them.

    Nothing is touched before the first use, and no trouble with a disk is ever raised: see SafeStore.
    """
    home, below = (place.home, place.layers) if isinstance(place, Settings) else (place, ())
    layers = (*layers, *below)
    top = SafeStore(SqliteStore(home))
    if not layers:
        return top
    return LayeredStore(top, [SafeStore(SqliteStore(layer, is_shared=True)) for layer in layers])
