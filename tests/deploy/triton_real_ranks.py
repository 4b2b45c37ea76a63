"""A job of ranks on Triton's own autotuner, each of which another config is the fastest for; prints what each launched.

Takes a directory and a number of ranks.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch.distributed as dist
import triton_kernels
from triton_stage import Launch, staged

import tunewise as tw
from tunewise.deploy.triton import tuned


def play(place: Path, rank: int, size: int) -> list[Any]:
    """Return for some problems what a rank launched in the end, and how many configs it timed."""
    os.environ |= {"TUNEWISE_HOME": str(place / f"home{rank}"), "TUNEWISE_RANKS_LIMIT_S": "60"}
    tw.configure()
    dist.init_process_group("gloo", init_method=f"file://{place}/store", rank=rank, world_size=size)

    def time_ms(launch: Launch) -> float:
        return 1.0 + float((launch.metadata.num_warps.bit_length() + rank) % 3)

    seen = []
    for n, is_cached in ((512, False), (1024, True)):
        with staged() as notes:
            notes.time_ms = time_ms
            kernel = tuned()(triton_kernels.scaling(triton_kernels.FORTY[:8], cache_results=is_cached))
            triton_kernels.launch(kernel, n)
            first = notes.launches[-1].metadata
            triton_kernels.launch(kernel, n)
            second = notes.launches[-1].metadata
            seen.append([first.num_warps, second.num_warps, kernel.best_config.num_warps, notes.benchmarks])
    dist.barrier()
    return seen


def main(place: Path, size: int) -> None:
    for rank in range(size):
        if os.fork() == 0:
            try:
                (place / f"{rank}.json").write_text(json.dumps(play(place, rank, size)))
                os._exit(0)
            finally:
                os._exit(1)
    assert [os.wait()[1] for _ in range(size)] == [0] * size
    print(json.dumps([json.loads((place / f"{rank}.json").read_text()) for rank in range(size)]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
