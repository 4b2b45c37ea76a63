"""Which configs Triton gets to see: one where the answer is known, a few where it is not, all where it is to tune."""

import logging
import math
import sys
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from triton_standins import Autotuner, Config, Tensor, forty

import tunewise as tw
from tunewise.deploy import triton_harvest
from tunewise.deploy.triton import answers, tuned
from tunewise.deploy.triton_answers import KernelDecision
from tunewise.errors import InvalidDecision, InvalidSetting
from tunewise.heuristics import Heuristic
from tunewise.session import context, shelf

NAME = "triton_standins.scale"


@pytest.fixture(autouse=True)
def knobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Stand for `triton.knobs.autotuning`."""
    knobs = SimpleNamespace(listener=None)
    monkeypatch.setattr(triton_harvest, "_knobs", lambda: knobs)
    triton_harvest._reported.clear()
    return knobs


def time_ms(config: Config, args: Mapping[str, Any]) -> float:
    """The larger the problem, the larger the best block; warps and stages cost a little."""
    return (
        1 + abs(math.log2(config.kwargs["block"] / args["n"] * 16)) + config.num_warps / 100 + config.num_stages / 1e3
    )


class Kernels:
    """Makes the same kernel anew, as a new process would have it, and launches it."""

    def __init__(self, knobs: SimpleNamespace) -> None:
        self.knobs = knobs

    def __call__(self, n: int, options: Mapping[str, Any] | None = None, **fields: Any) -> Autotuner:
        tuner = Autotuner(**{"configs": forty(), "time_ms": time_ms, "knobs": self.knobs, **fields})
        tuned(**(options or {}))(tuner)
        tuner.run(Tensor(), Tensor(), n)
        return tuner


@pytest.fixture
def launched(knobs: SimpleNamespace) -> Kernels:
    return Kernels(knobs)


def decision_of(tuner: Autotuner) -> KernelDecision:
    decision = tuner.early_config_prune.decision  # type: ignore[union-attr]
    assert isinstance(decision, KernelDecision)
    return decision


def as_ours(tuner: Autotuner, config: Config | None) -> dict[str, Any]:
    assert config is not None
    return decision_of(tuner).kernel.menu.config_of(config)


def load(ranking: Any, kind: Any = "learned") -> None:
    """Put a heuristic in force that ranks the configs of the kernel."""
    shelf.load_heuristic(Heuristic("rule", NAME, ranking, kind=kind))


def test_an_unknown_problem_is_timed_with_a_few_configs_the_default_among_them(launched: Kernels) -> None:
    tuner = launched(256)
    assert len(tuner.timed) == 5
    assert tuner.configs[0] in tuner.timed


def test_a_known_problem_is_not_timed(launched: Kernels) -> None:
    before = launched(256)
    after = launched(256)
    assert after.timed == []
    assert as_ours(after, after.best_config) == as_ours(before, before.best_config)


def test_what_was_timed_is_in_the_store(launched: Kernels) -> None:
    launched(256)
    (subject,) = context.current_store().subjects(NAME)
    assert len(context.current_store().trials(subject)) == 5


def test_a_question_that_was_measured_is_no_miss(launched: Kernels) -> None:
    launched(256)
    context.refresh()
    assert context.current_store().misses(NAME) == []


def test_top_k_says_how_many_are_timed(launched: Kernels) -> None:
    assert len(launched(256, {"top_k": 9}).timed) == 9


def test_with_a_top_k_of_one_nothing_is_ever_timed(launched: Kernels) -> None:
    tuner = launched(256, {"top_k": 1})
    assert (tuner.timed, tuner.best_config) == ([], tuner.configs[0])


@pytest.mark.parametrize("top_k", [0, -1, 2.5, True, "5"])
def test_a_top_k_that_makes_no_sense_is_refused(top_k: Any) -> None:
    with pytest.raises(InvalidSetting, match="top_k="):
        tuned(top_k=top_k)(Autotuner(forty()))


def test_the_author_can_name_the_default(launched: Kernels) -> None:
    tuner = launched(256, {"default": {"block": 256, "num_warps": 2}})
    named = [c for c in tuner.timed if (c.kwargs["block"], c.num_warps, c.num_stages) == (256, 2, 2)]
    assert len(named) == 1
    assert decision_of(tuner).default["block"] == 256


def test_in_tune_mode_all_are_timed_once(launched: Kernels) -> None:
    with tw.mode("tune"):
        assert len(launched(256).timed) == 40
        assert launched(256).timed == []


def test_in_tune_mode_a_short_list_from_before_is_not_enough(launched: Kernels) -> None:
    launched(256)
    with tw.mode("tune"):
        assert len(launched(256).timed) == 40


def test_in_collect_mode_all_are_timed_each_time(launched: Kernels) -> None:
    with tw.mode("collect"):
        assert [len(launched(256).timed), len(launched(256).timed)] == [40, 40]


def test_off_the_autotuner_sees_what_its_author_listed(launched: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNEWISE_MODE", "off")
    tw.configure()
    tuner = launched(256)
    assert tuner.timed == tuner.configs
    assert context.current_store().subjects() == []


def test_replay_never_measures(launched: Kernels) -> None:
    with tw.mode("replay"):
        tuner = launched(256)
    assert (tuner.timed, tuner.best_config) == ([], tuner.configs[0])


def test_the_environment_sets_the_mode(launched: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNEWISE_MODE", "tune")
    tw.configure()
    assert len(launched(256).timed) == 40


def test_a_pin_is_launched_and_not_timed(knobs: SimpleNamespace) -> None:
    tuner = tuned()(Autotuner(forty(), knobs=knobs))
    decision_of(tuner).pin({"block": 128}, n=256)
    tuner.run(Tensor(), Tensor(), 256)
    assert tuner.timed == []
    assert tuner.best_config is not None
    assert tuner.best_config.kwargs == {"block": 128}


@pytest.mark.parametrize("kind", ["learned", "table"])
def test_what_a_heuristic_answers_is_launched_and_not_timed(launched: Kernels, kind: str) -> None:
    load(lambda features: [{"block": 64, "num_warps": 2}], kind)
    tuner = launched(1024)
    assert tuner.timed == []
    assert as_ours(tuner, tuner.best_config) == {
        "block": 64, "num_warps": 2, "num_stages": 2, "num_ctas": 1
    }  # fmt: skip


def test_a_config_that_failed_elsewhere_is_not_launched_on_a_heuristics_word(launched: Kernels) -> None:
    def failing(config: Config, args: Mapping[str, Any]) -> float:
        return math.inf if config.kwargs["block"] == 64 else time_ms(config, args)

    with tw.mode("tune"):
        launched(256, time_ms=failing)
    load(lambda features: [{"block": 64, "num_warps": 1}])
    tuner = launched(1024, time_ms=failing)
    assert len(tuner.timed) == 5
    assert all(config.kwargs["block"] != 64 for config in tuner.timed)


def test_a_heuristic_that_abstains_leaves_it_to_a_few_timings(launched: Kernels) -> None:
    load(lambda features: [])
    assert len(launched(1024).timed) == 5


def test_the_best_of_the_nearest_problem_is_among_the_few(launched: Kernels) -> None:
    with tw.mode("tune"):
        launched(64, {"near": 1.0})
        best = launched(4096, {"near": 1.0}).best_config
    tuner = launched(8192, {"near": 1.0})
    assert as_ours(tuner, best) in [as_ours(tuner, config) for config in tuner.timed[:2]]


def test_a_near_match_is_timed_against_the_default(launched: Kernels) -> None:
    with tw.mode("tune"):
        best = launched(4096).best_config
    tuner = launched(4100)
    assert len(tuner.timed) == 5
    assert as_ours(tuner, tuner.timed[1]) == as_ours(tuner, best)


def test_what_tune_mode_accepts_is_not_timed(launched: Kernels) -> None:
    with tw.mode("tune"):
        launched(4096)
    with tw.mode("tune", accept=["near"]):
        assert launched(4100).timed == []


def test_where_all_of_the_few_failed_the_rest_is_timed_next_time(launched: Kernels) -> None:
    def failing(config: Config, args: Mapping[str, Any]) -> float:
        return math.inf if config.kwargs["block"] == 16 else time_ms(config, args)

    assert {config.kwargs["block"] for config in launched(256, time_ms=failing).timed} == {16}
    tuner = launched(256, time_ms=failing)
    assert len(tuner.timed) == 35
    assert launched(256, time_ms=failing).timed == []


def test_the_authors_own_pruning_is_asked_first(launched: Kernels) -> None:
    def large(configs: list[Config], named_args: Mapping[str, Any], **kwargs: Any) -> list[Config]:
        return [config for config in configs if config.kwargs["block"] >= 128]

    tuner = launched(256, early_config_prune=large)
    assert len(tuner.timed) == 5
    assert all(config.kwargs["block"] >= 128 for config in tuner.timed)


def test_an_answer_that_the_author_pruned_is_not_launched(launched: Kernels) -> None:
    load(lambda features: [{"block": 16}])
    tuner = launched(256, early_config_prune=lambda configs, named_args, **kwargs: configs[20:])
    assert len(tuner.timed) == 5
    assert set(tuner.timed) <= set(tuner.configs[20:])


def test_an_error_in_the_authors_pruning_is_the_authors(launched: Kernels) -> None:
    def broken(configs: list[Config], named_args: Mapping[str, Any], **kwargs: Any) -> list[Config]:
        raise RuntimeError("theirs")

    with pytest.raises(RuntimeError, match="theirs"):
        launched(256, early_config_prune=broken)


def test_the_authors_performance_model_ranks_what_nobody_knows(launched: Kernels) -> None:
    def model(n: int, block: int, num_warps: int, **rest: Any) -> float:
        return abs(block - 64) + num_warps

    tuner = launched(256, perf_model=model, configs_top_k=8)
    assert [(config.kwargs["block"], config.num_warps) for config in tuner.timed[:2]] == [(64, 1), (64, 1)]
    assert {config.kwargs["block"] for config in tuner.timed} == {64}


def first_model(n: int, block: int, num_warps: int, **rest: Any) -> float:
    return float(block)  # the author's order: the default comes first


@pytest.mark.parametrize("kept", [0.25, 10, 3])
def test_triton_does_not_ask_the_authors_model_again_of_the_few_that_are_left(launched: Kernels, kept: float) -> None:
    tuner = launched(256, perf_model=first_model, configs_top_k=kept)
    assert len(tuner.timed) == min(5, 10 if kept == 0.25 else int(kept))
    assert tuner.configs[0] in tuner.timed


def test_where_all_is_to_be_timed_the_authors_model_has_the_word_it_always_had(launched: Kernels) -> None:
    tuner = launched(256, perf_model=first_model, configs_top_k=0.25)
    with tw.mode("tune"):
        tuner.run(Tensor(), Tensor(), 512)
    assert len(tuner.timed) == 5 + 10


def test_replay_launches_the_default_where_the_author_pruned_what_is_known(launched: Kernels) -> None:
    options = {"default": {"block": 256}}
    with tw.mode("tune"):
        before = launched(256, options)
    assert before.best_config in before.configs[:20]
    with tw.mode("replay"):
        tuner = launched(256, options, early_config_prune=lambda configs, named_args, **kwargs: configs[20:])
    assert as_ours(tuner, tuner.best_config) == decision_of(tuner).default


def test_a_half_imported_torch_is_no_trouble(launched: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False)))
    assert len(launched(256).timed) == 5


def test_features_of_our_own_make_the_problem(launched: Kernels) -> None:
    launched(200, {"features": lambda args: {"rounded": -(-args["n"] // 256) * 256}})
    (subject,) = context.current_store().subjects(NAME)
    assert dict(subject.problem) == {"rounded": 256}
    assert launched(255, {"features": lambda args: {"rounded": -(-args["n"] // 256) * 256}}).timed == []


def test_our_errors_never_reach_the_kernels_call(launched: Kernels, caplog: pytest.LogCaptureFixture) -> None:
    def broken(args: Mapping[str, Any]) -> Mapping[str, Any]:
        raise RuntimeError("ours")

    with caplog.at_level(logging.WARNING):
        tuner = launched(256, {"features": broken})
        launched(512, {"features": broken})
    assert tuner.timed == tuner.configs
    assert [record.getMessage() for record in caplog.records] == [
        f"{NAME}: it is tuned as if tunewise were not there: RuntimeError: ours"
    ]


def test_a_triton_that_tells_nothing_is_reported_and_still_answered(
    launched: Kernels, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def too_old() -> None:
        raise triton_harvest.MissingPart("too old")

    monkeypatch.setattr(triton_harvest, "_knobs", too_old)
    assert len(launched(256).timed) == 5
    assert "its timings are not kept: MissingPart: too old" in caplog.text


def test_the_answers_can_be_passed_to_prune_configs_by(knobs: SimpleNamespace) -> None:
    def fresh() -> Autotuner:
        pruning = answers("by-hand", top_k=3)
        return Autotuner(forty(), time_ms=time_ms, knobs=knobs, early_config_prune=pruning)

    first, second = fresh(), fresh()
    first.run(Tensor(), Tensor(), 256)
    second.run(Tensor(), Tensor(), 256)
    assert (len(first.timed), second.timed) == (3, [])
    assert context.current_store().decisions() == ["by-hand"]


def test_answers_that_nobody_can_place_leave_all_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    configs = forty()
    pruning = answers()
    assert pruning(configs, {"n": 1}) is configs  # called by us and not by an autotuner
    assert pruning(configs, {"n": 1}) is configs
    assert len(caplog.records) == 1


def test_while_torch_compile_reads_us_the_authors_configs_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    compiling = SimpleNamespace(compiler=SimpleNamespace(is_compiling=lambda: True))
    monkeypatch.setitem(sys.modules, "torch", compiling)
    configs = forty()
    tuner = tuned()(Autotuner(configs, early_config_prune=lambda configs, named_args, **kwargs: configs[:7]))
    assert tuner.early_config_prune(configs, {"n": 1}) == configs[:7]


def test_a_kernel_is_answered_for_once() -> None:
    tuner = tuned()(Autotuner(forty()))
    with pytest.raises(InvalidDecision, match="answered for twice"):
        tuned()(tuner)


def test_the_kernel_comes_back_as_the_same_object() -> None:
    tuner = Autotuner(forty())
    assert tuned("mine")(tuner) is tuner
    assert decision_of(tuner).name == "mine"


def test_explain_says_where_the_answer_comes_from(launched: Kernels) -> None:
    tuner = launched(256)
    said = decision_of(tuner).explain({"n": 256, "x_dtype": "float16", "y_dtype": "float16"})
    assert said.answer.rung == "memory"
    assert "5 configs tried" in str(said)


def test_a_learned_model_of_harvested_timings_answers_new_problems(launched: Kernels, tmp_path: Any) -> None:
    pytest.importorskip("sklearn", reason="learning needs tunewise[learn]")
    from click.testing import CliRunner

    from tunewise.cli.app import app

    with tw.mode("collect"):
        for power in range(4, 13):
            launched(2**power), launched(2**power + 2 ** (power - 1))
    out = str(tmp_path / "scale.json")
    result = CliRunner().invoke(app, ["train", "--decision", NAME, "--learner", "tree", "--out", out])
    assert result.exit_code == 0, result.output
    tw.load_heuristic(out)
    tuner = launched(700, {"near": 1.0})
    assert tuner.timed == []
