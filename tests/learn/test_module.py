"""A net as a PyTorch module: the same guesses, its scaling inside."""

from struct import pack

import numpy as np
import pytest

from tunewise.learn.module import module
from tunewise.models import Columns, Derived, Layer, Net, Number, Scale, Word

torch = pytest.importorskip("torch")

COLUMNS = Columns(
    problem=(Number("m", -10.0, 4096.0), Word("dtype", ("f4", "f8", "i4"))),
    config=(Number("tile", 1.0, 64.0),),
    derived=(Derived("product", (0, 2)),),
)


def layer(chance: np.random.Generator, before: int, after: int) -> Layer:
    weights, biases = chance.normal(size=(after, before)), chance.normal(size=after)
    return Layer(before, after, *(pack(f"<{part.size}f", *part.ravel()) for part in (weights, biases)))


def test_the_module_guesses_what_the_net_does() -> None:
    chance = np.random.default_rng(0)
    scales = (
        Scale(0, 3.0, 2.0),
        Scale(1, 0.3, 0.5, word=2),
        Scale(3, 4.0, 2.0, is_log=True),
        Scale(2, 5.0, 9.0),
        Scale(1, 0.3, 0.5, word=0),
        Scale(0, 1.0, 1.0, is_log=True),
    )
    net = Net(scales, (layer(chance, 6, 5), layer(chance, 5, 1)))
    rows = [
        COLUMNS.row([m, word], [tile]) for m in (-7.0, 0.0, 4000.0) for word in (0.0, 1.0, 2.0) for tile in (1.0, 64.0)
    ]
    served = module(net)
    with torch.inference_mode():
        guessed = served(torch.tensor(rows, dtype=torch.float64)).numpy()
    assert not served.training
    assert np.abs(guessed - [net.guess(row) for row in rows]).max() < 1e-5
