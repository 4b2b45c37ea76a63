"""Rules for the C kernels, on CPUs that are described and need not be there."""

import pytest

from tunewise.decision import Hardware, MatmulFact, Problem, ReductionFact, Space, boolean, pow2, registers
from tunewise.heuristics.case import Case
from tunewise.heuristics.experts.c_gemm import RegisterTile, Tile
from tunewise.heuristics.experts.c_rows import SoftmaxVectors
from tunewise.heuristics.experts.c_stencil import StencilTile
from tunewise.heuristics.registry import experts_of

CACHES = (("l1d", 32 << 10), ("l2", 512 << 10), ("l3", 32 << 20))
AVX2 = Hardware("cpu", "Model", "x86_64", 2, 8 << 30, ("avx", "fma", "avx2"), CACHES)
AVX512 = Hardware("cpu", "Model", "x86_64", 2, 8 << 30, ("avx", "fma", "avx2", "avx512f"), CACHES)
BARE = Hardware("cpu", "Model", "riscv64", 2, 8 << 30)
DEFAULT = {
    "mr": 6,
    "nv": 2,
    "vector": 4,
    "unroll": 1,
    "order": "down",
    "pack_a": True,
    "pack_b": True,
    "mc": 96,
    "nc": 4096,
    "kc": 256,
}


def gemm_space(machine):
    return Space(
        {
            "mr": [1, 2, 3, 4, 5, 6, 8, 10, 12],
            "nv": [1, 2, 3, 4],
            "vector": registers.vector_widths(machine),
            "unroll": [1, 2, 4],
            "order": ["down", "along"],
            "pack_a": boolean(),
            "pack_b": boolean(),
            "mc": [24, 48, 96, 192, 384],
            "nc": [256, 1024, 4096],
            "kc": pow2(64, 1024),
        },
        rules=[f"mr * nv + nv + 1 <= {registers.register_count(machine)}", "mr * nv >= 4"],
    )


def product(m, n, k, machine=AVX2):
    return Case({}, machine, gemm_space(machine), DEFAULT, (MatmulFact(m, n, k),))


def first(m, n, k, machine=AVX2):
    return RegisterTile().seeds(product(m, n, k, machine))[0]


def tile_of(seed):
    return seed["mr"], seed["nv"], seed["vector"]


@pytest.mark.parametrize(("machine", "width"), [(AVX2, 8), (AVX512, 16), (BARE, 4)])
def test_a_large_product_gets_a_tile_that_keeps_both_multiply_add_units_busy(machine, width):
    seed = first(960, 960, 960, machine)
    tile = Tile(*tile_of(seed))
    assert tile.width == width
    assert tile.registers < registers.register_count(machine)  # one is left to the compiler
    assert tile.rows * tile.vectors >= 8  # two units, four cycles until a sum can be added to
    assert tile.rows + tile.vectors <= tile.rows * tile.vectors  # loads are not what it waits for


def test_a_tile_that_covers_the_matrix_exactly_wins_over_one_that_pads():
    assert first(300, 24, 300)["nv"] * first(300, 24, 300)["vector"] in (8, 24)
    assert first(1, 700, 900)["mr"] == 1
    assert first(800, 6, 700)["nv"] * first(800, 6, 700)["vector"] == 8
    assert first(60, 96, 60)["mr"] in (3, 4, 5, 6, 10, 12)


@pytest.mark.parametrize(("m", "n", "k"), [(960, 960, 4000), (100, 100, 100), (50, 3000, 2000), (3000, 8, 3000)])
@pytest.mark.parametrize("machine", [AVX2, AVX512])
def test_blocks_stay_in_their_caches(m, n, k, machine):
    for seed in RegisterTile().seeds(product(m, n, k, machine)):
        used, columns = min(seed["kc"], k), seed["nv"] * seed["vector"]
        assert 4 * used * columns <= 0.75 * (32 << 10)
        assert 4 * used * min(seed["mc"], m) <= (512 << 10) / 2
        assert 4 * used * min(seed["nc"], n) <= (32 << 20) / 2


def test_all_products_are_one_pass_where_the_strip_fits():
    assert first(800, 6, 700)["kc"] >= 700
    assert first(800, 6, 7000)["kc"] < 1024


def test_a_strip_that_is_not_copied_lies_in_few_pages():
    seed = first(1, 700, 900)
    assert not seed["pack_b"]
    assert seed["kc"] * 700 * 4 <= 64 * 4096


def test_b_is_copied_when_its_rows_fall_into_the_same_sets_and_many_tiles_read_them():
    assert first(256, 256, 256)["pack_b"]
    assert not first(256, 240, 100)["pack_b"]
    assert not first(8, 256, 256)["pack_b"]


def test_rows_of_a_that_fall_into_one_set_are_no_more_than_it_holds():
    ways = (32 << 10) // 4096
    assert all(seed["mr"] <= ways - 2 for seed in RegisterTile().seeds(product(1024, 8, 1024)))
    assert any(seed["mr"] > ways for seed in RegisterTile().seeds(product(1024, 8, 1000)))


def test_b_is_copied_when_each_row_lies_in_a_page_of_its_own():
    assert first(333, 2048, 111)["pack_b"]


def test_a_is_copied_only_if_it_spreads_over_pages_and_b_is_wide():
    assert first(960, 960, 960)["pack_a"]
    assert not first(960, 96, 960)["pack_a"]
    assert not first(100, 960, 60)["pack_a"]


def test_short_loops_are_unrolled():
    seeds = {tile_of(seed): seed for seed in RegisterTile().seeds(product(1500, 24, 100))}
    for (rows, vectors, width), seed in seeds.items():
        assert seed["unroll"] == (2 if Tile(rows, vectors, width).instructions <= 16 else 1)


