"""Tile sizes of a blocked matrix product in numpy: a decision of your own, in twenty lines.

Tune it:   tunewise tune examples/gemm.py:gemm --problem m=256,n=256,k=64
Ask it:    python examples/gemm.py
"""

import numpy as np

import tunewise as tw

gemm = tw.Decision(
    "blocked_matmul",
    space=tw.Space(
        {"tile_m": tw.pow2(8, 256), "tile_n": tw.pow2(8, 256), "tile_k": [16, 64, 256]},
        rules=["tile_m * tile_n <= 16384"],
    ),
    default={"tile_m": 32, "tile_n": 32, "tile_k": 64},
    features=lambda a, b: {"m": a.shape[0], "n": b.shape[1], "k": a.shape[1]},
    inputs=lambda p, seed: (matrix(p["m"], p["k"], seed), matrix(p["k"], p["n"], seed + 1)),
    libraries=("numpy",),
)


@gemm.implementation
def matmul(a, b, *, tile_m, tile_n, tile_k):
    c = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for i in range(0, a.shape[0], tile_m):
        for j in range(0, b.shape[1], tile_n):
            tile = c[i : i + tile_m, j : j + tile_n]
            for p in range(0, a.shape[1], tile_k):
                tile += a[i : i + tile_m, p : p + tile_k] @ b[p : p + tile_k, j : j + tile_n]
    return c


def matrix(rows, columns, seed):
    return np.random.default_rng(seed).standard_normal((rows, columns), np.float32)


if __name__ == "__main__":
    a, b = matrix(256, 64, 0), matrix(64, 256, 1)
    assert np.allclose(matmul(a, b), a @ b, atol=1e-3)  # never measures: it uses what is known
    print(matmul.explain(a, b))
