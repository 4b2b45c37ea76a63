"""A decision to try things on: pad or not, with feedback that counts how often it was asked."""

from collections import Counter
from pathlib import Path
from typing import Any

from tunewise.autoheuristic import AHContext, AutoHeuristic, LocalFeedback
from tunewise.models import Card, Columns, Leaf, Model, Number, Split, Tree, save

CHOICES = ["plain", "pad"]


class Padding:
    """Padding pays from n=100 on; every measurement is counted."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def feedback(self, n: float) -> LocalFeedback:
        def measured(choice: str) -> float:
            self.asked[choice] += 1
            return 10.0 if (choice == "pad") == (n < 100) else 5.0

        return LocalFeedback(measured)

    def ask(self, n: float = 8, dtype: str = "int32", **options: Any) -> AutoHeuristic:
        context = AHContext()
        context.add_feature("n", n)
        context.add_feature("dtype", dtype, is_categorical=True)
        options = {"name": "padding", "choices": CHOICES, "feedback": self.feedback(n), **options}
        return AutoHeuristic(lambda: "plain", context=context, **options)


def save_model(path: Path, choices: tuple[str, ...] = ("plain", "pad"), **card: Any) -> Path:
    """Save a model that pads from n=100 on and abstains beyond n=1000; return where."""
    path.parent.mkdir(parents=True, exist_ok=True)
    model = Model(
        card=Card(decision="padding", **card),
        choices=tuple({"choice": choice} for choice in choices),
        columns=Columns((Number("n", 1, 1000),)),
        body=Tree((Split(0, 1, 2, threshold=99.5), Leaf((0, 1)), Leaf((1, 0)))),
    )
    save(model, path)
    return path
