"""Inductor's lookup tables: the keys, the lines, and what no table can say."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tunewise.decision import Config, Problem
from tunewise.errors import InvalidData, InvalidFile
from tunewise.formats import foreign
from tunewise.formats.findings import Finding
from tunewise.formats.inductortable import config_of, entries_of, key_of, template_of
from tunewise.formats.operands import operands_of

SHAPE = {"m": 64, "n": 32, "k": 100, "dtype": "bfloat16", "dynamic": 0, "lhs": "rows", "rhs": "columns"}
TILE = {"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 64, "GROUP_M": 8, "num_stages": 3, "num_warps": 4}
CONFIG: Config = {"kernel": "triton", **TILE}
ATEN: Config = {"kernel": "aten", **dict.fromkeys(TILE, 0)}
PAIR = "((torch.f, [2, 2], [2, 1]), (torch.f, [2, 2], [2, 1]))"


def finding(op: str = "mm", config: Config = CONFIG, **changed: Any) -> Finding:
    return Finding(f"torch.cuda.{op}", Problem({**SHAPE, **changed}), config, device="NVIDIA H100")


def written(*findings: Finding) -> Any:
    (file,) = foreign.write(findings, "inductor-table")
    return json.loads(file.raw)


def test_a_key_is_written_as_inductor_writes_it() -> None:
    two = "(torch.bfloat16, [64, 100], [100, 1]), (torch.bfloat16, [100, 32], [1, 100])"
    assert key_of("mm", operands_of("mm", SHAPE)) == f"({two})+mm"
    assert key_of("mm", operands_of("mm", SHAPE), "NVIDIA H100") == f"NVIDIA H100+({two})+mm"
    with_bias = f"((torch.bfloat16, [64, 32], [0, 1]), {two})+alpha=1&beta=1+addmm"
    assert key_of("addmm", operands_of("addmm", SHAPE)) == with_bias


def test_a_line_says_what_follows_from_it_and_aten_is_never_left_out() -> None:
    for k, is_even in ((100, False), (128, True)):
        first, second = entries_of("mm", [CONFIG], {**SHAPE, "k": k})
        assert first == {"template_id": "triton::mm", **TILE, "EVEN_K": is_even}
        assert second == {"template_id": "aten::mm"}
    assert entries_of("mm", [CONFIG], {**SHAPE, "k": 128, "dynamic": 1})[0]["EVEN_K"] is False
    assert entries_of("bmm", [ATEN], SHAPE) == [{"template_id": "aten::bmm"}]
    assert [line["template_id"] for line in entries_of("addmm", [ATEN, CONFIG], SHAPE)] == ["triton::mm"]


def test_a_config_and_a_template_are_each_other_s() -> None:
    for op, kernel in (("mm", "triton"), ("addmm", "triton_tma"), ("bmm", "triton"), ("bmm", "aten")):
        config = ATEN if kernel == "aten" else {**CONFIG, "kernel": kernel}
        assert config_of(template_of(op, config), {**TILE, "EVEN_K": True, "ACC_TYPE": "tl.float32"}) == config
    assert config_of("triton::blackwell_ws_persistent_device_tma", TILE) is None
    assert config_of("triton::mm", {**TILE, "BLOCK_M": None}) is None
    with pytest.raises(ValueError, match="bmm has no kernel 'triton_tma'"):
        template_of("bmm", {**CONFIG, "kernel": "triton_tma"})


def test_what_cannot_be_told_is_left_out_and_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        table = written(finding(), finding(lhs="rows-padded"), finding("addmm", ATEN))
    assert len(table) == 1
    assert "2 of 3 problems are not in the lookup table: the layout 'rows-padded'" in caplog.text


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (finding("addmm", ATEN), "best left to ATen"),
        (finding(out_dtype="float32"), "a lookup table knows the features"),
        (finding("conv"), "not about 'torch.cuda.conv'"),
        (finding(config={**CONFIG, "BLOCK_M": 0}), "BLOCK_M=0 of a triton config"),
        (finding(config={"solution": 3}), "mm has no kernel None"),
    ],
)
def test_where_nothing_can_be_told_the_reason_is(one: Finding, said: str) -> None:
    with pytest.raises(InvalidData, match=said):
        foreign.write([one], "inductor-table")


def test_of_sizes_that_may_change_and_sizes_that_may_not_the_safe_line_stands() -> None:
    safe, other = finding(k=128, dynamic=1), finding(k=128, config={**CONFIG, "BLOCK_M": 16})
    for findings in ((safe, other), (other, safe)):
        ((line, _),) = written(*findings).values()
        assert (line["BLOCK_M"], line["EVEN_K"]) == (64, False)


MALFORMED: list[tuple[Any, str]] = [
    ({"((torch.f, [1], [1]))+mm": []}, "has 1 operands"),
    ({f"{PAIR}+mm": []}, "has no list of templates"),
    ({"((torch.f, [1, 2], [2, 1]), (torch.f, [3, 1], [1, 1]))+mm": []}, "does not take"),
    ({"((torch.f, [2, 2], [9, 1]), (torch.f, [2, 2], [2, 1]))+mm": []}, "rows-padded"),
    ({f"{PAIR}+conv": []}, "one of mm, addmm, bmm"),
    ({f"{PAIR}+alpha=2&beta=1+mm": []}, "tells more than sizes"),
    ({f"{PAIR}+mm": [{"template_id": "triton::conv"}]}, "no config of mm that we know"),
    ({f"{PAIR}+mm": [{"template_id": "triton::bmm", **TILE}]}, "no config of mm that we know"),
]


@pytest.mark.parametrize(("document", "said"), MALFORMED, ids=[said for _, said in MALFORMED])
def test_what_is_malformed_is_one_sentence_with_the_place(tmp_path: Path, document: Any, said: str) -> None:
    path = tmp_path / "table.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidFile) as caught:
        foreign.read(path, "inductor-table")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
