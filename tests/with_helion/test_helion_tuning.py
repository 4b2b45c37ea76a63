"""Helion for real: our search, cache, heuristic and listening, on kernels that run."""

import logging
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("helion", reason="Helion is not installed: run `make test-helion`")

import helion
from helion.autotuner import FiniteSearch
from helion_kernels import is_right, kernel, squares

import tunewise
from tunewise.decision import Subject, Timing
from tunewise.deploy import helion as adapter
from tunewise.deploy import helion_listening, helion_memory
from tunewise.heuristics import Heuristic
from tunewise.session.context import current_store

WHOLE = {"pallas_loop_type": "unroll"}
TUNER = {"budget": 12, "patience": 6, "gain": 2.0}  # on an interpreter, less than twice as fast is noise


def configs_of(size: int) -> int:
    """Return how many configs are remembered of products of one size."""
    return len({str(sorted(t.config.items())) for t in current_store().trials(subject_of(size))})


def subject_of(size: int) -> Subject:
    (found,) = [s for s in current_store().subjects("helion.matmul") if s.problem["arg0_dim0"] == size]
    return found


def block(size: int, rows: int) -> helion.Config:
    return helion.Config(block_sizes=[rows, size, size], **WHOLE)


def finite(bound: Any, args: Sequence[Any], **options: Any) -> Any:
    """Return a search of Helion's own over two configs."""
    size = args[0].shape[0]
    return FiniteSearch(bound, args, configs=[block(size, size), block(size, size // 2)])


def cached_finite(bound: Any, args: Sequence[Any], **options: Any) -> Any:
    return helion.autotuner.cache_classes["tunewise"](finite(bound, args))


def test_seeds_from_another_size_spare_configs_and_the_second_run_spares_all(
    home: Any, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    args = squares(64)
    kernel(autotuner_fn=adapter.autotuner(**TUNER)).autotune(args, force=False)
    without = configs_of(64)
    tunewise.configure(home=tmp_path / "seeded")
    kernel(autotuner_fn=adapter.autotuner(**TUNER)).autotune(squares(32), force=False)
    assert current_store().subjects("helion.matmul") == [subject_of(32)]
    seeded = kernel(autotuner_fn=adapter.autotuner(**TUNER))
    tuned = seeded.autotune(args, force=False)
    assert configs_of(64) < without
    assert is_right(seeded(*args), args)
    (verdict,) = current_store().verdicts(subject_of(64))
    assert ("memory", "tried") in [(proposal.by, proposal.fate) for proposal in verdict.proposals]
    with capsys.disabled():
        print(f"\n  64x64 matmul: {without} configs without seeds, {configs_of(64)} with ours")

    known = len(current_store().trials(subject_of(64)))
    again = kernel(autotuner_fn=adapter.autotuner(**TUNER))
    assert again.autotune(args, force=False) == tuned
    assert len(current_store().trials(subject_of(64))) == known
    assert is_right(again(*args), args)


def test_the_search_and_the_cache_go_by_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter.install()
    monkeypatch.setenv("HELION_AUTOTUNER", "tunewise")
    args = squares(32)
    first = kernel(autotune_cache="tunewise", autotune_effort="quick", autotune_budget_seconds=1)
    first.autotune(args, force=False)
    sources = {trial.source for trial in current_store().trials(subject_of(32))}
    assert "default" in sources
    assert is_right(first(*args), args)


def test_a_search_of_helions_behind_our_cache_is_remembered_and_not_run_again() -> None:
    adapter.install(heuristic=False)
    args = squares(32)
    chosen = kernel(autotuner_fn=cached_finite).autotune(args, force=False)
    trials = current_store().trials(subject_of(32))
    assert [trial.source for trial in trials] == ["FiniteSearch", "FiniteSearch"]
    assert all(isinstance(trial.outcome, Timing) for trial in trials)
    second = kernel(autotuner_fn=cached_finite)
    again = second.autotune(args, force=False)
    assert again.block_sizes == chosen.block_sizes
    assert len(current_store().trials(subject_of(32))) == 2
    assert is_right(second(*args), args)


def test_every_search_is_heard_while_we_listen() -> None:
    args = squares(32)
    with adapter.listen():
        chosen = kernel(autotuner_fn=finite).autotune(args, force=False)
    (verdict,) = current_store().verdicts(subject_of(32))
    assert verdict.winner["block_sizes_0"] == chosen.block_sizes[0]
    assert len(current_store().trials(subject_of(32))) == 2
    kernel(autotuner_fn=finite).autotune(args, force=False)
    assert len(current_store().trials(subject_of(32))) == 2


def test_a_model_answers_a_miss_without_any_tuning() -> None:
    adapter.install()
    wanted = {"block_sizes_0": 64, "pallas_loop_type": "unroll"}
    tunewise.load_heuristic(Heuristic("whole", "helion.matmul", lambda features: [wanted]))
    args = squares(64)
    answered = kernel(autotune_cache="tunewise")
    assert is_right(answered(*args), args)
    assert answered.bind(args).autotune(args, force=False).config["pallas_loop_type"] == "unroll"
    assert current_store().subjects("helion.matmul") == []
    tunewise.drop_heuristics()


def test_our_heuristic_proposes_what_is_known_of_another_size_and_may_be_the_default() -> None:
    args = squares(64)
    assert adapter.seed_configs(kernel(), args) == []
    with adapter.listen():
        kernel(autotuner_fn=finite).autotune(squares(32), force=False)
    best = current_store().verdicts(subject_of(32))[-1].winner["block_sizes_0"]
    fitted = 64 if best == 32 else best  # what covered all rows covers them again
    assert adapter.seed_configs(kernel(), args)[0].block_sizes == [fitted, 64, 64]
    adapter.install()
    spec = kernel().bind(args).config_spec
    assert spec.autotuner_heuristics == ["tunewise"]
    assert spec.compiler_seed_configs[0].block_sizes == [fitted, 64, 64]
    assert spec.default_config().block_sizes == [16, 64, 64]
    adapter.install(promote=True)
    assert kernel().bind(args).config_spec.default_config().block_sizes == [fitted, 64, 64]
    adapter.uninstall()
    assert kernel().bind(args).config_spec.autotuner_heuristics == []


def test_trouble_of_ours_is_a_line_in_the_log_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: object, **options: object) -> Any:
        raise RuntimeError("no memory today")

    for name in ("answer", "record", "keep", "proposals"):
        monkeypatch.setattr(helion_memory, name, broken)
    adapter.install()
    args = squares(32)
    with caplog.at_level(logging.WARNING, "tunewise.helion"):
        tuned = kernel(autotuner_fn=cached_finite)
        tuned.autotune(args, force=False)
        assert is_right(tuned(*args), args)
        assert adapter.seed_configs(kernel(), args) == []
    said = [record.getMessage() for record in caplog.records if record.name == "tunewise.helion"]
    assert len([line for line in said if "no memory today" in line]) == len(said) > 0


def test_a_mode_with_a_budget_that_makes_no_sense_does_not_stop_a_call(caplog: pytest.LogCaptureFixture) -> None:
    args = squares(16)
    with tunewise.mode("tune", budget=0), caplog.at_level(logging.WARNING, "tunewise.helion"):
        result = kernel(autotuner_fn=adapter.autotuner(budget=2))(*args)
    assert is_right(result, args)
    assert "the mode's budget does not count: InvalidSetting: evaluations=0" in caplog.text


def test_a_choice_that_cannot_be_read_does_not_stop_a_call(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(values: dict[str, Any]) -> Any:
        raise TypeError("another Helion")

    monkeypatch.setattr(helion_listening, "_config", broken)
    args = squares(32)
    with adapter.listen(), caplog.at_level(logging.WARNING, "tunewise.helion"):
        kernel(autotuner_fn=finite).autotune(args, force=False)
    assert "the choice is not remembered: TypeError: another Helion" in caplog.text
    assert len(current_store().trials(subject_of(32))) == 2
