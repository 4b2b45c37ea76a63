"""Rules for Triton-style and CuTe-style spaces, on devices of the table."""

from dataclasses import replace

import pytest

from tunewise.decision import Hardware, MatmulFact, ReductionFact, Space, integer, pow2
from tunewise.decision.devices import known_device, known_devices
from tunewise.heuristics.case import Case
from tunewise.heuristics.experts.cute import TwoCtaCluster
from tunewise.heuristics.experts.triton_gemm import SkinnyGemm, SplitK, SquareGemm
from tunewise.heuristics.experts.triton_rows import PersistentReduction, SoftmaxRows
from tunewise.heuristics.registry import BY_BACKEND, experts_of

HALF = ("float16", "float16", "float16")
TILES = {
    "BLOCK_M": pow2(16, 256),
    "BLOCK_N": pow2(16, 256),
    "BLOCK_K": pow2(16, 256),
    "GROUP_M": [1, 4, 8],
    "SPLIT_K": pow2(1, 16),
    "num_warps": [1, 2, 4, 8, 16],
    "num_stages": [1, 2, 3, 4, 5],
}
DEFAULT = {
    "BLOCK_M": 64,
    "BLOCK_N": 64,
    "BLOCK_K": 32,
    "GROUP_M": 8,
    "SPLIT_K": 1,
    "num_warps": 4,
    "num_stages": 3,
}


def device(name):
    found = known_device(name)
    assert found is not None
    return found


def product(m, n, k, on="h100", dtypes=HALF, space=TILES, default=DEFAULT):
    machine = on if isinstance(on, Hardware) else device(on)
    return Case({}, machine, Space(space), default, (MatmulFact(m, n, k, dtypes=dtypes),))


def only(seeds):
    (seed,) = seeds
    return seed


def test_a_large_square_product_gets_the_largest_tile():
    first = SquareGemm().seeds(product(8192, 8192, 4096))[0]
    assert {first["BLOCK_M"], first["BLOCK_N"]} == {128, 256}
    assert first["num_warps"] == 8


