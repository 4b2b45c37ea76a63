"""A trained net as a PyTorch module, with its scaling inside: for those who serve by PyTorch, and to compare with."""

from typing import Any

import numpy as np

from tunewise.learn.descent import torch_module
from tunewise.models import Net
from tunewise.models.net import FAR
from tunewise.models.scoring import unpacked


def module(net: Net) -> Any:
    """Return a `torch.nn.Module` in eval mode: all columns of some rows in, as doubles; a guess for every row out.

    Raises MissingPart without PyTorch.
    """
    torch = torch_module()

    class Scaling(torch.nn.Module):  # type: ignore[misc, name-defined]
        """Picks the columns that a net looks at, and scales them."""

        def __init__(self) -> None:
            super().__init__()
            flags, logs, others = (_numbers(net, kind) for kind in ("flag", "log", "plain"))
            self._cuts = [len(flags), len(logs), len(others)]
            order = [net.scales[number] for number in (*flags, *logs, *others)]
            self.register_buffer("columns", torch.tensor([scale.column for scale in order]))
            self.register_buffer("words", torch.tensor([float(net.scales[number].word or 0) for number in flags]))
            self.register_buffer("mean", torch.tensor([scale.mean for scale in order]))
            self.register_buffer("deviation", torch.tensor([scale.deviation for scale in order]))

        def forward(self, rows: Any) -> Any:
            """Return the inputs of the first layer, in the order that `_order` has."""
            flags, logs, others = rows.index_select(1, self.columns).float().split(self._cuts, dim=1)
            shown = [(flags == self.words).float(), torch.copysign(torch.log1p(logs.abs()), logs), others]
            return ((torch.cat(shown, dim=1) - self.mean) / self.deviation).clamp_(-FAR, FAR)

    parts: list[Any] = [Scaling()]
    for place, layer in enumerate(net.layers):
        linear = torch.nn.Linear(layer.inputs, layer.outputs)
        weights, biases = (torch.from_numpy(part.astype(np.float32)) for part in unpacked(layer))
        linear.load_state_dict({"weight": weights if place else weights[:, _order(net)], "bias": biases})
        parts += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*parts[:-1], torch.nn.Flatten(0)).eval()


def _order(net: Net) -> list[int]:
    return [number for kind in ("flag", "log", "plain") for number in _numbers(net, kind)]


def _numbers(net: Net, kind: str) -> list[int]:
    """Return the inputs that are flags of words, that are logarithms, or that are neither."""
    kinds = ["flag" if scale.word is not None else "log" if scale.is_log else "plain" for scale in net.scales]
    return [number for number, one in enumerate(kinds) if one == kind]
