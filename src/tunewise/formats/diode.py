"""torch-diode's data sets as they lie in a file, JSON or msgpack, and what their names mean in ours."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tunewise.decision import Config, Problem, Value, canonical
from tunewise.formats.findings import MAX_PARAMS, config_of, problem_of, raw_value, word
from tunewise.formats.outline import has
from tunewise.formats.torn import MAX_OBJECTS, Content, decode

VERSION = 1
GPU = "torch.cuda."  # what diode measures: the Triton templates of an op
SIZES = {"m": "M", "n": "N", "k": "K"}
PARAMS = {
    "BLOCK_M": "block_m",
    "BLOCK_N": "block_n",
    "BLOCK_K": "block_k",
    "GROUP_M": "group_m",
    "num_stages": "num_stages",
    "num_warps": "num_warps",
}
_T = TypeVar("_T")
_ORDER = {name: place for place, name in enumerate(("kernel", *PARAMS))}
_OURS = {theirs: ours for ours, theirs in PARAMS.items()}
# Of a config what follows from its problem or from a setting, and is nobody's to choose.
_GIVEN = ("EVEN_K", "ALLOW_TF32", "USE_FAST_ACCUM", "ACC_TYPE", "name", "grid", "version")
_SHAPE = ("version", "B", "M", "M_dtype", "N", "K", "K_dtype", "out_dtype", "out_size", "out_stride")
_MAX_PACKED_BYTES, _FREE_BEGINS = 64 << 20, 1_000_000
_BEGINS = bytes((*range(0x80, 0xA0), 0xDC, 0xDD, 0xDE, 0xDF))  # of an object or a list
_MAPS = (*range(0x80, 0x90), 0xDE, 0xDF)  # the bytes that a msgpack object may begin with


class Timed(msgspec.Struct, frozen=True):
    """A config and its milliseconds; of a failure they are infinite or missing. Older files tell a config as JSON."""

    config: str | Annotated[dict[str, Any], Meta(max_length=MAX_PARAMS)]
    time: float | None = None
    version: int | UnsetType = UNSET


class Solution(msgspec.Struct, frozen=True):
    """What was measured of a shape."""

    name: str | UnsetType = UNSET
    timed_configs: list[Timed] = []
    version: int | UnsetType = UNSET


class Operation(msgspec.Struct, frozen=True):
    """What was measured of an op, by its shapes as JSON; `decision` is ours, where it is not diode's own."""

    decision: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    solution: dict[str, Solution] = {}
    version: int | UnsetType = UNSET


class Hardware(msgspec.Struct, frozen=True):
    """What was measured on a device."""

    operation: dict[str, Operation]
    version: int | UnsetType = UNSET


class File(msgspec.Struct, frozen=True):
    """A whole data set."""

    hardware: dict[str, Hardware]
    version: int | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class Measured:
    """All that a file tells of one shape: the decision and the problem in our words, and where it stood in theirs."""

    decision: str
    device: str
    problem: Problem
    solution: Solution = field(repr=False)
    op: str
    shape: str
    operation: Operation = field(repr=False)
    hardware: Hardware = field(repr=False)
    file: File = field(repr=False)


_is_json = has("hardware")


def is_json(content: Content) -> bool:
    """Return whether a file is JSON with the devices of a data set at its top."""
    return not is_packed(content.raw) and _is_json(content)


def is_msgpack(content: Content) -> bool:
    """Return whether a file is msgpack with the devices of a data set at its top."""
    return is_packed(content.raw) and looks_like(content.raw[:4096])


def is_packed(raw: bytes) -> bool:
    """Return whether bytes begin like a msgpack object: no text does."""
    return raw[:1] != b"" and raw[0] in _MAPS


def looks_like(head: bytes) -> bool:
    """Return whether a file that begins so can be a data set; JSON or msgpack, the names stand in it as they are."""
    is_either = is_packed(head) or head.lstrip().startswith(b"{")
    return is_either and b"hardware" in head and b"operation" in head and b'"operations"' not in head


def decoded(content: Content, kind: type[_T]) -> _T:
    """Return the JSON or msgpack of a file as `kind`; raises ValueError if it is something else."""
    if not is_packed(content.raw):
        return decode(content, kind)
    _check_packed(content.raw)
    try:
        return msgspec.msgpack.decode(content.raw, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"{error}") from None


def _check_packed(raw: bytes) -> None:
    """Raise ValueError for msgpack of so many objects and lists that it would fill the memory; each is a byte or more.

    Bytes of numbers may look like those that begin one: of random ones every eighth does.
    """
    if len(raw) > _MAX_PACKED_BYTES:
        raise ValueError(f"more than {_MAX_PACKED_BYTES >> 20} MiB of msgpack")
    if len(raw) - len(raw.translate(None, _BEGINS)) > _FREE_BEGINS + len(raw) // 5:
        raise ValueError("it holds far more objects and lists than a file of its size may")


def parse(content: Content) -> File:
    """Return a data set as it lies in its file; raises ValueError, with the place, where it is none."""
    found = decoded(content, File)
    solutions = (s for h in found.hardware.values() for o in h.operation.values() for s in o.solution.values())
    if sum(len(solution.timed_configs) for solution in solutions) > MAX_OBJECTS:
        raise ValueError(f"more than {MAX_OBJECTS} configs")
    return found


