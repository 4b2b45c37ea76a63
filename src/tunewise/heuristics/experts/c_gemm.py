"""Matrix products in C: register tile, cache blocks and packing from the registers and caches of the CPU."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd

from tunewise.decision import Config, Hardware, MatmulFact
from tunewise.decision.registers import native_width, register_count
from tunewise.heuristics import roles
from tunewise.heuristics.case import Case
from tunewise.heuristics.expert import Expert
from tunewise.heuristics.matching import On, ceil_div

_FLOAT = 4
_LINE = 64
_PAGE = 4096  # also what the sets of a first cache cover
_PAGES = 64  # that the first level of address translation knows at once
_UNITS = 2  # multiply-adds, and likewise loads, that begin in a cycle
_ISSUED = 4  # instructions in a cycle
_LOOP = 3  # instructions that count and repeat
_LATENCY = 4.5  # cycles until a multiply-add may follow another into the same sum: four, and some for hiccups
_CALL = 20  # cycles to begin and end a tile
_FETCH = 2  # cycles for a line from the second cache
_COPY = 0.5  # cycles to copy a float of B
_SPARE_WAYS = 2  # of the first cache, for B and C beside the rows of A
_WORTH = 50  # vectors in a row of B, from which copying A costs few percent
_SHORT_LOOP = 16  # instructions: in a shorter loop its own counting is felt
_L1, _L2, _L3 = 32 << 10, 256 << 10, 8 << 20  # where a machine does not say


@dataclass(frozen=True, slots=True)
class Tile:
    """A register tile: `rows` by `vectors` vectors of `width` floats."""

    rows: int
    vectors: int
    width: int

    @property
    def columns(self) -> int:
        """The columns it covers."""
        return self.vectors * self.width

    @property
    def registers(self) -> int:
        """What it holds: the sums, a row of the right factor, and an element of the left one."""
        return self.rows * self.vectors + self.vectors + 1

    @property
    def instructions(self) -> int:
        """What one product of the inner loop takes: multiply-adds, and loads from both factors."""
        return self.rows * self.vectors + self.rows + self.vectors

    @property
    def cycles(self) -> float:
        """How long one product takes: its multiply-adds, its loads, all its instructions, or the wait for a sum."""
        loads = self.rows + self.vectors
        return max(self.rows * self.vectors / _UNITS, loads / _UNITS, (self.instructions + _LOOP) / _ISSUED, _LATENCY)


@dataclass(frozen=True, slots=True)
class Plan:
    """A tile, whether B is copied for it, and how many products a pass has. `fetched` lines do not stay in reach."""

    tile: Tile
    copies_b: bool
    kc: int
    fetched: int

    def time(self, fact: MatmulFact) -> float:
        """Return the cycles of a whole product: padding, ragged edges, passes, calls and copies are paid for."""
        tile, passes = self.tile, ceil_div(fact.k, self.kc)
        down, along = ceil_div(fact.m, tile.rows), ceil_div(fact.n, tile.columns)
        ragged = (along if fact.m % tile.rows else 0) + (down if fact.n % tile.columns else 0)
        call = _CALL + tile.rows * tile.vectors
        work = down * along * (fact.k * (tile.cycles + _FETCH * self.fetched) + passes * call)
        return work + passes * ragged * tile.rows * tile.columns + self.copies_b * _COPY * fact.n * fact.k


class RegisterTile(Expert):
    """The tile that wastes least, blocks that stay in their caches, and copies only where they pay.

    Every tile whose sums, one row of B and one element of A leave a register free is weighed with B copied and not
    copied, in cycles. A product costs its multiply-adds (two a cycle), its loads (two a cycle), all its instructions
    (four a cycle) or the latency of one sum, whichever is longest; what hangs over the edge of the matrix costs as much
    as what does not. The strip of B that tile after tile reads has to stay in half of the first cache. Copied, it is
    dense; as it lies, it fills lines in part, its rows may fall into the same sets, and it must lie in few pages: so
    passes are shorter, or each product fetches its lines again. A, which is copied element by element, is copied when
    its block lies in too many pages and B is wide enough to pay for it; otherwise a tile has no more rows than a set of
    the first cache holds, if they fall into one. The block of A fills half of the second cache, that of B half of the
    third.
    """

    name = "c-register-tile"
    backend = "c"
    hardware = On(kinds=("cpu",))
    most = 5

    def seeds(self, problem: Case) -> Sequence[Config]:
        """Return the plans of four tiles that take the fewest cycles; after the second, the first's other copying."""
        fact, played = problem.fact(MatmulFact), roles.cast(problem.space, roles.REGISTERS)
        if fact is None or not played.has("rows", "vectors", "width", "mc", "nc", "kc"):
            return []
        machine = _Machine.of(problem.hardware)
        plans = sorted(_plans(played, machine, fact), key=lambda plan: plan.time(fact))
        legal = [plan for plan in plans if _is_legal(_config(plan, fact, played, machine), problem)]
        of_tiles: dict[Tile, list[Plan]] = {}
        for plan in legal:
            of_tiles.setdefault(plan.tile, []).append(plan)
        best = [plans[0] for plans in of_tiles.values()][:4]
        other = legal and of_tiles[legal[0].tile][1:]
        return [_config(plan, fact, played, machine) for plan in (*best[:2], *other, *best[2:])]


