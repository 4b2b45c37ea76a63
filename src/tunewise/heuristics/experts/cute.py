"""Matrix products in CuTe-style spaces: tiles of matrix instructions and clusters of blocks."""

from collections.abc import Sequence

from tunewise.decision import Config, MatmulFact
from tunewise.heuristics import roles
from tunewise.heuristics.case import Case
from tunewise.heuristics.expert import Expert
from tunewise.heuristics.matching import On, ceil_div

_PAIR_ROWS = 256  # of the instruction that two blocks issue together: 128 each
_WIDEST = 256  # columns of one instruction
_CORES = 100  # where a device does not say


class TwoCtaCluster(Expert):
    """On sm100, two blocks of a cluster share one matrix instruction of 256 rows, and each loads half of B.

    That halves the traffic of B into shared memory, and is worth it as soon as the product has the rows to fill the
    pair. The tile is 256 columns wide where all pairs of cores then still have one, and 128 where not.
    """

    name = "two-cta-cluster"
    backend = "cute"
    hardware = On(kinds=("cuda",), capabilities=("10.0",))

    def seeds(self, problem: Case) -> Sequence[Config]:
        """Return one config for a product of at least 256 rows, if the space has clusters."""
        fact, played = problem.fact(MatmulFact), roles.cast(problem.space, roles.CLUSTER)
        if fact is None or not played.has("m", "n", "cluster_m") or fact.m < _PAIR_ROWS:
            return []
        pairs = (problem.hardware.cores or _CORES) // 2
        tiles = ceil_div(fact.m, _PAIR_ROWS) * ceil_div(fact.n, _WIDEST) * fact.batch
        wide = _WIDEST if tiles >= pairs and fact.n > _WIDEST // 2 else _WIDEST // 2
        return [played.config(m=_PAIR_ROWS, n=wide, cluster_m=2, cluster_n=1, two_cta=True)]