def measured(file: File) -> Iterator[Measured]:
    """Yield what a data set tells, shape by shape; raises ValueError where a shape makes no sense."""
    for device, hardware in file.hardware.items():
        canonical.scalar(device)
        for op, operation in hardware.operation.items():
            word(op, "an op")
            decision = GPU + op if operation.decision is UNSET else word(operation.decision, "a decision")
            for shape, solution in operation.solution.items():
                problem = problem_in(shape, op)
                yield Measured(decision, device, problem, solution, op, shape, operation, hardware, file)


def op_of(decision: str) -> str:
    """Return the op that a decision is about, as diode names it: the last word of torch.cuda.mm and torch.mm."""
    return decision.removeprefix(GPU).removeprefix("torch.")


def problem_in(shape: str | Mapping[str, Any], op: str) -> Problem:
    """Return the problem of a shape, given as JSON or as an object; raises ValueError for one that is none.

    Strides and the size of the output follow from the layout, which diode does not tell; they are no features.
    """
    told = canonical.decode(shape) if isinstance(shape, str) else shape
    if not isinstance(told, Mapping):
        raise ValueError(f"the shape {told!r:.100} is not an object with B, M, N, K and types")
    features: dict[str, Any] = {ours: _size(told, theirs) for ours, theirs in SIZES.items()}
    batch = _size(told, "B") if "B" in told else 1
    features |= {"b": batch} if op == "bmm" or batch != 1 else {}
    dtype = word(told.get("M_dtype"), "M_dtype of a shape")
    features["dtype"] = dtype
    for theirs in ("K_dtype", "out_dtype"):
        other = word(told.get(theirs, dtype), f"{theirs} of a shape")
        features |= {theirs.lower(): other} if other != dtype else {}
    return problem_of({**{name: value for name, value in told.items() if name not in _SHAPE}, **features})


def shape_of(problem: Problem, op: str) -> str:
    """Return the shape of a problem as diode spells it; raises ValueError without whole m, n and k and a dtype.

    Features that diode does not know are kept under their names.
    """
    sizes = {theirs: problem.get(ours) for ours, theirs in (*SIZES.items(), ("b", "B"))}
    sizes["B"] = 1 if sizes["B"] is None else sizes["B"]
    dtype = problem.get("dtype")
    if not all(isinstance(size, int) for size in sizes.values()) or not isinstance(dtype, str):
        raise ValueError(f"a shape has whole m, n and k and a dtype, and the problem of {op} is {problem}")
    batch, m, n, k = (int(sizes[name] or 0) for name in "BMNK")
    told = {
        "version": VERSION,
        "B": batch,
        "M": m,
        "M_dtype": dtype,
        "N": n,
        "K": k,
        "K_dtype": problem.get("k_dtype", dtype),
        "out_dtype": problem.get("out_dtype", dtype),
        "out_size": [batch, m, n],
        "out_stride": [m * n, n, 1],
    }
    known = {*SIZES, "b", "dtype", "k_dtype", "out_dtype"}
    return json.dumps({**told, **{name: value for name, value in problem.items() if name not in known}})


def config_in(raw: str | Mapping[str, Any], place: str) -> dict[str, Value]:
    """Return a config in our names, what is nobody's to choose left out; raises ValueError for what is none."""
    told = canonical.decode(raw) if isinstance(raw, str) else raw
    found = config_of(told, place)
    chosen = {_OURS.get(name, name): value for name, value in found.items() if name not in _GIVEN}
    if "kernel" not in chosen and "BLOCK_M" in chosen:
        chosen = {"kernel": "triton", **chosen}
    if not chosen:
        raise ValueError(f"{place} is a config without a parameter")
    return dict(sorted(chosen.items(), key=_rank))  # files differ in their order, and a config is known by its text


def _rank(item: tuple[str, object]) -> tuple[int, str]:
    return _ORDER.get(item[0], len(_ORDER)), item[0]


def raw_config(config: Config, problem: Problem, op: str) -> dict[str, Any]:
    """Return a config as diode writes it; whether K is even is worked out, and ATen keeps its name."""
    told = {PARAMS.get(name, name): raw_value(value) for name, value in config.items()}
    kernel = told.pop("kernel", "triton")
    block, k = config.get("BLOCK_K"), problem.get("k")
    is_even = isinstance(block, int) and isinstance(k, int) and block > 0 and k % block == 0
    given = {
        "name": f"{op}_config" if kernel == "triton" else str(kernel),
        "grid": 1,
        "EVEN_K": is_even,
        "ALLOW_TF32": False,
        "USE_FAST_ACCUM": False,
        "ACC_TYPE": "tl.float32",
        "version": VERSION,
    }
    return dict(sorted({**given, **told, **({} if kernel == "triton" else {"kernel": kernel})}.items()))


def _size(shape: Mapping[str, Any], name: str) -> int:
    size = shape.get(name)
    if type(size) is not int or size < 0:
        raise ValueError(f"{name}={size!r:.100} of a shape is not a whole number")
    return size
