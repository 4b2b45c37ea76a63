"""A program with one autotuned kernel: launches it for the sizes given and prints how often it was benchmarked."""

import json
import sys

import triton_kernels
from triton_stage import staged

from tunewise.deploy.triton import tuned

if __name__ == "__main__":
    with staged() as notes:
        notes.time_ms = lambda launch: 1.0 / launch.metadata.num_warps
        kernel = tuned()(triton_kernels.scaling())
        for size in sys.argv[1:]:
            triton_kernels.launch(kernel, int(size))
        print(json.dumps({"benchmarks": notes.benchmarks, "num_warps": kernel.best_config.num_warps}))