@dataclass(frozen=True, slots=True)
class _Machine:
    """The registers and caches of a CPU, and what follows from them for the strips and rows that a tile reads."""

    width: int
    registers: int
    l1: int
    l2: int
    l3: int

    @classmethod
    def of(cls, hardware: Hardware) -> "_Machine":
        """Return what a CPU has; what it does not say is taken to be small."""
        caches = dict(hardware.caches)
        sizes = (caches.get("l1d", _L1), caches.get("l2", _L2), caches.get("l3", _L3))
        return cls(native_width(hardware), register_count(hardware), *sizes)

    def holds(self, tile: Tile, fact: MatmulFact) -> bool:
        """Return whether a tile fits into the registers, and its rows of A, as they lie, into the first cache.

        One register is left to the compiler. Rows that are a multiple of a page apart share a set.
        """
        places = _PAGE // gcd(_FLOAT * fact.k, _PAGE)
        is_held = ceil_div(tile.rows, places) <= max(1, self.l1 // _PAGE - _SPARE_WAYS)
        return is_held and tile.registers < self.registers and tile.width <= self.width

    def dense_depth(self, tile: Tile, fact: MatmulFact) -> float:
        """Return how many rows of a copied strip stay in the first cache: more than half of it where all then do."""
        half = self.l1 / 2 / (_FLOAT * tile.columns)
        return fact.k if fact.k <= 1.5 * half else half

    def loose_depth(self, tile: Tile, fact: MatmulFact) -> float:
        """Return how many rows of a strip stay in the first cache as they lie: by lines, by sets, and by pages."""
        taken, stride = _LINE * self.lines(tile, fact), _FLOAT * fact.n
        return min(self.l1 / 2 / taken, self.l1 / max(gcd(stride, _PAGE), taken), _PAGES * _PAGE / stride)

    def lines(self, tile: Tile, fact: MatmulFact) -> int:
        """Return the lines that a row of a strip touches as it lies."""
        return ceil_div(_FLOAT * tile.columns, _LINE) + (0 if _FLOAT * fact.n % _LINE == 0 else 1)

    def copies_a(self, tile: Tile, fact: MatmulFact, rows: int) -> bool:
        """Return whether a block of A lies in too many pages, and copying it costs at most some 4 % of the products.

        An element costs a cycle to copy, and then serves n products, of which two vectors are done in a cycle.
        """
        return rows * fact.k * _FLOAT > _PAGES * _PAGE and fact.n >= _WORTH * tile.width


def _plans(played: roles.Cast, machine: _Machine, fact: MatmulFact) -> Iterator[Plan]:
    """Yield every tile that fits, with B copied and as it lies."""
    for sizes in product(*map(played.numbers, ("rows", "vectors", "width"))):
        tile = Tile(*sizes)
        if not machine.holds(tile, fact):
            continue
        dense, loose = machine.dense_depth(tile, fact), machine.loose_depth(tile, fact)
        yield Plan(tile, True, _depth(played, fact, dense), 0)
        kc = _depth(played, fact, loose)
        yield Plan(tile, False, kc, 0 if min(kc, fact.k) <= loose else machine.lines(tile, fact))


def _depth(played: roles.Cast, fact: MatmulFact, limit: float) -> int:
    return played.at_least("kc", fact.k) if fact.k <= limit else played.at_most("kc", limit)


def _is_legal(config: Config, problem: Case) -> bool:
    return problem.space.why_not({**problem.default, **config}) is None


def _config(plan: Plan, fact: MatmulFact, played: roles.Cast, machine: _Machine) -> Config:
    """Return a plan with the blocks, the order and the unrolling that go with it."""
    tile, used = plan.tile, min(plan.kc, fact.k)
    mc = played.at_most("mc", machine.l2 / 2 / (_FLOAT * used))
    return played.config(
        rows=tile.rows,
        vectors=tile.vectors,
        width=tile.width,
        unroll=2 if tile.instructions <= _SHORT_LOOP else 1,
        order="down" if tile.columns >= tile.rows else "along",  # the longer strip stays in the cache
        pack_a=machine.copies_a(tile, fact, min(mc, fact.m)),
        pack_b=plan.copies_b,
        kc=plan.kc,
        mc=mc,
        nc=played.at_most("nc", machine.l3 / 2 / (_FLOAT * used)),
    )
