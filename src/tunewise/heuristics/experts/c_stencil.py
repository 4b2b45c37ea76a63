"""Two-dimensional correlation in C: algorithm and register tile by the size of the filter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from tunewise.decision import Config, Hardware
from tunewise.decision.registers import native_width, register_count
from tunewise.heuristics import roles
from tunewise.heuristics.case import Case
from tunewise.heuristics.expert import Expert
from tunewise.heuristics.matching import On, ceil_div

_FLOAT = 4
_L1 = 32 << 10  # bytes, where a machine does not say
_UNITS, _LATENCY, _CALL = 2, 4, 10  # multiply-adds in a cycle; cycles of a sum, and to begin and end a tile
_LARGE = 8  # lines and columns of a filter, from which rows share most inputs
_SMALL = 3  # lines of a filter that is unrolled whole


@dataclass(frozen=True, slots=True)
class Filter:
    """A problem: the size of the filter and of the result."""

    height: int
    width: int
    out_height: int
    out_width: int

    def time(self, rows: int, vectors: int, width: int) -> float:
        """Return the cycles of all outputs with a register tile; what hangs over the edge is computed twice."""
        tiles = ceil_div(self.out_height, rows) * ceil_div(self.out_width, vectors * width)
        return tiles * (self.height * self.width * max(rows * vectors / _UNITS, _LATENCY) + _CALL)


class StencilTile(Expert):
    """How outputs get their inputs depends on the filter; the tile is what the registers hold.

    `gather`: each output vector loads its own inputs. `share`: an input is loaded once for all rows of the tile that it
    touches. To find out which rows these are costs more than the loads, unless the filter is large in both directions,
    or so small and compiled in that the compiler knows. The tile is the one that takes the fewest cycles, with some
    registers left. Strips keep the lines of a tile in half of the first cache.
    """

    name = "c-stencil-tile"
    backend = "c"
    hardware = On(kinds=("cpu",))
    most = 2

    def seeds(self, problem: Case) -> Sequence[Config]:
        """Return the best tile for `share` and for `gather`, or the two best for `gather` where nothing is shared."""
        played, filter = roles.cast(problem.space, roles.STENCIL), _filter(problem)
        if filter is None or not played.offers("algorithm", "gather") or not played.has("rows", "vectors", "width"):
            return []
        tiles = _tiles(filter, played, problem.hardware, spare=4)
        if _is_shared(filter, played):
            spare = 2 if _is_compiled_in(filter, played) else 4
            rows = [tile for tile in _tiles(filter, played, problem.hardware, spare=spare, inputs=1) if tile[0] > 1]
            chosen = [*(("share", tile) for tile in rows[:1]), *(("gather", tile) for tile in tiles[:1])]
        else:
            chosen = [("gather", tile) for tile in tiles[: self.most]]
        return [_config(algorithm, tile, filter, played, problem.hardware) for algorithm, tile in chosen]


Tile = tuple[int, int]  # rows, vectors


def _filter(problem: Mapping[str, object]) -> Filter | None:
    sizes = [size for name in ("h", "w", "fh", "fw") if isinstance(size := problem.get(name), int)]
    if len(sizes) < 4:
        return None
    height, width, fh, fw = sizes
    return Filter(fh, fw, max(1, height - fh + 1), max(1, width - fw + 1))


def _is_compiled_in(filter: Filter, played: roles.Cast) -> bool:
    return filter.height == filter.width and filter.height in played.numbers("fixed")


def _is_shared(filter: Filter, played: roles.Cast) -> bool:
    is_small = filter.height <= _SMALL and _is_compiled_in(filter, played)
    return played.offers("algorithm", "share") and (is_small or min(filter.height, filter.width) >= _LARGE)


def _tiles(filter: Filter, played: roles.Cast, hardware: Hardware, *, spare: int, inputs: int = 0) -> list[Tile]:
    """Return the tiles inside the result whose sums, and a row of `inputs`, leave some registers; the fastest first."""
    width, count = native_width(hardware), register_count(hardware)
    tiles = [
        (rows, vectors)
        for rows, vectors in product(played.numbers("rows"), played.numbers("vectors"))
        if rows <= filter.out_height and vectors * width <= filter.out_width
        if (rows + inputs) * vectors + spare <= count
    ]
    return sorted(tiles, key=lambda tile: filter.time(tile[0], tile[1], width))


def _config(algorithm: str, tile: Tile, filter: Filter, played: roles.Cast, hardware: Hardware) -> Config:
    rows, vectors = tile
    lines = _FLOAT * (rows + filter.height - 1)
    most = dict(hardware.caches).get("l1d", _L1) / 2 / lines
    strips = [strip for strip in played.numbers("strip") if strip > 0]
    is_whole = filter.out_width <= most or not strips
    return played.config(
        algorithm=algorithm,
        rows=rows,
        vectors=vectors,
        width=native_width(hardware),
        fixed=filter.height if _is_compiled_in(filter, played) else 0,
        strip=0 if is_whole else max((strip for strip in strips if strip <= most), default=min(strips)),
    )
