"""A library of somebody else, with a moving sum and its gradient; a few lines give its users the whole switch.

mylib.use_autotuner()           # from now on the first call of each new problem is tuned
mylib.moving_sum(signal, weights)
"""

import numpy as np

import tunewise as tw

tuner = tw.Autotuner("mylib")
use_autotuner, disable_autotuner = tuner.use_autotuner, tuner.disable_autotuner
is_autotuner_enabled, autotuning = tuner.is_autotuner_enabled, tuner.autotuning


def direct(x, w):
    return np.convolve(x, w, "valid")


def windows(x, w):
    return np.lib.stride_tricks.sliding_window_view(x, len(w)) @ w[::-1]


def fft(x, w):
    size = 1 << (len(x) - 1).bit_length()  # transforms of other sizes are slow
    return np.fft.irfft(np.fft.rfft(x, size) * np.fft.rfft(w, size), size)[len(w) - 1 : len(x)]


def gradient(way):
    return lambda g, x, w: (way(np.pad(g, len(w) - 1), w[::-1]), way(x, g[::-1])[::-1])


WAYS = {"direct": direct, "windows": windows, "fft": fft}
moving_sum = tuner.choice(
    "mylib.moving_sum", WAYS, default="direct", features=lambda x, w: {"n": len(x), "k": len(w)}, libraries=["numpy"]
)
moving_sum_backward = tuner.choice(
    "mylib.moving_sum_backward",
    {name: gradient(way) for name, way in WAYS.items()},
    "backward",
    default="direct",
    features=lambda g, x, w: {"n": len(x), "k": len(w)},
    libraries=["numpy"],
)
