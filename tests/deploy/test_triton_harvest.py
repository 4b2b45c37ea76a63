"""Listening to Triton's autotuner, together with others who do."""

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from triton_standins import Autotuner, Jit, Tensor, forty

import tunewise as tw
from tunewise.deploy import triton_harvest
from tunewise.deploy.triton import harvest
from tunewise.deploy.triton_harvest import Ear, Harvest
from tunewise.errors import MissingPart
from tunewise.session import context

NAME = "triton_standins.scale"


@pytest.fixture
def knobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Stand for `triton.knobs.autotuning`."""
    knobs = SimpleNamespace(listener=None)
    monkeypatch.setattr(triton_harvest, "_knobs", lambda: knobs)
    triton_harvest._reported.clear()
    triton_harvest._recognisers.clear()
    yield knobs
    triton_harvest._harvests.clear()


def ran(knobs: SimpleNamespace, n: int = 64, **fields: Any) -> Autotuner:
    tuner = Autotuner(forty(), knobs=knobs, **fields)
    tuner.run(Tensor(), Tensor(), n)
    return tuner


def stored(decision: str = NAME) -> list[int]:
    store = context.current_store()
    return [len(store.trials(subject)) for subject in store.subjects(decision)]


def test_all_timings_of_any_kernel_are_kept(knobs: SimpleNamespace) -> None:
    with harvest() as harvested:
        ran(knobs, 64)
        ran(knobs, 128)
    assert stored() == [40, 40]
    assert harvested.kept == 80


def test_problems_have_the_names_of_the_autotuners_key(knobs: SimpleNamespace) -> None:
    with harvest():
        ran(knobs, 64)
    (subject,) = context.current_store().subjects(NAME)
    assert dict(subject.problem) == {"n": 64, "x_dtype": "float16", "y_dtype": "float16"}


def test_arguments_given_by_keyword_have_their_names_too(knobs: SimpleNamespace) -> None:
    with harvest():
        Autotuner(forty(), knobs=knobs).run(Tensor(), y=Tensor("torch.int8"), n=5, grid=(1,))
    (subject,) = context.current_store().subjects(NAME)
    assert dict(subject.problem) == {"n": 5, "x_dtype": "float16", "y_dtype": "int8"}


def test_a_run_of_which_only_the_key_is_known_has_numbered_features(knobs: SimpleNamespace) -> None:
    with harvest():
        config = forty()[0]
        knobs.listener(
            fn=Jit(), key=(64, "fp16", None), best_config=config, configs_timings={config: 1.0}, duration=1.0,
            cache_hit=False,
        )  # fmt: skip
    (subject,) = context.current_store().subjects(NAME)
    assert dict(subject.problem) == {"key_0": 64, "key_1": "fp16", "key_2": "none"}


def test_the_environment_has_the_device_tritons_version_and_the_source(knobs: SimpleNamespace) -> None:
    with harvest():
        ran(knobs)
    (subject,) = context.current_store().subjects(NAME)
    assert {"hardware.name", "library.triton", "source"} <= subject.environment.must.keys()


def test_nothing_is_kept_after_the_block(knobs: SimpleNamespace) -> None:
    with harvest():
        ran(knobs)
    ran(knobs)
    assert stored() == [40]
    assert knobs.listener is None


def test_blocks_inside_each_other_keep_a_timing_once(knobs: SimpleNamespace) -> None:
    with harvest() as outer, harvest() as inner:
        ran(knobs)
    assert stored() == [40]
    assert (outer.kept, inner.kept) == (40, 40)


def test_who_listened_before_still_hears_and_is_left_as_he_was(knobs: SimpleNamespace) -> None:
    told = []
    knobs.listener = theirs = lambda **what: told.append(what["key"])
    with harvest():
        ran(knobs)
    assert told == [(64, "torch.float16", "torch.float16")]
    assert stored() == [40]
    assert knobs.listener is theirs


def test_who_comes_after_us_and_passes_on_hears_and_so_do_we_once(knobs: SimpleNamespace) -> None:
    told = []
    with harvest():
        ours = knobs.listener

        def theirs(**what: Any) -> None:
            told.append(what["key"])
            ours(**what)

        knobs.listener = theirs
        with harvest():  # an ear in front of theirs: a run passes two of ours
            ran(knobs)
        assert len(told) == 1
        assert stored() == [40]


def test_an_error_of_the_other_listener_is_the_other_listeners(knobs: SimpleNamespace) -> None:
    def broken(**what: Any) -> None:
        raise RuntimeError("theirs")

    knobs.listener = broken
    with harvest(), pytest.raises(RuntimeError, match="theirs"):
        ran(knobs)
    assert stored() == [40]


def test_our_errors_never_reach_the_kernels_call(
    knobs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told = []
    knobs.listener = lambda **what: told.append(what)
    monkeypatch.setattr(context, "current_store", lambda: 1 / 0)
    with harvest(), caplog.at_level(logging.WARNING):
        ran(knobs)
        ran(knobs, 128)
    assert len(told) == 2
    assert [record.getMessage() for record in caplog.records] == [
        "scale: its timings are not kept: ZeroDivisionError: division by zero"
    ]


def test_what_triton_tells_in_other_words_is_reported_and_passed_on(
    knobs: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    with harvest(), caplog.at_level(logging.WARNING):
        knobs.listener(kernel="renamed")
    assert "its timings are not kept: KeyError" in caplog.text


def test_where_tunewise_is_off_nothing_is_kept(knobs: SimpleNamespace) -> None:
    with harvest() as harvested, tw.mode("off"):
        ran(knobs)
    assert harvested.kept == 0


def test_a_harvest_without_a_block_goes_on_until_it_is_stopped(knobs: SimpleNamespace) -> None:
    harvested = harvest()
    ran(knobs)
    harvested.stop()
    ran(knobs)
    assert harvested.kept == 40


def test_stopping_leaves_alone_who_put_himself_in_front_of_us(knobs: SimpleNamespace) -> None:
    harvested = Harvest().start()
    ear = knobs.listener
    assert isinstance(ear, Ear)
    knobs.listener = theirs = lambda **what: ear(**what)
    harvested.stop()
    assert knobs.listener is theirs
    ran(knobs)
    assert stored() == []


def test_without_triton_the_way_out_is_said() -> None:
    try:
        import triton  # noqa: F401
    except ImportError:
        with pytest.raises(MissingPart, match=r"pip install 'tunewise\[triton\]'"):
            harvest()
    else:
        pytest.skip("Triton is installed here")
