"""What a store remembers of a decision as a data set, with the facts of the hardware of every problem."""

from tunewise.errors import NotFound
from tunewise.formats.dataset import DataSet
from tunewise.formats.trials import Derive, data_of
from tunewise.store import Store


def from_store(store: Store, decision: str, *, derive: Derive | None = None) -> DataSet:
    """Return all trials of a decision; `derive`, such as a declaration's own, adds features to those of a problem.

    Raises NotFound where nothing is remembered of the decision, and InvalidData where nothing of it was measured.
    """
    known = store.decisions()
    if decision not in known:
        listed = ", ".join(known) or "nothing yet"
        raise NotFound(f"the store remembers nothing of {decision!r}; it knows {listed}")
    return data_of(store.records(decision), decision, derive=derive)
