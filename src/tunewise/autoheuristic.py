"""A drop-in for PyTorch's AutoHeuristic: collect, train, generate and use a heuristic, on any device.

Only `AutoHeuristicSelectAlgorithm`, which chooses between kernels of torch.compile, needs torch, and when it is used.
"""

from tunewise.deploy.ahcontext import AHContext, AHFeature, AHMetadata, AHOperation, add_features
from tunewise.deploy.ahselect import AutoHeuristicSelectAlgorithm
from tunewise.deploy.autoheuristic import AutoHeuristic
from tunewise.deploy.benchmark_runner import BenchmarkRunner
from tunewise.deploy.feedback import LocalFeedback, time_ms
from tunewise.deploy.switches import switches

__all__ = [
    "AHContext",
    "AHFeature",
    "AHMetadata",
    "AHOperation",
    "AutoHeuristic",
    "AutoHeuristicSelectAlgorithm",
    "BenchmarkRunner",
    "LocalFeedback",
    "add_features",
    "switches",
    "time_ms",
]
