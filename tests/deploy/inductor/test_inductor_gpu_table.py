"""Our lookup tables, looked up by Inductor's own LookupTableChoices on a faked H100."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'tunewise[torch]'")

from inductor_fake_gpu import A100, faked, graph, plain_configs, product, realized, sum_product, tensor  # noqa: E402
from torch._inductor import config as inductor_config  # noqa: E402
from torch._inductor.lookup_table import LookupTableChoices  # noqa: E402

import tunewise as tw  # noqa: E402
from tunewise.decision import Config, Environment, Part, Verdict, detect  # noqa: E402
from tunewise.decision.devices import known_device  # noqa: E402
from tunewise.deploy.inductor.gpu_lists import choices_of, templates_of  # noqa: E402
from tunewise.deploy.inductor.gpu_problems import DEFAULT, decision_for, problem_of  # noqa: E402
from tunewise.deploy.inductor.lookup_table import LookupTable, lookup_table  # noqa: E402
from tunewise.errors import MissingPart, NotFound  # noqa: E402
from tunewise.formats import foreign  # noqa: E402
from tunewise.formats.inductortable import config_of  # noqa: E402
from tunewise.heuristics import Heuristic  # noqa: E402
from tunewise.session import context  # noqa: E402

H100 = "NVIDIA H100 80GB HBM3"


def triton(m: int = 64, n: int = 64, k: int = 64, stages: int = 7) -> Config:
    sizes = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8, "num_stages": stages, "num_warps": 4}
    return {"kernel": "triton", **sizes}


@pytest.fixture(autouse=True)
def own_decisions() -> Iterator[None]:
    yield
    decision_for.cache_clear()


@pytest.fixture
def h100() -> Iterator[None]:
    with faked(), plain_configs(), graph(), inductor_config.patch(max_autotune=True):
        yield


def predict(op: str, *configs: Config) -> None:
    tw.load_heuristic(Heuristic("model", f"torch.cuda.{op}", lambda features: list(configs)))


def remember(op: str, winner: Config, device: str = "h100", at: float = 1.0, **features: Any) -> None:
    """File that a config won on a device, with a version of its own for each time."""
    hardware = known_device(device)
    assert hardware is not None
    here = decision_for(op, hardware).subject(decision_for(op, hardware).problem(features))
    subject = replace(here, environment=Environment((*here.environment.parts, Part("driver", at, "must"))))
    ending: Any = "tie" if winner == DEFAULT else "win"
    context.current_store().conclude(subject, Verdict(ending, dict(DEFAULT), winner, run="r", at=at))


def look_up(table: LookupTable, op: str, inputs: Any, templates: Sequence[Any] = ()) -> list[Any]:
    """Return the choices that Inductor makes of a table."""
    asked = list(templates or templates_of(op))
    offered = {one.uid: iter(choices_of(op, inputs, fits=False, templates=[one])) for one in asked}
    with inductor_config.patch({"lookup_table.table": table.table}):
        return LookupTableChoices()._finalize_template_configs(offered, inputs, asked, op)


def configs(choices: Sequence[Any]) -> list[Config]:
    return [config_of(choice.template.uid, choice.params.to_kwargs()) or {} for choice in choices]


def test_inductor_takes_exactly_our_configs_and_aten(h100: None) -> None:
    predict("mm", triton(), triton(32, 32, 16))
    table = lookup_table({"mm": [{"m": 1024, "n": 512, "k": 256, "dtype": "bfloat16"}]}, top_k=2)
    assert configs(look_up(table, "mm", product(1024, 512, 256))) == [triton(), triton(32, 32, 16), DEFAULT]
    assert len(look_up(table, "mm", product(1024, 512, 257))) == 22  # another product


@pytest.mark.parametrize("k", [1000, 1024, 1040, 17])
def test_even_k_is_right_in_what_inductor_makes_of_the_table(h100: None, k: int) -> None:
    for block in (16, 32, 64, 128, 256):
        predict("mm", triton(64, 64, block))
        table = lookup_table({"mm": [{"m": 512, "n": 512, "k": k, "dtype": "bfloat16"}]})
        made, _ = look_up(table, "mm", product(512, 512, k))
        assert made.params.to_kwargs()["EVEN_K"] is (k % block == 0)
        tw.drop_heuristics()


def test_nothing_is_even_where_sizes_may_change(h100: None) -> None:
    predict("mm", triton())
    table = lookup_table({"mm": [{"m": 512, "n": 512, "k": 1024, "dtype": "bfloat16"}]}, is_dynamic=True)
    assert look_up(table, "mm", product(512, 512, 1024))[0].params.to_kwargs()["EVEN_K"] is False


@pytest.mark.parametrize(
    ("op", "features"), [("bmm", {"b": 8, "m": 64, "n": 32, "k": 48}), ("addmm", {"m": 64, "n": 32, "k": 48})]
)
def test_batches_and_biases_are_looked_up_too(h100: None, op: str, features: dict[str, int]) -> None:
    predict(op, triton())
    table = lookup_table({op: [{**features, "dtype": "bfloat16"}]})
    inputs = product(64, 32, 48, batch=8) if op == "bmm" else sum_product(64, 32, 48)
    found = configs(look_up(table, op, inputs, templates_of(op)[1:] if op == "addmm" else ()))
    assert found == ([triton()] if op == "addmm" else [triton(), DEFAULT])  # addmm asks for ATen apart


def test_a_matrix_that_lies_by_columns_is_another_product(h100: None) -> None:
    predict("mm", triton())
    features = {"m": 64, "n": 32, "k": 48, "dtype": "float16"}
    table = lookup_table({"mm": [{**features, "rhs": "columns"}]})
    turned = realized(tensor("a", (64, 48), torch.float16), tensor("b", (48, 32), torch.float16, stride=(1, 48)))
    assert problem_of("mm", turned.nodes())["rhs"] == "columns"
    assert configs(look_up(table, "mm", turned)) == [triton(), DEFAULT]
    assert len(look_up(table, "mm", product(64, 32, 48, torch.float16))) > 2


def test_templates_of_another_source_are_not_taken(h100: None) -> None:
    predict("mm", triton())
    table = lookup_table({"mm": [{"m": 64, "n": 64, "k": 64, "dtype": "bfloat16"}]})
    ((ours, aten),) = table.table.values()
    assert ours["template_hash"] == templates_of("mm")[1].src_hash
    assert "template_hash" not in aten
    ours["template_hash"] = "of an older torch"
    assert configs(look_up(table, "mm", product(64, 64, 64))) == [DEFAULT]


def test_another_device_looks_up_nothing() -> None:
    predict("mm", triton())
    table = lookup_table({"mm": [{"m": 64, "n": 64, "k": 64, "dtype": "bfloat16"}]}, device="h100")
    with faked(A100), plain_configs(), graph(), inductor_config.patch(max_autotune=True):
        assert len(look_up(table, "mm", product(64, 64, 64))) > 2


def test_without_problems_it_holds_what_won_on_the_device() -> None:
    shape = {"m": 64, "n": 64, "k": 100, "dtype": "bfloat16", "dynamic": 0, "lhs": "rows", "rhs": "rows"}
    remember("mm", triton(), **shape)
    remember("mm", DEFAULT, **{**shape, "m": 128})
    remember("mm", triton(16), "a100", **{**shape, "m": 256})
    table = lookup_table(device="h100", is_hashed=False)
    assert table.device == H100
    assert sorted(table.table) == [
        f"{H100}+((torch.bfloat16, [{m}, 100], [100, 1]), (torch.bfloat16, [100, 64], [64, 1]))+mm" for m in (128, 64)
    ]
    lines = {len(lines): lines for lines in table.table.values()}
    assert lines[1] == [{"template_id": "aten::mm"}]
    assert lines[2][0]["EVEN_K"] is False


@pytest.mark.parametrize("times", [(1.0, 2.0), (2.0, 1.0)])
def test_what_won_last_is_in_the_table(times: tuple[float, float]) -> None:
    shape = {"m": 64, "n": 64, "k": 100, "dtype": "bfloat16", "dynamic": 0, "lhs": "rows", "rhs": "rows"}
    for at in times:
        remember("mm", triton(m=16 * int(at)), at=at, **shape)
    (lines,) = lookup_table(device=H100, is_hashed=False).table.values()
    assert lines[0]["BLOCK_M"] == 32


def test_what_is_safe_for_sizes_that_may_change_comes_before_what_is_not() -> None:
    shape = {"m": 64, "n": 64, "k": 128, "dtype": "bfloat16", "lhs": "rows", "rhs": "rows"}
    remember("mm", triton(16), **shape, dynamic=1)
    remember("mm", triton(32), **shape, dynamic=0)
    (lines,) = lookup_table(device="h100", is_hashed=False).table.values()
    assert (lines[0]["BLOCK_M"], lines[0]["EVEN_K"]) == (16, False)


def test_a_device_that_only_the_store_knows_has_a_table() -> None:
    shape = {"m": 64, "n": 64, "k": 128, "dtype": "bfloat16", "dynamic": 0, "lhs": "rows", "rhs": "rows"}
    hardware = replace(known_device("h100") or detect(), name="NVIDIA X1")
    decision = decision_for("mm", hardware)
    verdict = Verdict("win", dict(DEFAULT), triton(), run="r", at=1.0)
    context.current_store().conclude(decision.subject(decision.problem(shape)), verdict)
    (key,) = lookup_table(device="NVIDIA X1", is_hashed=False).table
    assert key.startswith("NVIDIA X1+((")


def test_what_a_table_cannot_say_is_left_out_with_the_reason() -> None:
    shape = {"m": 64, "n": 64, "k": 64, "dtype": "bfloat16", "dynamic": 0, "lhs": "rows", "rhs": "rows"}
    remember("mm", triton(), **{**shape, "lhs": "rows-padded"})
    remember("addmm", DEFAULT, **shape, bias="vector")
    table = lookup_table(device="h100", is_hashed=False)
    assert table.table == {}
    assert [(op, reason.partition(";")[0]) for op, _, reason in table.left_out] == [
        ("mm", "the layout 'rows-padded' does not tell how far apart numbers lie"),
        ("addmm", "a lookup table cannot say that addmm is best left to ATen"),
    ]
    unknown = lookup_table({"mm": [shape, {**shape, "m": 0}]}, device="a100")
    assert [reason for *_, reason in unknown.left_out] == [
        "nothing is known of it",
        "m=0 is not a number of rows or columns",
    ]


def test_a_saved_table_is_what_export_and_import_know(tmp_path: Path, h100: None) -> None:
    predict("mm", triton())
    table = lookup_table({"mm": [{"m": 512, "n": 512, "k": 1000, "dtype": "bfloat16"}]}, device="h100")
    place = table.save(tmp_path / "table.json")
    assert json.loads(place.read_text()) == table.table
    found = foreign.read(place)
    (finding,) = found.findings
    assert (found.format.name, finding.device, finding.decision) == ("inductor-table", H100, "torch.cuda.mm")
    assert finding.config == triton()
    (written,) = foreign.write(found.findings, "inductor-table")
    assert json.loads(written.raw) == table.table


def test_a_device_that_nobody_knows_and_an_op_that_is_none_are_refused() -> None:
    with pytest.raises(NotFound, match="the GPU 'gtx 1'"):
        lookup_table(device="gtx 1")
    with pytest.raises(NotFound, match="'conv'"):
        lookup_table({"conv": []}, device="h100")
    with pytest.raises(MissingPart, match="cuda"):
        lookup_table()
