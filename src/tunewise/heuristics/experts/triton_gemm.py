"""Matrix products in Triton-style spaces: tiles by the shape of the product, and by how well they fill the device."""

from collections.abc import Sequence
from dataclasses import dataclass

from tunewise.decision import Config, Hardware, MatmulFact
from tunewise.heuristics import roles
from tunewise.heuristics.case import Case
from tunewise.heuristics.expert import Expert
from tunewise.heuristics.matching import On, ceil_div, clamped, pow2_at_most

GPUS = On(kinds=("cuda", "hip"))
_SHARED = 48 << 10  # bytes that every GPU gives a block, where a device does not say
_CORES = 100  # where a device does not say
_MMA = 16  # the least side of a tile that matrix instructions work on
_LINE = 128  # bytes of a cache line: what a row of a tile should fill
_SUMS = 128  # of a thread: with more, registers spill
_EVEN = 64  # a square tile of this side spends as much on loading as on computing
_TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (64, 32), (32, 64), (32, 32))
_SKINNY = 64  # rows (or columns) of a product that is bound by reading its large factor
_SPLITS = 16


@dataclass(frozen=True, slots=True)
class Tile:
    """What one program computes: m x n of the result, k at a time."""

    m: int
    n: int
    k: int

    def count(self, fact: MatmulFact) -> int:
        """Return how many of them cover all results."""
        return ceil_div(fact.m, self.m) * ceil_div(fact.n, self.n) * fact.batch

    def waves(self, fact: MatmulFact, hardware: Hardware) -> int:
        """Return how often the device is filled, the last time perhaps in part."""
        return ceil_div(self.count(fact), hardware.cores or _CORES)

    def time(self, fact: MatmulFact, hardware: Hardware) -> float:
        """Return what the product costs, in no unit: whole waves of tiles, and small tiles load more than they need."""
        return self.waves(fact, hardware) * self.m * self.n * (1 + _EVEN / self.m + _EVEN / self.n)

    @property
    def warps(self) -> int:
        """The warps it takes to hold its sums in registers."""
        return min(8, max(4, pow2_at_most(self.m * self.n // (32 * _SUMS))))

    def stages(self, fact: MatmulFact, hardware: Hardware, most: int) -> int:
        """Return how many loads may be under way at once: what shared memory holds; two where copies are not async."""
        held = (self.m + self.n) * self.k * fact.operand_bytes
        limit = most if _copies_ahead(hardware) else 2
        return max(1, min(limit, (hardware.shared_bytes or _SHARED) // held))


class SquareGemm(Expert):
    """Many rows and many columns: the tile with the least waste over whole waves.

    Large tiles load less for what they compute; but a device works in waves, and a last wave that is nearly empty
    costs as much as a full one. Each row of a tile fills a cache line; loads run ahead as far as shared memory goes;
    a thread holds at most 128 sums.
    """

    name = "square-gemm"
    backend = "triton"
    hardware = GPUS
    most = 2

    def seeds(self, problem: Case) -> Sequence[Config]:
        """Return the two tiles that cost least, if both sides of the product are longer than a skinny one's."""
        fact, played = problem.fact(MatmulFact), roles.cast(problem.space, roles.TILE)
        if fact is None or not played.has("m", "n") or min(fact.m, fact.n) <= _SKINNY:
            return []
        tiles = sorted(_square_tiles(fact), key=lambda tile: tile.time(fact, problem.hardware))
        return [_config(tile, fact, problem.hardware, played, stages=4) for tile in tiles[: self.most]]


class SkinnyGemm(Expert):
    """Few rows, many columns (or the other way round): read the large factor once, from all over the device.

    Such a product is bound by memory. The tile is as narrow as the short side allows, and along the long side as wide
    as leaves a tile for every core; it is deep, with many loads under way and few warps.
    """

    name = "skinny-gemm"
    backend = "triton"
    hardware = GPUS

    def seeds(self, problem: Case) -> Sequence[Config]:
        """Return one tile, if one side is short and the other at least eight times as long."""
        fact, played = problem.fact(MatmulFact), roles.cast(problem.space, roles.TILE)
        if fact is None or not played.has("m", "n") or not _is_skinny(fact):
            return []
        return [_config(_skinny_tile(fact, problem.hardware), fact, problem.hardware, played, stages=5)]


class SplitK(Expert):
    """Too few tiles to fill the device, and long sums: several programs share each tile's sum.

    The sums are split into the largest power of two that still finds idle cores, as long as each part keeps four
    steps of the loop: adding the parts up costs a pass over the result each.
    """

    name = "split-k"
    backend = "triton"
    hardware = GPUS

    def seeds(self, problem: Case) -> Sequence[Config]:
        """Return one config if the space can split k and half of the cores or more would have nothing to do."""
        fact, played = problem.fact(MatmulFact), roles.cast(problem.space, roles.TILE)
        if fact is None or not played.has("m", "n", "split_k"):
            return []
        tile = _skinny_tile(fact, problem.hardware) if _is_skinny(fact) else Tile(*_small(fact), _depth(fact))
        idle = (problem.hardware.cores or _CORES) // tile.count(fact)
        splits = min(pow2_at_most(idle), pow2_at_most(max(1, fact.k // (4 * tile.k))), _SPLITS)
        if idle < 2 or splits < 2:
            return []
        chosen = dict(_config(tile, fact, problem.hardware, played, stages=4))
        return [{**chosen, **played.config(split_k=played.at_most("split_k", splits))}]


def _is_skinny(fact: MatmulFact) -> bool:
    short, long = sorted((fact.m, fact.n))
    return short <= _SKINNY and long >= 8 * short


def _square_tiles(fact: MatmulFact) -> list[Tile]:
    sides = dict.fromkeys((clamped(m, fact.m, _MMA), clamped(n, fact.n, _MMA)) for m, n in _TILES)
    return [Tile(m, n, _depth(fact)) for m, n in sides]


def _small(fact: MatmulFact) -> tuple[int, int]:
    return clamped(64, fact.m, _MMA), clamped(64, fact.n, _MMA)


def _skinny_tile(fact: MatmulFact, hardware: Hardware) -> Tile:
    short, long = sorted((fact.m, fact.n))
    wide = pow2_at_most(max(1, long * fact.batch // (hardware.cores or _CORES)))
    wide = min(128, max(32, wide))
    depth = clamped(2 * _LINE // fact.operand_bytes, fact.k, _MMA)
    narrow = clamped(_SKINNY, short, _MMA)
    return Tile(narrow, wide, depth) if fact.m <= fact.n else Tile(wide, narrow, depth)


def _depth(fact: MatmulFact) -> int:
    return clamped(_LINE // fact.operand_bytes, fact.k, _MMA)


def _copies_ahead(hardware: Hardware) -> bool:
    """Return whether loads go to shared memory by themselves: from NVIDIA's 8.0 on."""
    return hardware.kind == "cuda" and hardware.capability not in ("7.0", "7.2", "7.5")


def _config(tile: Tile, fact: MatmulFact, hardware: Hardware, played: roles.Cast, *, stages: int) -> Config:
    """Return a tile as a part of a config, less deep where shared memory cannot hold it twice."""
    while tile.k > _MMA and 2 * (tile.m + tile.n) * tile.k * fact.operand_bytes > (hardware.shared_bytes or _SHARED):
        tile = Tile(tile.m, tile.n, tile.k // 2)
    return played.config(
        m=tile.m,
        n=tile.n,
        k=tile.k,
        group=8,
        split_k=1,
        warps=tile.warps,
        stages=tile.stages(fact, hardware, stages),
    )
