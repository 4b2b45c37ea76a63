"""Words for Inductor's choices: no two alike in a list, and the same for every problem and in every process."""

from types import SimpleNamespace
from typing import Any

import pytest

from tunewise.deploy.ahchoices import words_of

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'tunewise[torch]'")

from inductor_fake_gpu import H100, faked, graph, product  # noqa: E402

from tunewise.deploy.inductor.gpu_lists import choices_of  # noqa: E402


def _templates(k: int) -> list[Any]:
    """Return all Triton configs for a product, as choices hold them."""
    with faked(H100), graph():
        found = choices_of("mm", product(1024, 1024, k), "EXHAUSTIVE")
        return [SimpleNamespace(annotations={"ktc": one}, name=f"triton_mm_{at}") for at, one in enumerate(found)]


def _cpp(rows: int, columns: int, cache: tuple[int, int, int] = (8, 1, 48)) -> Any:
    """Return a choice of the C++ template with its register and cache blocks."""
    block = lambda m, n, k: SimpleNamespace(block_m=m, block_n=n, block_k=k)  # noqa: E731
    template = SimpleNamespace(
        name="CppMicroGemmFP32Vec",
        register_blocking=block(rows, columns, 1),
        num_threads=1,
        cache_blocking=lambda threads: block(*cache),
    )
    return SimpleNamespace(template=template, name="cpp_CppMicroGemmFP32Vec_7", annotations={})


def test_a_thousand_triton_configs_have_a_thousand_words_that_no_size_changes() -> None:
    words = words_of(_templates(1024))
    assert len(set(words)) == len(words) == 1207
    assert not any("EVEN_K" in word or "#" in word for word in words)
    odd = words_of(_templates(1000))  # what divides 1024 does not divide 1000
    assert set(odd) == set(words)


def test_libraries_and_templates_are_named_by_what_they_are() -> None:
    extern = SimpleNamespace(choice=SimpleNamespace(name="mm"), name="mm", annotations={})
    split = SimpleNamespace(decomposition=words_of, decomposition_kwargs={"k": 4}, name="split_3", annotations={})
    other = SimpleNamespace(name="cutlass_gemm_12", annotations={})
    assert words_of([extern, _cpp(8, 32), split, other]) == [
        "extern_mm",
        "cpp::CppMicroGemmFP32Vec 8x32x1",
        "subgraph_words_of k=4",
        "cutlass_gemm",
    ]


def test_cache_blocks_are_named_only_where_nothing_else_differs() -> None:
    assert words_of([_cpp(8, 32), _cpp(8, 32, (4, 2, 24)), _cpp(4, 16)]) == [
        "cpp::CppMicroGemmFP32Vec 8x32x1 cache=8x1x48",
        "cpp::CppMicroGemmFP32Vec 8x32x1 cache=4x2x24",
        "cpp::CppMicroGemmFP32Vec 4x16x1",
    ]
    assert words_of([_cpp(8, 32), _cpp(8, 32)])[1].endswith(" #2")