def test_a_smaller_one_gets_tiles_small_enough_to_fill_the_device_once():
    first = SquareGemm().seeds(product(1024, 1024, 1024))[0]
    tiles = (1024 // first["BLOCK_M"]) * (1024 // first["BLOCK_N"])
    assert 100 <= tiles <= 132


def test_a_last_wave_that_is_nearly_empty_is_avoided():
    cores = 16
    machine = replace(device("h100"), cores=cores)
    first = SquareGemm().seeds(product(1024, 1152, 1024, machine))[0]  # 128 x 256 would be 40 tiles: 2.5 waves
    tiles = -(-1024 // first["BLOCK_M"]) * -(-1152 // first["BLOCK_N"])
    assert tiles / (-(-tiles // cores) * cores) > 0.85


def test_square_and_skinny_rules_never_speak_at_once():
    for m, n in [(1, 4096), (16, 4096), (64, 64), (65, 4096), (4096, 8), (8, 60), (300, 300)]:
        case = product(m, n, 1024)
        assert not (SquareGemm().seeds(case) and SkinnyGemm().seeds(case))


@pytest.mark.parametrize(("m", "tile"), [(1, 16), (16, 16), (17, 32), (64, 64)])
def test_a_skinny_product_gets_the_narrowest_tile_that_matrix_instructions_take(m, tile):
    assert only(SkinnyGemm().seeds(product(m, 8192, 4096)))["BLOCK_M"] == tile


def test_a_skinny_product_leaves_a_tile_for_every_core():
    seed = only(SkinnyGemm().seeds(product(8, 8192, 4096)))
    assert 8192 // seed["BLOCK_N"] >= 128
    assert seed["BLOCK_K"] * 2 == 256  # two cache lines of halves
    assert seed["num_stages"] > only([SquareGemm().seeds(product(4096, 4096, 4096))[0]])["num_stages"]


def test_a_product_that_is_skinny_the_other_way_is_turned():
    seed = only(SkinnyGemm().seeds(product(8192, 8, 4096)))
    assert (seed["BLOCK_N"], seed["BLOCK_M"]) == (16, 32)


def test_long_sums_are_split_when_tiles_do_not_fill_the_device():
    seed = only(SplitK().seeds(product(128, 128, 16384)))
    assert seed["SPLIT_K"] == 16
    assert only(SplitK().seeds(product(512, 512, 16384)))["SPLIT_K"] == 2


@pytest.mark.parametrize(("m", "n", "k"), [(4096, 4096, 16384), (128, 128, 256)])
def test_nothing_is_split_when_the_device_is_full_or_the_sums_are_short(m, n, k):
    assert SplitK().seeds(product(m, n, k)) == []


def test_a_split_leaves_each_part_four_steps():
    seed = only(SplitK().seeds(product(64, 64, 1024)))
    assert 1024 // (seed["SPLIT_K"] * seed["BLOCK_K"]) >= 4


def test_a_space_that_cannot_split_is_not_asked_to():
    assert SplitK().seeds(product(128, 128, 16384, space={"BLOCK_M": [64], "BLOCK_N": [64]}, default={})) == []


@pytest.mark.parametrize("machine", known_devices(), ids=lambda machine: machine.name)
@pytest.mark.parametrize("dtypes", [HALF, ("float32",) * 3, ("int8", "int8", "int32")], ids=lambda dtypes: dtypes[0])
def test_tiles_fit_into_the_shared_memory_of_every_device(machine, dtypes):
    for m, n, k in [(8192, 8192, 8192), (1, 16384, 16384), (200, 300, 50000), (64, 4096, 64)]:
        case = product(m, n, k, machine, dtypes)
        for expert in (SquareGemm(), SkinnyGemm(), SplitK()):
            for seed in expert.seeds(case):
                held = (seed["BLOCK_M"] + seed["BLOCK_N"]) * seed["BLOCK_K"] * seed["num_stages"]
                assert held * case.facts[0].operand_bytes <= machine.shared_bytes
                assert case.space.why_not({**DEFAULT, **seed}) is None


def test_devices_without_async_copies_get_two_stages():
    assert SquareGemm().seeds(product(4096, 4096, 4096, "t4"))[0]["num_stages"] == 2


@pytest.mark.parametrize(
    "names",
    [
        ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "num_warps"),
        ("block_m", "block_n", "block_k", "num_warps"),
        ("BlockM", "BlockN", "BlockK", "NumWarps"),
        ("tile_m", "tile_n", "tile_k", "warps"),
    ],
)
def test_one_rule_serves_all_spellings(names):
    m, n, k, warps = names
    space = {m: pow2(16, 256), n: pow2(16, 256), k: pow2(16, 128), warps: [4, 8]}
    (first, _) = SquareGemm().seeds(product(8192, 8192, 512, space=space, default={}))
    assert set(first) == set(names)
    assert first[k] == 64


@pytest.mark.parametrize("expert", [SquareGemm(), SkinnyGemm(), SplitK(), TwoCtaCluster()], ids=lambda e: e.name)
def test_a_rule_for_products_is_silent_without_the_fact_or_the_parameters(expert):
    b200 = device("b200")
    assert expert.seeds(Case({}, b200, Space(TILES), DEFAULT, (ReductionFact(8, 8),))) == []
    assert expert.seeds(product(16, 4096, 65536, b200, space={"x": [1, 2]}, default={})) == []


def rows(count, columns, on="h100", passes=1, dtype="float32"):
    space = {
        "XBLOCK": pow2(1, 64),
        "BLOCK_SIZE": pow2(16, 65536),
        "num_warps": pow2(1, 32),
        "num_stages": [1, 2, 3, 4],
        "num_programs": integer(1, 10_000_000),
    }
    return Case({}, device(on), Space(space), {}, (ReductionFact(count, columns, dtype, passes),))


@pytest.mark.parametrize(("columns", "block"), [(1000, 1024), (16384, 16384), (20000, 4096), (1, 1)])
def test_a_row_is_read_whole_where_it_fits_and_in_pieces_where_not(columns, block):
    assert only(PersistentReduction().seeds(rows(100_000, columns)))["BLOCK_SIZE"] == block


def test_a_thread_holds_about_sixteen_numbers():
    for columns in (1024, 4096, 16384):
        seed = only(PersistentReduction().seeds(rows(100_000, columns)))
        assert seed["BLOCK_SIZE"] // (32 * seed["num_warps"]) == 16


def test_short_rows_share_a_program_unless_cores_would_idle():
    assert only(PersistentReduction().seeds(rows(100_000, 64)))["XBLOCK"] == 16
    assert only(PersistentReduction().seeds(rows(100, 64)))["XBLOCK"] == 1


def test_softmax_keeps_as_many_programs_as_run_at_once():
    seed = only(SoftmaxRows().seeds(rows(100_000, 4096, passes=3)))
    assert seed["BLOCK_SIZE"] == 4096
    assert seed["num_programs"] == 132 * (32 // seed["num_warps"])
    assert seed["num_stages"] == 4
    assert only(SoftmaxRows().seeds(rows(10, 4096, on="t4", passes=3)))["num_programs"] == 10
    assert only(SoftmaxRows().seeds(rows(10, 4096, on="t4", passes=3)))["num_stages"] == 2


def test_softmax_leaves_plain_sums_and_long_rows_to_others():
    assert SoftmaxRows().seeds(rows(1000, 4096, passes=1)) == []
    assert SoftmaxRows().seeds(rows(1000, 100_000, passes=3)) == []


CLUSTERS = {
    "mma_tile_m": [128, 256],
    "mma_tile_n": [64, 128, 256],
    "cluster_m": [1, 2, 4],
    "cluster_n": [1, 2],
    "use_2cta": [False, True],
}


def test_two_blocks_share_an_instruction_on_sm100():
    seed = only(TwoCtaCluster().seeds(product(8192, 8192, 4096, "b200", space=CLUSTERS, default={})))
    assert seed == {"mma_tile_m": 256, "mma_tile_n": 256, "cluster_m": 2, "cluster_n": 1, "use_2cta": True}


def test_the_pair_is_narrower_where_wide_tiles_would_leave_cores_idle():
    seed = only(TwoCtaCluster().seeds(product(2048, 1024, 4096, "b200", space=CLUSTERS, default={})))
    assert seed["mma_tile_n"] == 128


def test_a_product_with_too_few_rows_for_a_pair_is_left_alone():
    assert TwoCtaCluster().seeds(product(255, 8192, 4096, "b200", space=CLUSTERS, default={})) == []


def test_the_cluster_rule_is_for_sm100_only():
    assert TwoCtaCluster.hardware.why_not(device("b200")) is None
    for name in ("h100", "rtx 5090", "mi300x"):
        assert TwoCtaCluster.hardware.why_not(device(name)) is not None


def test_rules_for_gpus_are_not_asked_about_a_cpu():
    cpu = Hardware("cpu", "Model", "x86_64", 4, 8 << 30)
    for backend in ("triton", "cute"):
        assert all(expert.hardware.why_not(cpu) is not None for expert in experts_of(backend))


def test_every_rule_has_a_name_of_its_own_a_backend_and_a_reason():
    experts = [expert for some in BY_BACKEND.values() for expert in some]
    assert len({expert.name for expert in experts}) == len(experts) >= 8
    for backend, some in BY_BACKEND.items():
        assert all(expert.backend == backend and expert.__doc__ and 1 <= expert.most <= 9 for expert in some)
