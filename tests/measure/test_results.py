"""Right results are told from wrong ones, and nothing that a candidate does to its arguments goes unseen."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from tunewise.decision import Args, Check, Failure, Policy, Timing
from tunewise.measure import InProcess, Work, results

NUMBERS = np.arange(1.0, 9.0)


class Pair(NamedTuple):
    """Two arrays, as numpy's own functions return them."""

    left: Any
    right: Any


def launched(default: Callable[..., Any], other: Callable[..., Any], *args: Any) -> Timing | Failure:
    """Return what becomes of `other` beside a default."""
    ways = {"default": default, "other": other}
    work = Work(lambda config: ways[str(config["way"])], args, {"way": "default"}, policy=Policy(isolation="none"))
    assert isinstance(InProcess(work).first({"way": "default"}), Timing)
    return InProcess(work).first({"way": "other"})


def sort_in_place(items: list[float]) -> list[float]:
    items.sort()
    return items


def test_a_list_that_is_changed_is_found() -> None:
    found = launched(sorted, sort_in_place, [3.0, 1.0, 2.0])
    assert found == Failure("correctness", "argument 0 is changed")


def test_an_array_in_a_list_that_is_changed_is_found() -> None:
    def add(arrays: list[Any]) -> Any:
        arrays[0] += 1
        return arrays[0].sum()

    found = launched(lambda arrays: (arrays[0] + 1).sum(), add, [NUMBERS.copy()])
    assert found == Failure("correctness", "argument 0 is changed")


@pytest.mark.parametrize("wrap", [lambda a: (a,), lambda a: [a], lambda a: {"a": a}, lambda a: Pair(a, a)])
def test_a_result_inside_another_is_compared_with_what_it_was(wrap: Callable[[Any], Any]) -> None:
    scratch = np.zeros(8)

    def double(x: Any) -> Any:
        np.multiply(x, 2, out=scratch)
        return wrap(scratch)

    def forget(x: Any) -> Any:
        scratch[...] = 0
        return wrap(scratch)

    found = launched(double, forget, NUMBERS)
    assert isinstance(found, Failure)
    assert found.kind == "correctness"


def test_a_sum_in_single_precision_may_be_added_up_in_another_order() -> None:
    assert results.difference(np.float32(5018.8486), np.float32(5018.844), Check()) is None
    assert results.difference(np.float32(5018.8486), np.float32(5020.0), Check()) is not None
    assert results.difference(np.float32("nan"), np.float32("nan"), Check()) is None


def test_a_masked_array_keeps_its_mask() -> None:
    masked = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
    assert isinstance(launched(lambda a: float(a.sum()), lambda a: float(a.filled(0).sum()), masked), Timing)


@pytest.mark.parametrize("args", [(1, "word"), ([1, 2],), ({"a": NUMBERS},), ((NUMBERS, [NUMBERS]),), (Pair(1, 2),)])
def test_a_copy_is_the_same_until_it_is_changed(args: Args) -> None:
    copy = results.copied(args)
    assert results.same(args, copy)
    assert type(copy[0]) is type(args[0])


def test_a_copy_of_nested_arrays_shares_nothing() -> None:
    args: Args = ({"a": [NUMBERS]},)
    results.copied(args)[0]["a"][0][0] = 100.0
    assert NUMBERS[0] == 1.0


def test_a_compare_that_says_true_is_told_what_to_say() -> None:
    with pytest.raises(TypeError, match="compare returned True; it returns what is wrong as text, or None"):
        results.difference(1, 1, Check(compare=lambda expected, result: expected == result))  # type: ignore[arg-type,return-value]


def test_variants_of_arrays_that_hold_anything_warn_of_nothing() -> None:
    signalling = np.array([0x7FA00000, 0x3F800000], np.uint32).view(np.float32)  # as np.empty may find it in memory
    assert len(results.variants((signalling,))) == 2
