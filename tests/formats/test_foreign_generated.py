"""Whatever a format can say survives being written and read: problem, config, timings, status, device, versions."""

import tempfile
from dataclasses import replace
from keyword import iskeyword
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunewise.decision import FAILURE_KINDS, Failure, Problem, Timing
from tunewise.formats import foreign
from tunewise.formats.findings import Finding, finding_of, in_unit, record_of

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
PLAIN = st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,7}", fullmatch=True).filter(lambda name: not iskeyword(name))
SCALARS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | WORDS | st.booleans()
VALUES: Any = SCALARS | st.none() | st.lists(SCALARS, max_size=3).map(tuple)
# A cache that lists 1 may record 1.0: there the two are one value.
LISTED: Any = VALUES.filter(lambda value: not isinstance(value, float) or not value.is_integer())
MS = st.floats(1e-6, 1e6)
DATES = st.just(0.0) | st.integers(1, 2_000_000_000).map(float)
PROBLEMS = st.dictionaries(WORDS, st.integers(-(2**63), 2**63) | WORDS, max_size=3).map(Problem)
DETAILS = st.sampled_from(["", "x", "RuntimeFailedConfig", "compile", "ptxas died"]) | WORDS
FAILURES = st.builds(Failure, st.sampled_from(FAILURE_KINDS), DETAILS)
VERSIONS = st.dictionaries(WORDS, WORDS, max_size=2)
DEVICES = st.just("") | WORDS


def timings(samples: int, *, compiles: bool) -> Any:
    seconds = st.lists(MS.map(lambda ms: ms * 1e-3), min_size=1, max_size=samples).map(tuple)
    return st.builds(Timing, seconds, (st.none() | MS.map(lambda ms: ms * 1e-3)) if compiles else st.none())


def findings(**fields: Any) -> Any:
    """Draw findings about one thing: what they share is drawn once, and configs differ."""
    shared = {
        name: fields.pop(name) for name in ("problem", "device", "versions", "unit", "decision") if name in fields
    }

    @st.composite
    def drawn(draw: Any) -> list[Finding]:
        same = {name: draw(strategy) for name, strategy in shared.items()}
        names = draw(st.lists(fields.get("names", WORDS), min_size=1, max_size=4, unique=True))
        found: dict[str, Finding] = {}
        for _ in range(draw(st.integers(1, 4))):
            config = {name: draw(fields.get("values", VALUES)) for name in names}
            outcome = draw(fields["outcome"])
            one = Finding(config=config, outcome=outcome, at=draw(fields.get("at", st.just(0.0))), **same)
            found.setdefault(repr(config), one)
        return list(found.values())

    return drawn()


def with_kernel(found: list[Finding]) -> list[Finding]:
    """Return findings whose configs say which kernel runs them."""
    return [
        replace(one, config={"kernel": "triton" if "BLOCK_M" in one.config else "cpp", **one.config}) for one in found
    ]


FREE = {"decision": WORDS, "problem": PROBLEMS, "device": DEVICES}
SHAPES = st.fixed_dictionaries(
    {"M": st.integers(0, 10**6), "N": st.integers(1, 10**6)},
    optional={"dtype": PLAIN, "block_shape": st.just("[128,128]")},
).map(Problem)
LAYOUTS = st.fixed_dictionaries(
    {"layout": st.sampled_from(["nn", "nt", "tn", "tt"]), **dict.fromkeys("mnk", st.integers(0, 10**9))}
).map(Problem)
KEYS = st.lists(st.integers(0, 10**6) | WORDS, max_size=12).map(
    lambda values: Problem({f"key_{place}": value for place, value in enumerate(values)})
)
STATUSES = st.sampled_from(
    [
        *(Failure("timeout", "timeout"), Failure("runtime", "error"), Failure("compile", "peer_compilation_fail")),
        *(Failure("constraints", "filtered"), Failure("correctness", "accuracy_error"), Failure("crash", "crash")),
    ]
)
HELION_VALUES = st.integers(-5, 5000) | st.booleans() | PLAIN | st.sampled_from(["[0,1]", '{"a":1}', "[]"])
OPS = st.sampled_from(["torch.cuda.mm", "torch.cuda.bmm", "torch.linear", "gemm"])
PRODUCTS = st.fixed_dictionaries(
    {**dict.fromkeys("mnk", st.integers(0, 10**9)), "b": st.integers(0, 99), "dtype": PLAIN},
    optional={"out_dtype": PLAIN, "a_layout": WORDS},
).map(lambda drawn: Problem({n: v for n, v in drawn.items() if n != "out_dtype" or v != drawn["dtype"]}))
TILED = {
    "decision": OPS,
    "problem": PRODUCTS.filter(lambda problem: problem["b"] != 1),  # of one matrix there is no b but in bmm
    "device": DEVICES,
    "names": st.sampled_from(["BLOCK_M", "BLOCK_K", "num_warps", "reg_m", "way"]),
    "values": SCALARS,
    "outcome": timings(1, compiles=False) | st.just(Failure("runtime", "recorded without a time")),
}

BLOCKS = st.sampled_from([16, 32, 64, 128])
TILES = st.fixed_dictionaries(
    {"kernel": st.just("triton"), **dict.fromkeys(("BLOCK_M", "BLOCK_N", "BLOCK_K"), BLOCKS)}
    | dict.fromkeys(("GROUP_M", "num_stages", "num_warps"), st.integers(1, 8))
)
ATEN = dict.fromkeys(("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M", "num_stages", "num_warps"), 0) | {"kernel": "aten"}


