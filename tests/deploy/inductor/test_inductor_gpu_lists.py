"""The configs Inductor lists for a GPU, on a faked H100 and A100; with or without Triton."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'tunewise[torch]'")

from inductor_fake_gpu import A100, H100, faked, graph, product, sum_product  # noqa: E402

from tunewise.decision.devices import known_device  # noqa: E402
from tunewise.deploy.inductor import gpu_lists  # noqa: E402
from tunewise.deploy.inductor.gpu_lists import listed  # noqa: E402
from tunewise.deploy.inductor.gpu_problems import DEFAULT, decision_for, space  # noqa: E402
from tunewise.errors import InvalidSetting, MissingPart  # noqa: E402


@pytest.fixture
def h100() -> Iterator[None]:
    with faked(H100), graph():
        yield


@pytest.mark.parametrize(("device", "default", "exhaustive"), [(H100, 20, 1206), (A100, 18, 1127)])
def test_the_spaces_of_a_product_are_those_that_fit_the_device(
    device: SimpleNamespace, default: int, exhaustive: int
) -> None:
    with faked(device), graph():
        inputs = product(1024, 1024, 1024)
        assert len(listed("mm", inputs, "DEFAULT")) == default + 1  # and ATen
        assert len(listed("mm", inputs, "EXHAUSTIVE")) == exhaustive + 1


def test_without_the_device_s_limits_all_are_listed(h100: None) -> None:
    inputs = product(1024, 1024, 1024)
    assert len(listed("mm", inputs, fits=False)) == 21 + 1
    assert len(listed("mm", inputs, "EXHAUSTIVE", fits=False)) == 1400 + 1


def test_aten_is_listed_first_and_is_the_default(h100: None) -> None:
    assert listed("mm", product(64, 64, 64))[0] == DEFAULT
    assert decision_for("mm", known_device("h100")).default == DEFAULT


def test_all_that_inductor_lists_is_in_the_space(h100: None) -> None:
    inputs = {"mm": product(1000, 24, 4096), "addmm": sum_product(16, 512, 72), "bmm": product(33, 64, 100, batch=7)}
    for op, one in inputs.items():
        configs = listed(op, one, "EXHAUSTIVE", fits=False)
        assert len(configs) > 50
        assert [space().why_not(config) for config in configs if config not in space()] == []


def test_an_op_or_a_space_that_is_none_is_refused(h100: None) -> None:
    with pytest.raises(InvalidSetting, match="'LARGE'"):
        listed("mm", product(64, 64, 64), "LARGE")  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="'conv'"):
        listed("conv", product(64, 64, 64))


def test_a_torch_that_lists_otherwise_is_told_in_one_sentence(h100: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("torch._inductor.choices.InductorChoices.get_ktc")
    with pytest.raises(MissingPart, match="InductorChoices of this torch has no get_ktc"):
        listed("mm", product(64, 64, 64))


def test_a_module_that_torch_has_moved_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_lists, "_PLACES", ("torch._inductor.nowhere.triton", *gpu_lists._PLACES))
    assert gpu_lists._heuristics().__name__ == "torch._inductor.template_heuristics.triton"
    monkeypatch.setattr(gpu_lists, "_PLACES", ("torch._inductor.nowhere.triton",))
    with pytest.raises(MissingPart, match="nowhere"):
        gpu_lists._heuristics()
