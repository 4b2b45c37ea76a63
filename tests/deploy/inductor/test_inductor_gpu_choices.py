"""Steering of the choices for a product, on a faked H100: what Inductor's own code lists, and what is left of it."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'tunewise[torch]'")

from inductor_fake_gpu import faked, graph, product, sum_product  # noqa: E402
from torch._dynamo.source import ConstantSource  # noqa: E402
from torch._inductor import config as inductor_config  # noqa: E402
from torch._inductor.kernel.mm import blackwell_ws_persistent_device_tma_mm_template  # noqa: E402
from torch._inductor.kernel.mm import persistent_tma_mm_template as tma_template  # noqa: E402
from torch._inductor.virtualized import V  # noqa: E402
from torch.fx.experimental.symbolic_shapes import DimDynamic  # noqa: E402

import tunewise as tw  # noqa: E402
from tunewise.decision import Config  # noqa: E402
from tunewise.deploy.inductor import gpu_choices, steering  # noqa: E402
from tunewise.deploy.inductor.choices import choices_class  # noqa: E402
from tunewise.deploy.inductor.gpu_choices import finalized  # noqa: E402
from tunewise.deploy.inductor.gpu_lists import choices_of, templates_of  # noqa: E402
from tunewise.deploy.inductor.gpu_problems import DEFAULT, GpuDecision, decision_for, hardware_of  # noqa: E402
from tunewise.deploy.inductor.steering import Steering  # noqa: E402
from tunewise.deploy.triton_configs import key_of  # noqa: E402
from tunewise.formats.inductortable import TUNABLE, config_of  # noqa: E402
from tunewise.heuristics import Heuristic  # noqa: E402
from tunewise.session import context  # noqa: E402
from tunewise.settings import Mode  # noqa: E402

AUTOTUNED = Steering(wants_autotuning=True)  # the user asks for max-autotune
FACTS = ("EVEN_K", "ACC_TYPE", "USE_FAST_ACCUM", "hint_override")


def triton(m: int = 64, n: int = 64, k: int = 64, warps: int = 4, stages: int = 3, kernel: str = "triton") -> Config:
    sizes = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8, "num_stages": stages, "num_warps": warps}
    return {"kernel": kernel, **sizes}


@pytest.fixture(autouse=True)
def h100() -> Iterator[None]:
    steering._reported.clear()
    with faked(), graph(), inductor_config.patch(max_autotune=True):
        yield
    decision_for.cache_clear()


def decision(op: str = "mm") -> GpuDecision:
    return decision_for(op, hardware_of(torch.device("cuda:0")))


def predict(*configs: Config, op: str = "mm") -> None:
    """Put a heuristic in force that ranks these configs for every problem."""
    tw.load_heuristic(Heuristic("model", f"torch.cuda.{op}", lambda features: list(configs)))


def ask(
    inputs: Any, op: str = "mm", how: Steering | None = None, templates: Sequence[Any] = (), space: Any = "DEFAULT"
) -> list[Any]:
    """Return what is left of the choices that Inductor lists."""
    asked = list(templates or templates_of(op))
    offered = {one.uid: iter(choices_of(op, inputs, space, fits=False, templates=[one])) for one in asked}
    return finalized(how or AUTOTUNED, offered, inputs, asked, op)


def configs(choices: Sequence[Any]) -> list[Config]:
    return [config_of(choice.template.uid, choice.params.to_kwargs()) or {} for choice in choices]


def test_exactly_the_predicted_config_and_aten_are_left() -> None:
    predict(triton(64, 64, 64, 8))
    assert configs(ask(product(1024, 1024, 1024), space="EXHAUSTIVE")) == [triton(64, 64, 64, 8), DEFAULT]


def test_the_best_few_are_left_in_their_order() -> None:
    few = [triton(128, 64, 32), DEFAULT, triton(64, 64, 64), triton(32, 32, 32)]
    predict(*few)
    left = configs(ask(product(1024, 1024, 1024), how=Steering(top_k=3)))
    assert left == [few[0], few[2], DEFAULT]


def test_where_aten_is_predicted_nothing_else_is_left() -> None:
    predict(DEFAULT)
    assert configs(ask(product(1024, 1024, 1024))) == [DEFAULT]
    assert configs(ask(product(64, 64, 64, batch=8), "bmm")) != [DEFAULT]  # another decision


def test_where_nothing_is_known_the_list_is_as_inductor_made_it() -> None:
    assert len(ask(product(1024, 1024, 1024))) == 22


@pytest.mark.parametrize("k", [1000, 1024, 1040, 17])
def test_even_k_follows_from_the_config_and_not_from_the_choice_it_was_made_of(k: int) -> None:
    for block in (16, 32, 64, 128, 256):
        unlisted = triton(64, 32, block, 2, stages=7)
        predict(unlisted)
        made, _ = ask(product(512, 512, k))
        assert made.params.to_kwargs()["EVEN_K"] is (k % block == 0)


def test_even_k_is_not_taken_for_granted_of_a_size_that_may_change() -> None:
    predict(triton(64, 32, 64, 2, stages=7))
    size = V.graph.sizevars.shape_env.create_unspecified_symbol(
        1024, source=ConstantSource("k"), dynamic_dim=DimDynamic.DYNAMIC
    )
    made, _ = ask(product(512, 512, size))
    assert made.params.to_kwargs()["EVEN_K"] is False


def test_facts_of_the_product_are_those_of_inductor_s_own_choices() -> None:
    predict(triton(64, 32, 64, 2, stages=7))
    for dtype, accumulates in ((torch.float32, "tl.float32"), (torch.float64, "tl.float64")):
        inputs = product(512, 512, 512, dtype)
        made, _ = ask(inputs)
        own = choices_of("mm", inputs)[1]
        told, other = made.params.to_kwargs(), own.params.to_kwargs()
        assert told["ACC_TYPE"] == accumulates
        assert {name: told[name] for name in FACTS} == {name: other[name] for name in FACTS}
        assert set(told) == set(other)
        assert made.extra_kwargs is not None
        assert made.extra_kwargs == own.extra_kwargs


def test_a_made_choice_is_what_inductor_would_have_listed() -> None:
    inputs = product(512, 512, 1000)
    few, many = choices_of("mm", inputs), choices_of("mm", inputs, "EXHAUSTIVE", fits=False)
    base = few[1]
    for theirs in many[1::50]:
        config = config_of(theirs.template.uid, theirs.params.to_kwargs())
        assert config is not None
        ours = gpu_choices.made(base, config, inputs.mnk_symbolic()[2])
        assert ours.params.to_kwargs() == theirs.params.to_kwargs()
        assert type(ours) is type(theirs)


def test_a_listed_choice_is_taken_as_it_is() -> None:
    inputs = product(1024, 1024, 1024)
    offered = choices_of("mm", inputs, fits=False)
    predict(configs(offered)[5])
    left = finalized(Steering(), {"all": offered}, inputs, [], "mm")
    assert left[0] is offered[5]


def test_the_persistent_template_is_steered_by_its_own_word() -> None:
    inputs, templates = product(1024, 1024, 1024), [*templates_of("mm"), tma_template]
    predict(triton(128, 64, 32, 8, stages=6, kernel="triton_tma"))
    made, aten = ask(inputs, templates=templates)
    assert made.template is tma_template
    assert {"NUM_SMS", "A_ROW_MAJOR"} <= set(made.params.to_kwargs())
    assert configs([aten]) == [DEFAULT]


def test_what_cannot_be_had_here_steers_nothing() -> None:
    predict(triton(kernel="triton_tma"))  # not offered
    assert len(ask(product(1024, 1024, 1024))) == 22
    tw.drop_heuristics()
    predict({**triton(), "BLOCK_M": 48})  # not in the space: the ladder has no answer
    assert len(ask(product(1024, 1024, 1024))) == 22


def test_where_a_template_is_offered_that_we_have_no_word_for_nothing_is_dropped() -> None:
    predict(triton())
    templates = [*templates_of("mm"), blackwell_ws_persistent_device_tma_mm_template]
    left = ask(product(1024, 1024, 1024), templates=templates)
    assert len(left) > 22
    assert len({choice.template.uid for choice in left}) == 3


def test_where_kernels_are_made_for_several_hints_nothing_is_dropped() -> None:
    predict(triton())
    size = V.graph.sizevars.shape_env.create_unspecified_symbol(
        1024, source=ConstantSource("m"), dynamic_dim=DimDynamic.DYNAMIC
    )
    with inductor_config.patch(multi_kernel_hints=[64]):
        left = ask(product(size, 1024, 1024))
    assert {choice.params.to_kwargs().get("hint_override") for choice in left} == {None, 64}
    assert configs(ask(product(size, 1024, 1024))) == [triton(), DEFAULT]


def test_a_model_for_another_device_is_not_asked_for_second_guesses() -> None:
    tw.load_heuristic(
        Heuristic(
            "elsewhere", "torch.cuda.mm", lambda features: [triton(16, 16, 16, 1)], {"hardware.name": "NVIDIA A100"}
        )
    )
    predict(triton())
    left = configs(ask(product(1024, 1024, 1024), how=Steering(top_k=3)))
    assert left == [triton(), DEFAULT]


class TestWithoutAutotuning:
    """The user does not ask for max-autotune: Inductor lists candidates because we made it, and would call ATen."""

    def test_where_nothing_is_known_aten_alone_is_left(self) -> None:
        assert configs(ask(product(1024, 1024, 1024), how=Steering())) == [DEFAULT]

    def test_of_an_op_that_asks_for_aten_apart_nothing_else_is_left(self) -> None:
        aten, templates = templates_of("addmm")
        assert ask(sum_product(512, 512, 512), "addmm", Steering(), [templates]) == []
        assert configs(ask(sum_product(512, 512, 512), "addmm", Steering(), [aten])) == [DEFAULT]

    def test_something_is_left_where_inductor_was_told_to_do_without_aten(self) -> None:
        with inductor_config.patch(max_autotune_gemm_backends="TRITON"):
            assert len(ask(sum_product(512, 512, 512), "addmm", Steering(), templates_of("addmm")[1:])) == 21

    def test_of_an_op_that_is_not_ours_aten_alone_is_left(self) -> None:
        inputs = product(1024, 1024, 1024)
        offered = choices_of("mm", inputs, fits=False)
        assert finalized(Steering(), {"all": offered}, inputs, [], "mm_plus_mm") == offered[:1]

    def test_a_predicted_config_is_left_with_aten(self) -> None:
        predict(triton())
        assert configs(ask(product(1024, 1024, 1024), how=Steering())) == [triton(), DEFAULT]


class TestAddmm:
    """addmm asks for ATen apart from its templates."""

    def test_a_call_for_templates_alone_leaves_the_predicted_ones(self) -> None:
        predict(triton(64, 64, 64, 8), op="addmm")
        assert configs(ask(sum_product(512, 512, 512), "addmm", templates=templates_of("addmm")[1:])) == [
            triton(64, 64, 64, 8)
        ]

    def test_a_call_for_aten_alone_is_left_as_it_is(self) -> None:
        predict(triton(64, 64, 64, 8), op="addmm")
        assert configs(ask(sum_product(512, 512, 512), "addmm", templates=templates_of("addmm")[:1])) == [DEFAULT]

    def test_nothing_is_left_of_templates_where_aten_is_predicted(self) -> None:
        predict(DEFAULT, op="addmm")
        assert ask(sum_product(512, 512, 512), "addmm", templates=templates_of("addmm")[1:]) == []

    def test_something_is_left_where_inductor_was_told_to_do_without_aten(self) -> None:
        predict(DEFAULT, op="addmm")
        with inductor_config.patch(max_autotune_gemm_backends="TRITON"):
            assert len(ask(sum_product(512, 512, 512), "addmm", templates=templates_of("addmm")[1:])) == 21


class TestModes:
    @pytest.mark.parametrize("mode", ["collect", "tune"])
    def test_all_choices_are_left_where_they_are_to_be_measured(self, mode: Mode) -> None:
        predict(triton())
        assert len(ask(product(1024, 1024, 1024), how=Steering(mode=mode))) == 22

    def test_off_is_as_if_we_were_not_there(self) -> None:
        predict(triton())
        assert len(ask(product(1024, 1024, 1024), how=Steering(mode="off", wants_autotuning=True))) == 22
        assert configs(ask(product(1024, 1024, 1024), how=Steering(mode="off"))) == [DEFAULT]

    def test_replay_takes_what_is_remembered_or_the_default(self) -> None:
        predict(triton())
        assert configs(ask(product(1024, 1024, 1024), how=Steering(mode="replay"))) == [DEFAULT]

    def test_tune_takes_a_rung_that_counts_as_good_enough(self) -> None:
        predict(triton())
        with tw.mode("tune", accept=["learned"]):
            assert configs(ask(product(1024, 1024, 1024), how=Steering(mode="tune"))) == [triton(), DEFAULT]

    def test_a_pin_stands_alone_but_for_aten(self) -> None:
        decision().pin(triton(32, 32, 32))
        predict(triton(), triton(128, 128, 32))
        assert configs(ask(product(64, 64, 64), how=Steering(mode="tune", top_k=3))) == [triton(32, 32, 32), DEFAULT]

    def test_what_was_asked_in_vain_is_counted(self) -> None:
        ask(product(1024, 1024, 1024))
        decision().forget()
        (miss,) = context.current_store().misses("torch.cuda.mm")
        assert miss.problem["m"] == 1024


class TestTrouble:
    def test_nothing_of_ours_reaches_inductor_and_it_is_told_once(
        self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: Any) -> Any:
            raise RuntimeError("out of luck")

        monkeypatch.setattr(gpu_choices, "ranked", broken)
        predict(triton())
        with caplog.at_level(logging.WARNING):
            assert [len(ask(product(1024, 1024, 1024))) for _ in range(3)] == [22, 22, 22]
        assert [record.message for record in caplog.records] == [
            "mm on a GPU is compiled as if tunewise were not there: RuntimeError: out of luck"
        ]

    def test_a_model_that_breaks_while_it_ranks_costs_only_its_second_guesses(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        asked: list[Mapping[str, object]] = []

        def ranking(features: Mapping[str, object]) -> list[Config]:
            asked.append(features)
            if len(asked) > 1:
                raise ValueError("no more")
            return [triton()]

        tw.load_heuristic(Heuristic("moody", "torch.cuda.mm", ranking))
        with caplog.at_level(logging.WARNING):
            assert configs(ask(product(1024, 1024, 1024), how=Steering(top_k=4))) == [triton(), DEFAULT]
        assert "moody" in caplog.text

    def test_other_ops_and_other_devices_are_left_alone(self) -> None:
        predict(triton())
        inputs = product(1024, 1024, 1024)
        offered = choices_of("mm", inputs, fits=False)
        assert finalized(AUTOTUNED, {"all": offered}, inputs, [], "mm-ah") == offered
        inputs._input_nodes[0].get_device = lambda: torch.device("cpu")
        assert finalized(Steering(), {"all": offered}, inputs, [], "mm") == offered


def test_the_handler_of_the_backend_steers_and_is_known_by_what_steers() -> None:
    inputs, handlers = product(1024, 1024, 1024), [choices_class()(Steering()) for _ in range(3)]
    before = handlers[0].uuid()
    predict(triton())
    offered = {"all": choices_of("mm", inputs, fits=False)}
    left = handlers[1]._finalize_template_configs(offered, inputs, [], "mm", {})
    assert configs(left) == [triton(), DEFAULT]
    assert handlers[1].uuid() == handlers[2].uuid() != before


def test_only_what_may_be_tuned_is_in_a_config() -> None:
    assert set(triton()) == {"kernel", *TUNABLE}
    assert key_of(triton()) == key_of(dict(reversed(triton().items())))
