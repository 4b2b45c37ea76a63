"""Reductions and softmax over rows in Triton-style spaces: a whole row at once where it fits, long blocks where not."""

from collections.abc import Sequence

from tunewise.decision import Config, Hardware, ReductionFact
from tunewise.heuristics import roles
from tunewise.heuristics.case import Case
from tunewise.heuristics.expert import Expert
from tunewise.heuristics.matching import On, pow2_at_least, pow2_at_most

GPUS = On(kinds=("cuda", "hip"))
_WHOLE = 64 << 10  # bytes of a row that the registers of one block hold with room to spare: a quarter of 256 KiB
_LONG = 4096  # numbers of a row that is read piece by piece
_PER_THREAD = 16  # numbers: enough loads under way, and few enough registers
_CORES = 100  # where a device does not say
_SOFTMAX = 3  # passes over a row
_ROOMY = 160 << 10  # shared memory, in bytes, that holds four rows under way and not only two


class PersistentReduction(Expert):
    """A row that fits into registers is read once, whole; a longer one in blocks of 4096 numbers.

    A block as wide as the row needs no loop, and what is read for the first pass is still there for the second. Each
    thread holds about 16 numbers. Short rows share a program, as long as every core still has a program to run.
    """

    name = "persistent-reduction"
    backend = "triton"
    hardware = GPUS

    def seeds(self, problem: Case) -> Sequence[Config]:
        """Return one config for a reduction over rows."""
        fact, played = problem.fact(ReductionFact), roles.cast(problem.space, roles.ROWS)
        if fact is None or "columns" not in played:
            return []
        columns = pow2_at_least(fact.columns) if is_whole(fact) else _LONG
        rows = _rows(fact, columns, problem.hardware)
        return [
            played.config(rows=rows, columns=columns, warps=_warps(rows * columns), stages=1 if is_whole(fact) else 3)
        ]


class SoftmaxRows(Expert):
    """Softmax of rows that fit into registers: as many programs as run at once, each going from row to row.

    A row is read three times unless it stays in registers. Programs that stay have the next row under way while they
    work on one: two where shared memory is small, four where it is large.
    """

    name = "softmax-rows"
    backend = "triton"
    hardware = GPUS

    def seeds(self, problem: Case) -> Sequence[Config]:
        """Return one config if a row is read three times or more and fits."""
        fact, played = problem.fact(ReductionFact), roles.cast(problem.space, roles.ROWS)
        if fact is None or "columns" not in played or fact.passes < _SOFTMAX or not is_whole(fact):
            return []
        columns = pow2_at_least(fact.columns)
        warps = min(16, 2 * _warps(columns))  # the exponentials keep more threads busy than sums do
        cores = problem.hardware.cores or _CORES
        return [
            played.config(
                rows=1,
                columns=columns,
                warps=warps,
                stages=4 if problem.hardware.shared_bytes >= _ROOMY else 2,
                programs=min(fact.rows, cores * max(1, 32 // warps)),
            )
        ]


def is_whole(fact: ReductionFact) -> bool:
    """Return whether a row fits into the registers of one block."""
    return fact.row_bytes <= _WHOLE


def _warps(numbers: int) -> int:
    return min(32, max(1, pow2_at_most(max(1, numbers // (32 * _PER_THREAD)))))


def _rows(fact: ReductionFact, columns: int, hardware: Hardware) -> int:
    """Return how many rows share a program: what makes up 1024 numbers, and leaves a program for every core."""
    spare = max(1, fact.rows // (hardware.cores or _CORES))
    return pow2_at_most(max(1, min(1024 // columns, spare)))
