"""A script of its own: asks nvMatmulHeuristics for tiles and prints them as JSON, in a process that may die of it.

It reads one JSON object from its standard input: m, n, k, batch, layout, precision, gpu, target and count.
"""

import json
import os
import sys
from typing import Any


def main() -> None:
    """Print the tiles, best first, as a list of objects."""
    import nvMatmulHeuristics as nv  # type: ignore[import-not-found]  # noqa: N813

    asked = json.load(sys.stdin)
    target, gpu = nv.NvMatmulHeuristicsTarget[asked["target"]], nv.NvMatmulHeuristicsNvidiaGpu[asked["gpu"]]
    layout = nv.NvMatmulHeuristicsMatmulLayout[asked["layout"]]
    library = nv.NvMatmulHeuristicsInterfaceEx(target, gpu=gpu)
    problem = library.makeNvMatmulHeuristicsProblem(asked["m"], asked["n"], asked["k"], layout, asked["batch"])
    found = library.get(problem, asked["count"], precision=asked["precision"])
    json.dump([_tile(one["kernel"]) for one in found], sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # the library may crash when it is put away


def _tile(kernel: Any) -> dict[str, int]:
    rows, columns = (max(1, kernel.cta_tile_m // kernel.warp_tile_m), max(1, kernel.cta_tile_n // kernel.warp_tile_n))
    return {
        "m": kernel.cta_tile_m,
        "n": kernel.cta_tile_n,
        "k": kernel.cta_tile_k,
        "stages": kernel.stages,
        "split_k": kernel.split_k,
        "warps": rows * columns,
        "group": max(1, kernel.swizzle_factor),
        "cluster_m": kernel.cluster_m,
        "cluster_n": kernel.cluster_n,
    }


if __name__ == "__main__":
    main()
