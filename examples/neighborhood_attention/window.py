"""Which keys a query sees: the windows of neighborhood attention, one dimension of the token grid at a time."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of the grid, and the window along it.

    A dilation of d parts the tokens into d groups, every d-th token each, that never see one another. In its group a
    query sees exactly `kernel` keys, itself in the middle; at a border the window is shifted to stay inside. Where the
    axis is causal it sees itself and the `kernel - 1` keys before it, as far as there are any.
    """

    size: int
    kernel: int
    dilation: int = 1
    causal: bool = False

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"a grid of {self.size} tokens in a dimension is none; at least 1 is needed")
        if self.kernel < 1 or self.kernel % 2 == 0:
            raise ValueError(f"kernel_size={self.kernel} is not a positive odd number, so no token is in its middle")
        if self.dilation < 1:
            raise ValueError(f"dilation={self.dilation} is not a whole number of at least 1")
        if self.kernel * self.dilation > self.size:
            fits = self.size // self.kernel
            way_out = f"a dilation of at most {fits} fits" if fits else f"at most {self.size} keys fit"
            asked = f"kernel_size={self.kernel} with dilation={self.dilation}"
            raise ValueError(f"{asked} does not fit into {self.size} tokens; {way_out}")

    @property
    def longest(self) -> int:
        """How many tokens the longest dilation group has."""
        return -(-self.size // self.dilation)

    def length(self, group: int) -> int:
        """Return how many tokens a dilation group has."""
        return -(-(self.size - group) // self.dilation)

    def span(self, group: int, index: int) -> tuple[int, int]:
        """Return the first key that a query sees and the one after the last, as places in its dilation group."""
        if self.causal:
            return max(0, index - self.kernel + 1), index + 1
        first = min(max(index - self.kernel // 2, 0), self.length(group) - self.kernel)
        return first, first + self.kernel

    def window(self, position: int) -> range:
        """Return the positions of all keys that the query at a position sees."""
        index, group = divmod(position, self.dilation)
        first, stop = self.span(group, index)
        return range(group + first * self.dilation, group + stop * self.dilation, self.dilation)


Axes = tuple[Axis, ...]


def axes_of(grid: Sequence[int], kernel_size: object, dilation: object, is_causal: object) -> Axes:
    """Return the axes of a grid; each argument is one value for all dimensions, or one for each.

    Raises ValueError where a window does not fit.
    """
    dims = len(grid)
    kernels, dilations = _each("kernel_size", kernel_size, int, dims), _each("dilation", dilation, int, dims)
    return tuple(map(Axis, grid, kernels, dilations, _each("is_causal", is_causal, bool, dims)))


def _each(name: str, value: object, kind: type, dims: int) -> tuple:
    values = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,) * dims
    if len(values) != dims:
        raise ValueError(f"{name}={value!r} has {len(values)} values for {dims} dimensions")
    if not all(type(one) is kind for one in values):
        raise ValueError(f"{name}={value!r} is neither {'an' if kind is int else 'a'} {kind.__name__} nor one for each")
    return values
