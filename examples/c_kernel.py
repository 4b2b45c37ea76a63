"""A C kernel of your own: the source is compiled for every config, checked against numpy, and timed.

Tune it:   tunewise tune examples/c_kernel.py:dot --problem n=100000
Ask it:    python examples/c_kernel.py
"""

import numpy as np

import tunewise as tw

SOURCE = """
#include <stdint.h>

int run(const float *x, const float *y, float *sum, int64_t n) {
    float lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] += x[i + lane] * y[i + lane];
    *sum = 0;
    for (int lane = 0; lane < LANES; lane++)
        *sum += lanes[lane];
    for (; i < n; i++)
        *sum += x[i] * y[i];
    return 0;
}
"""
kernel = tw.CKernel(SOURCE, signature="const float *x, const float *y, float *sum, int64_t n")

dot = tw.Decision(
    "dot",
    space=tw.Space({"lanes": tw.pow2(1, 128)}),
    default={"lanes": 1},
    features=lambda x, y: {"n": x.size},
    inputs=lambda problem, seed: tuple(vectors(problem["n"], seed)),
    check=tw.Check(reference=lambda x, y: np.dot(x.astype(float), y.astype(float)), rtol=1e-2),
    backend="c",
)


def defines(config):
    return {"LANES": config["lanes"]}


@dot.implementation(
    build=lambda config: kernel.build(defines(config)),  # ahead of time, on all cores
    load=lambda config: kernel.load(defines(config)),  # in the process that runs it
    facts=kernel.facts,
)
def run(x, y, **config):
    result = np.zeros(1, np.float32)
    kernel.load(defines(config))(x, y, result, x.size)
    return float(result[0])


def vectors(n, seed):
    return np.random.default_rng(seed).uniform(0, 1, (2, n)).astype(np.float32)


if __name__ == "__main__":
    x, y = vectors(100_000, 0)
    print(run.tune(x, y).answer)