def test_the_third_guess_is_the_first_with_the_other_copying_of_b():
    one, _, other, *_ = RegisterTile().seeds(product(333, 222, 111))
    assert tile_of(one) == tile_of(other)
    assert one["pack_b"] != other["pack_b"]


@pytest.mark.parametrize("machine", [AVX2, AVX512, BARE])
@pytest.mark.parametrize("size", [1, 2, 7, 33, 500, 4097])
def test_every_guess_for_a_product_is_in_the_space_and_none_is_given_twice(machine, size):
    for m, n, k in [(size, 64, 64), (64, size, 64), (64, 64, size), (size, size, size), (1, size, 3)]:
        case = product(m, n, k, machine)
        seeds = RegisterTile().seeds(case)
        assert 2 <= len(seeds) <= RegisterTile.most
        assert all(case.space.why_not({**DEFAULT, **seed}) is None for seed in seeds)
        assert len({tuple(seed.items()) for seed in seeds}) == len(seeds)


def test_the_rule_serves_other_spellings_and_switches_that_are_numbers():
    space = {"MR": [1, 2, 4, 6, 8], "NV": [1, 2, 4], "VW": [4, 8], "KC": pow2(64, 512), "NC": [256], "MC": [32, 128]}
    case = Case({}, AVX2, Space({**space, "PACKB": [0, 1], "KU": [1, 2]}), {}, (MatmulFact(333, 222, 111),))
    seed = RegisterTile().seeds(case)[0]
    assert set(seed) == {"MR", "NV", "VW", "KC", "NC", "MC", "PACKB", "KU"}
    assert type(seed["PACKB"]) is int


def softmax_space(machine):
    return Space(
        {
            "algorithm": ["store", "recompute", "online"],
            "vector": registers.vector_widths(machine),
            "unroll": [1, 2, 4, 8],
            "exp": ["libm", "poly5", "poly6"],
            "block": [0, 128, 512],
        }
    )


def softmax(rows, columns, machine=AVX2, passes=3):
    return Case({}, machine, softmax_space(machine), {}, (ReductionFact(rows, columns, passes=passes),))


def test_each_exponential_is_computed_once_by_the_shortest_polynomial():
    seed = SoftmaxVectors().seeds(softmax(100, 1000))[0]
    assert seed == {"algorithm": "store", "vector": 8, "unroll": 2, "exp": "poly5", "block": 0}


@pytest.mark.parametrize(("columns", "width"), [(10, 4), (16, 8), (17, 4), (64, 8), (100, 8)])
def test_short_rows_with_a_ragged_end_get_shorter_vectors(columns, width):
    assert SoftmaxVectors().seeds(softmax(100, columns))[0]["vector"] == width


@pytest.mark.parametrize("columns", [1, 3, 10, 17, 1000])
def test_every_guess_for_rows_is_in_the_space(columns):
    case = softmax(100, columns)
    assert all(case.space.why_not(seed) is None for seed in SoftmaxVectors().seeds(case))


def test_rules_for_rows_leave_plain_sums_alone():
    assert SoftmaxVectors().seeds(softmax(100, 1000, passes=1)) == []


def test_c_rules_are_silent_about_decisions_with_other_parameters():
    case = Case(Problem({"n": 8}), AVX2, Space({"tile": [1, 2]}), {"tile": 1})
    assert [seed for expert in experts_of("c") for seed in expert.seeds(case)] == []


def stencil(h, w, fh, fw, machine=AVX2):
    space = Space(
        {
            "algorithm": ["gather", "share", "axpy"],
            "rows": [1, 2, 3, 4, 6, 8],
            "nv": [1, 2, 4, 8],
            "vector": registers.vector_widths(machine),
            "fixed": [0, 3, 5, 7],
            "strip": [0, 128, 512, 2048],
        }
    )
    return Case(Problem({"h": h, "w": w, "fh": fh, "fw": fw}), machine, space, {})


@pytest.mark.parametrize(
    ("fh", "fw", "algorithm"),
    [(3, 3, "share"), (5, 5, "gather"), (15, 15, "share"), (9, 1, "gather"), (1, 9, "gather")],
)
def test_inputs_are_shared_for_large_filters_and_for_small_ones_that_are_compiled_in(fh, fw, algorithm):
    assert StencilTile().seeds(stencil(200, 200, fh, fw))[0]["algorithm"] == algorithm


def test_a_square_filter_is_compiled_in_where_the_space_has_its_size():
    assert StencilTile().seeds(stencil(200, 200, 5, 5))[0]["fixed"] == 5
    assert StencilTile().seeds(stencil(200, 200, 6, 6))[0]["fixed"] == 0
    assert StencilTile().seeds(stencil(200, 200, 5, 3))[0]["fixed"] == 0


@pytest.mark.parametrize(("h", "w"), [(200, 200), (9, 300), (300, 20), (64, 5000)])
def test_tiles_lie_inside_the_result_and_strips_inside_the_first_cache(h, w):
    for seed in StencilTile().seeds(stencil(h, w, 4, 6)):
        assert seed["rows"] <= h - 3
        assert seed["nv"] * seed["vector"] <= w - 5
        assert 4 * (seed["rows"] + 3) * (seed["strip"] or w) <= (32 << 10) / 2


def test_the_sums_of_a_tile_leave_registers_for_inputs_and_weights():
    for machine in (AVX2, AVX512):
        for seed in StencilTile().seeds(stencil(500, 500, 4, 6, machine)):
            assert 8 <= seed["rows"] * seed["nv"] <= registers.register_count(machine) - 4


def test_an_output_smaller_than_a_vector_is_left_alone():
    assert StencilTile().seeds(stencil(5, 5, 3, 3)) == []
