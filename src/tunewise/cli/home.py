"""Where the command line keeps things: another home for a while, and a store that can be trusted to remember."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from tunewise.errors import StoreError, StoreWarning
from tunewise.session import configure
from tunewise.session.context import current_store
from tunewise.store import Store

FORGETS = "tunewise.forgets"  # in a context's meta: what this command measures is gone when it ends


@contextmanager
def at_home(home: str) -> Iterator[None]:
    """Keep everything in `home`: the store, the locks, and the compiled kernels, in child processes too."""
    try:
        with with_variable("TUNEWISE_HOME", os.path.abspath(home)), with_variable("TUNEWISE_STORE", ""):
            configure()
            yield
    finally:
        configure()


@contextmanager
def with_variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable inside the block: children and libraries that read it see it."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def sound_store() -> Store:
    """Return the store in force; raises StoreError if it is in trouble.

    A program must not stop because of its store, so the library degrades with a warning. Somebody at a terminal wants
    to know before minutes of measuring are kept in memory only.
    """
    store = current_store()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StoreWarning)
        held = store.info()
        if held.trouble is not None:  # it may have passed: what waits in memory is tried once more
            store.close()
            caught.clear()
            held = store.info()
    told = [str(warning.message) for warning in caught]
    if held.trouble is not None:
        raise StoreError(held.trouble)
    for layer in held.layers:
        if layer.trouble is not None:
            raise StoreError(f"{layer.trouble}; correct TUNEWISE_LAYERS, which names it as a layer, or unset it")
    if told:
        raise StoreError(f"{told[0]} Run the command again to go on with that.")
    return store


def writable_store() -> Store:
    """Return the store in force; raises StoreError if it is in trouble, or would not keep what is measured now."""
    store = sound_store()
    held = store.info()
    if held.is_read_only:
        way_out = "make it and its directory writable, or set TUNEWISE_HOME to another directory"
        raise StoreError(f"the store {held.place} can be read but not written; {way_out}")
    return store
