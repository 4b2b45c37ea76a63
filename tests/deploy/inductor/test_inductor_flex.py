"""flex_attention's block size: measured once for a mask and a shape, right whatever it is, and answered from memory."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tunewise as tw
from tunewise.session.context import current_store

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch._inductor import config  # noqa: E402
from torch._inductor.utils import fresh_cache  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

from tunewise.deploy.inductor.flex import DEFAULT, NAME, TILES, flex_block_size, tuned_flex_attention  # noqa: E402
from tunewise.deploy.inductor.flex_compiled import Compiled  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore::DeprecationWarning")

WINDOW, LENGTH = 16, 256


def window(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return (q >= kv) & (q - kv < WINDOW)


def causal(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return q >= kv


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad(), config.patch({"cpp.threads": 1}):
        yield
    torch.set_num_threads(threads)


@pytest.fixture
def qkv() -> tuple[Any, Any, Any]:
    generator = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(1, 2, LENGTH, 16, generator=generator) for _ in range(3))
    return q, k, v


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[int, int], Callable[..., Any]]:
    """Stand in for compiled code: the larger the tiles the more work, unless a test puts something else in."""
    special: dict[tuple[int, int], Callable[..., Any]] = {}

    def fresh(self: Compiled, name: str) -> Callable[..., Any]:
        q_tile, kv_tile = map(int, name.split("_")[-2:])

        def attend(mask: Any, q: Any, k: Any, v: Any) -> Any:
            for _ in range(q_tile * kv_tile // 2048):
                scaled_dot_product_attention(q, k, v)
            return scaled_dot_product_attention(q, k, v, is_causal=True)

        return special.get((q_tile, kv_tile), attend)

    monkeypatch.setattr(Compiled, "_fresh", fresh)
    return special


def _outcomes() -> dict[tuple[Any, Any], Any]:
    (subject,) = current_store().subjects(NAME)
    return {(one.config["q"], one.config["kv"]): one.outcome for one in current_store().trials(subject)}


def test_compiled_attention_is_tuned_right_and_remembered(qkv: tuple[Any, Any, Any]) -> None:
    places = torch.arange(LENGTH)
    wanted = scaled_dot_product_attention(*qkv, attn_mask=window(0, 0, places[:, None], places[None, :]))
    attention = tuned_flex_attention(window)
    with fresh_cache():
        tuning = attention.tune(*qkv, budget=2)
        assert torch.allclose(attention(*qkv), wanted, atol=1e-5)
    assert (tuning.answer.config, tuning.measured) == ({"q": 16, "kv": 16}, 2)
    assert flex_block_size(window, *qkv) == (16, 16)
    assert attention.block_mask(*qkv).BLOCK_SIZE == (16, 16)
    assert attention.explain(*qkv).answer.rung == "memory"
    assert flex_block_size(causal, *qkv) == DEFAULT  # another mask


def test_torchs_own_block_size_is_used_where_nothing_is_known(qkv: tuple[Any, Any, Any]) -> None:
    attention = tuned_flex_attention(causal)
    assert attention.block_size(*qkv) == DEFAULT
    assert attention.block_mask(*qkv).BLOCK_SIZE == DEFAULT
    assert attention.block_mask(*qkv) is attention.block_mask(*qkv)
    assert current_store().subjects(NAME) == []


def test_block_sizes_that_have_least_to_do_are_tried_first(qkv: tuple[Any, Any, Any]) -> None:
    tried = tuned_flex_attention(window).candidates(*qkv)
    assert tried[:2] == [DEFAULT, (16, 16)]
    assert tried.index((32, 32)) < tried.index((128, 64)) < tried.index((256, 256))
    assert len(tried) == len(set(tried)) == len(TILES) ** 2


def test_problems_are_told_apart_by_sizes_and_by_what_the_mask_keeps(qkv: tuple[Any, Any, Any]) -> None:
    q, k, v = qkv
    said = tuned_flex_attention(window).features(q, k[:, :1], v[:, :1])
    sizes = {"b": 1, "h": 2, "hkv": 1, "m": 256, "n": 256, "d": 16, "dtype": "float32"}
    assert said == {**sizes, "kept_32": 0.234, "kept_128": 0.75, "mask": said["mask"]}
    assert said["mask"].startswith("window-")
    assert tuned_flex_attention(causal).features(q, k, v)["kept_32"] == 0.562


def test_the_budget_of_a_block_bounds_what_is_compiled(qkv: tuple[Any, Any, Any], uncompiled: Any) -> None:
    attention = tuned_flex_attention(causal)
    with tw.mode("tune", budget=3):
        assert attention.block_size(*qkv) != DEFAULT
    assert set(_outcomes()) == set(attention.candidates(*qkv)[:3])


def test_collecting_measures_every_block_size(qkv: tuple[Any, Any, Any], uncompiled: Any) -> None:
    attention = tuned_flex_attention(causal)
    with tw.mode("collect"):
        attention.block_size(*qkv)
    assert len(_outcomes()) == len(TILES) ** 2


def test_what_does_not_compile_or_is_wrong_is_recorded_and_not_used(
    qkv: tuple[Any, Any, Any], uncompiled: dict[tuple[int, int], Callable[..., Any]]
) -> None:
    def refuse(*args: Any) -> Any:
        raise NotImplementedError("no such tiles")

    attention = tuned_flex_attention(causal)
    first, second, third = attention.candidates(*qkv)[1:4]
    uncompiled[first], uncompiled[second] = refuse, lambda mask, q, k, v: scaled_dot_product_attention(q, k, v)
    tuning = attention.tune(*qkv, budget=4)
    assert tuning.failures == {"compile": 1, "correctness": 1}
    assert "no such tiles" in _outcomes()[first].detail
    assert attention.block_size(*qkv) == third


def test_block_masks_are_made_anew_once_they_are_forgotten(qkv: tuple[Any, Any, Any]) -> None:
    attention = tuned_flex_attention(causal)
    before = attention.block_mask(*qkv)
    attention.forget()
    assert attention.block_mask(*qkv) is not before