@st.composite
def looked_up(draw: Any) -> list[Finding]:
    """Draw a product with layouts that tell its strides, and a config that a lookup table can say of it."""
    op = draw(st.sampled_from(["mm", "addmm", "bmm"]))
    layouts = ["lhs", "rhs"] + (["bias"] if op == "addmm" else [])
    sizes = {name: draw(st.integers(2, 10**6)) for name in ("mnkb" if op == "bmm" else "mnk")}
    words = {name: draw(st.sampled_from(["rows", "columns"])) for name in layouts}
    config = draw(TILES if op == "addmm" else TILES | st.just(ATEN))
    device = draw(st.just("") | st.sampled_from(["NVIDIA H100 80GB HBM3", "gfx942:sramecc+:xnack-"]))
    return [
        Finding(
            f"torch.cuda.{op}", Problem({**sizes, **words, "dtype": "bfloat16", "dynamic": 0}), config, device=device
        )
    ]


DRAWN: dict[str, Any] = {
    "vllm": findings(
        decision=st.just(""),
        problem=SHAPES,
        device=PLAIN.map(lambda name: f"NVIDIA {name}"),
        versions=st.just({}) | WORDS.map(lambda version: {"triton": version}),
        outcome=st.none(),
    ),
    "tunable": findings(
        decision=PLAIN,
        problem=LAYOUTS | WORDS.map(lambda word: Problem({"params": f"x{word}"})),
        versions=st.dictionaries(PLAIN, WORDS, max_size=2),
        names=st.just("solution"),
        values=WORDS,
        outcome=st.none() | timings(1, compiles=False),
    ),
    "triton": findings(
        decision=PLAIN,
        problem=KEYS,
        outcome=timings(3, compiles=False) | st.just(Failure("constraints", "Infinity")),
        names=PLAIN | st.sampled_from(["num_warps", "num_stages"]),
        values=SCALARS,
    ),
    "kernel-tuner": findings(**FREE, outcome=timings(5, compiles=True) | FAILURES, at=DATES, values=LISTED),
    "t4": findings(
        **FREE,
        versions=VERSIONS,
        unit=st.sampled_from(["ms", "us", "s", "ns"]),
        outcome=timings(5, compiles=True) | FAILURES,
        at=DATES,
    ),
    "helion-log": findings(
        **FREE,
        names=PLAIN | st.sampled_from(["a_0", "a_1", "b_0"]),
        values=HELION_VALUES,
        outcome=timings(1, compiles=True) | STATUSES,
    ),
    "helion-trace": findings(
        **FREE,
        names=PLAIN | st.sampled_from(["a_0", "a_1", "b_0"]),
        values=HELION_VALUES,
        outcome=timings(1, compiles=True) | STATUSES,
        at=DATES,
    ),
    "diode": findings(**TILED).map(with_kernel),
    "diode-msgpack": findings(**TILED).map(with_kernel),
    "diode-solution": findings(
        decision=st.just(""),
        problem=PRODUCTS.map(
            lambda problem: Problem({n: v for n, v in problem.items() if n in ("m", "n", "k", "dtype")})
        ),
        names=TILED["names"],
        values=SCALARS,
        outcome=st.none(),
    ).map(with_kernel),
    "helion-best": findings(
        decision=st.just(""),
        problem=PROBLEMS,
        device=DEVICES,
        versions=st.dictionaries(PLAIN, WORDS, max_size=2),
        names=PLAIN,
        values=HELION_VALUES,
        outcome=st.none(),
    ),
    "inductor-table": looked_up(),
}


def approximately(finding: Finding) -> Any:
    """Return what a finding tells, with its times in 12 digits: a sum of samples may differ in its last ones."""
    outcome = finding.outcome
    if isinstance(outcome, Timing):
        compile_s = None if outcome.compile_s is None else f"{outcome.compile_s:.12g}"
        outcome = (tuple(f"{sample:.12g}" for sample in outcome.samples_s), compile_s)  # type: ignore[assignment]
    config = sorted(finding.config.items())  # the order of parameters is nobody's
    where = finding.device, sorted(finding.versions.items()), finding.at
    return finding.decision, finding.problem, config, outcome, finding.unit, where


def back_again(found: list[Finding], name: str) -> list[Finding]:
    with tempfile.TemporaryDirectory() as place:
        back: list[Finding] = []
        for file in foreign.write(found, name):
            for path, raw in file.files(Path(place) / file.name):
                path.write_bytes(raw)
            back += foreign.read(Path(place) / file.name, name).findings
    return back


def test_every_format_is_drawn() -> None:
    assert set(DRAWN) == {one.name for one in foreign.FORMATS}


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_drawn_survives(name: str) -> None:
    @settings(max_examples=40, deadline=None)
    @given(DRAWN[name])
    def survives(found: list[Finding]) -> None:
        if name in ("vllm", "tunable"):
            found = found[:1]  # one winner a problem
        back = [repr(approximately(one)) for one in back_again(found, name)]
        assert sorted(back) == sorted(repr(approximately(one)) for one in found)

    survives()


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-9, 1e9), st.sampled_from([1.0, 1e-3, 1e-6, 1e-9]))
def test_a_time_reads_back_as_the_same_seconds(value: float, unit_s: float) -> None:
    time_s = value * unit_s
    assert in_unit(time_s, unit_s) * unit_s == time_s


@settings(max_examples=40, deadline=None)
@given(DRAWN["t4"])
def test_what_is_drawn_survives_the_store(found: list[Finding]) -> None:
    for finding in found:
        record = record_of(finding, "t4")
        assert finding_of(record.subject, record.fact) == finding  # type: ignore[arg-type]
