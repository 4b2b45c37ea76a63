"""Models small enough to read: small numbers take one choice, large ones another, and some make it abstain."""

from pathlib import Path
from typing import Any

from tunewise.models import Card, Columns, Leaf, Model, Number, Split, Tree, save


def model(decision: str, low: dict[str, Any], high: dict[str, Any], **card: Any) -> Model:
    """Return a model of the feature n: up to 10 it answers `low`, up to 100 `high`, and up to 1000 it abstains."""
    nodes = (
        Split(0, 1, 2, threshold=10),
        Leaf((0, 1), support=5),
        Split(0, 3, 4, threshold=100),
        Leaf((1, 0), support=7),
        Leaf(),
    )
    return Model(
        card=Card(decision=decision, **card),
        choices=(low, high),
        default=1,
        columns=Columns((Number("n", 1, 1000),)),
        body=Tree(nodes),
    )


def saved(place: Path, *args: Any, **card: Any) -> Path:
    """Return the file a small model was saved to."""
    place.parent.mkdir(parents=True, exist_ok=True)
    save(model(*args, **card), place)
    return place
