"""Two ways to convolve, chosen by what was measured here: direct sums for short kernels, Fourier transforms for long.

Tune it:   tunewise tune examples/convolve.py:convolve --problem n=20000,k=2000 --problem n=20000,k=5
Ask it:    python examples/convolve.py
"""

import numpy as np

import tunewise as tw


def direct(signal, kernel):
    return np.convolve(signal, kernel)


def fft(signal, kernel):
    length = len(signal) + len(kernel) - 1
    size = 1 << (length - 1).bit_length()  # transforms of other sizes are slow
    return np.fft.irfft(np.fft.rfft(signal, size) * np.fft.rfft(kernel, size), size)[:length]


def signals(problem, seed):
    random = np.random.default_rng(seed)
    return random.standard_normal(problem["n"]), random.standard_normal(problem["k"])


convolve = tw.choice(
    "convolve",
    {"direct": direct, "fft": fft},
    default="direct",
    features=lambda signal, kernel: {"n": len(signal), "k": len(kernel)},
    inputs=signals,
    libraries=("numpy",),
)

if __name__ == "__main__":
    for k in (5, 2000):
        signal, kernel = signals({"n": 20000, "k": k}, seed=0)
        with tw.mode("tune"):  # a new problem is tuned once; after that it is known
            convolve(signal, kernel)
        print(convolve.explain(signal, kernel))
