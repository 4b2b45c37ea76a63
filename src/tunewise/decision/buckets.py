"""Buckets: values of a feature that count as one, so that programs with changing shapes ask few different problems."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any, Literal

from tunewise.errors import InvalidDecision, InvalidProblem

Bucket = Literal["pow2"] | Sequence[float] | Callable[[Any], Any]

_LARGEST = 1 << 62  # the last power of two that a feature can be


def check(decision: str, buckets: Mapping[str, Bucket]) -> None:
    """Raise InvalidDecision unless each bucket is `"pow2"`, a rising list of numbers or a function."""
    if not isinstance(buckets, Mapping):
        raise InvalidDecision(f"{decision}: buckets={buckets!r} does not map features to buckets")
    for name, bucket in buckets.items():
        is_pow2 = isinstance(bucket, str) and bucket == "pow2"
        if not (is_pow2 or callable(bucket) or _is_rising(bucket)):
            raise InvalidDecision(
                f"{decision}: the buckets of {name!r} are {bucket!r}; they may be 'pow2', rising numbers such as "
                "[128, 512, 2048], or a function"
            )


def bucketed(features: Mapping[str, Any], buckets: Mapping[str, Bucket]) -> dict[str, Any]:
    """Return the features with each value replaced by the one that stands for its bucket.

    Of rising numbers that is the first that is not smaller, or the last of all; of `"pow2"` the next power of two.
    Raises InvalidProblem where a value has no bucket, or a bucket no feature.
    """
    for name in buckets:
        if name not in features:
            raise InvalidProblem(f"there are buckets of {name!r}, and the features are {', '.join(map(str, features))}")
    return {
        name: stand_in(name, value, buckets[name]) if name in buckets else value for name, value in features.items()
    }


def stand_in(name: str, value: Any, bucket: Bucket) -> Any:
    """Return the value that stands for the bucket of a value; raises InvalidProblem where it has none."""
    if callable(bucket):
        try:
            return bucket(value)
        except Exception as error:  # the user's function
            raise InvalidProblem(f"{name}={value!r} has no bucket: {type(error).__name__}: {error}") from error
    try:
        if not isinstance(value, str) and value == value:  # not a number is in no bucket
            return next_pow2(value) if isinstance(bucket, str) else next_edge(value, bucket)
    except (TypeError, ValueError):
        pass
    raise InvalidProblem(f"{name}={value!r} has no bucket: it is not a number")


def next_pow2(value: Any) -> int:
    """Return the first power of two that is not smaller, from 1 on; the largest that a feature can be beyond that."""
    edge = 1
    while edge < value and edge < _LARGEST:
        edge *= 2
    return edge


def next_edge(value: Any, edges: Sequence[float]) -> float:
    """Return the first edge that is not smaller, or the last of all.

    By plain comparisons, as in `next_pow2`: where torch.compile traces them, code for one bucket serves all of it.
    """
    for edge in edges:
        if value <= edge:
            return edge
    return edges[-1]


def _is_rising(bucket: Any) -> bool:
    if isinstance(bucket, str | bytes) or not isinstance(bucket, Sequence) or not bucket:
        return False
    return all(map(_is_edge, bucket)) and all(low < high for low, high in pairwise(bucket))


def _is_edge(edge: Any) -> bool:
    """Return whether a number can stand for a bucket: whether it can be a feature."""
    if isinstance(edge, bool) or not isinstance(edge, int | float):
        return False
    return isfinite(edge) if isinstance(edge, float) else abs(edge) <= 2 * _LARGEST - 1
