"""Inductor's lookup table: for every product, by the types, sizes and strides of its operands, the templates to use."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tunewise.decision import Config, Problem, Value, canonical
from tunewise.eventlog import logger
from tunewise.formats.findings import Finding, problem_of, word
from tunewise.formats.operands import FEATURES, OPS, Operand, features_of, operands_of
from tunewise.formats.torn import Content, decode
from tunewise.formats.writing import Written, json_text

KERNEL, ATEN, TRITON, TMA = "kernel", "aten", "triton", "triton_tma"
TUNABLE = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M", "num_stages", "num_warps")
DECISION = "torch.cuda."
NAME = "lookup_table.json"

_TEMPLATE, _HASH, _EVEN = "template_id", "template_hash", "EVEN_K"
_WORDS = {"triton::mm": TRITON, "triton::bmm": TRITON, "triton::mm_persistent_tma": TMA}
_SCALED = ("addmm",)  # ops whose key names alpha and beta; problems are about both being 1
_SCALARS = "alpha=1&beta=1"
_NUMBERS = r"\[((?:-?\d{1,18}(?:, )?)*)\]"
_OPERAND = re.compile(rf"\(torch\.(\w{{1,40}}), {_NUMBERS}, {_NUMBERS}\)", re.ASCII)
_KEY = re.compile(r"(?:(?P<device>[^\n]{1,300})\+)?\((?P<operands>\(torch\..{1,2000})\)(?:\+(?P<scalars>[^+]{1,200}))?"
                  r"\+(?P<op>\w{1,60})", re.ASCII)  # fmt: skip
_MORE = "more"
_log = logger(__name__)


def kernel_of(template: str) -> str | None:
    """Return the kernel that a template of Inductor is in our configs: aten, triton, triton_tma; None for others."""
    return ATEN if template.startswith("aten::") else _WORDS.get(template)


def template_of(op: str, config: Config) -> str:
    """Return the template that a config of an op is of; raises ValueError where there is none."""
    base = "bmm" if op == "bmm" else "mm"
    known = {ATEN: f"aten::{op}", TRITON: f"triton::{base}", TMA: "triton::mm_persistent_tma"}
    if config.get(KERNEL) not in known or (config[KERNEL] == TMA and op == "bmm"):
        raise ValueError(f"{op} has no kernel {config.get(KERNEL)!r:.100}; there are {', '.join(known)}")
    return known[str(config[KERNEL])]


def config_of(template: str, options: Mapping[str, Any]) -> dict[str, Value] | None:
    """Return a template's options as a config of ours: the tunable ones alone; None for what we have no word for."""
    kernel = kernel_of(template)
    if kernel is None or kernel == ATEN:
        return None if kernel is None else {KERNEL: ATEN, **dict.fromkeys(TUNABLE, 0)}
    told = {name: options.get(name) for name in TUNABLE}
    if not all(type(value) is int and value > 0 for value in told.values()):
        return None
    return {KERNEL: kernel, **told}


def key_of(op: str, operands: Sequence[Operand], device: str = "") -> str:
    """Return the key that Inductor looks a product up by, on one device or, without its name, on any."""
    told = [f"(torch.{one.dtype}, {list(one.size)}, {list(one.stride)})" for one in operands]
    scalars = [_SCALARS] if op in _SCALED else []
    return "+".join([*([device] if device else []), f"({', '.join(told)})", *scalars, op])


def is_dynamic(problem: Mapping[str, Any]) -> bool:
    """Return whether the sizes of a problem may be others when the program runs."""
    return bool(problem.get("dynamic", 0))


def entry_of(op: str, config: Config, problem: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config as a line of the table.

    Inductor completes a line from another choice of the same product. What follows from a tunable option, and not from
    the product alone, must be in it: EVEN_K of another BLOCK_K would read past the end of a row. Where sizes may change
    after compiling, nothing is known to be even.
    """
    template = template_of(op, config)
    if config[KERNEL] == ATEN:
        return {_TEMPLATE: template}
    options = {name: config.get(name) for name in TUNABLE}
    for name, value in options.items():
        if type(value) is not int or value < 1:
            raise ValueError(f"{name}={value!r:.100} of a {config[KERNEL]} config is not a whole number from 1 on")
    is_even = not is_dynamic(problem) and int(problem["k"]) % int(config["BLOCK_K"]) == 0  # type: ignore[arg-type]
    return {_TEMPLATE: template, **options, _EVEN: is_even}


def entries_of(op: str, configs: Sequence[Config], problem: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return configs as the lines of one product, ATen's among them whatever they are.

    Raises ValueError where that says nothing: Inductor asks for ATen's addmm apart, by another key, so no line can
    keep its Triton templates away.
    """
    lines = [entry_of(op, config, problem) for config in configs]
    aten = {_TEMPLATE: f"aten::{op}"}
    if op in _SCALED:
        lines = [line for line in lines if line != aten]
        if not lines:
            raise ValueError(f"a lookup table cannot say that {op} is best left to ATen")
        return lines
    return lines if aten in lines else [*lines, aten]


def is_lookup_table(content: Content) -> bool:
    """Return whether a file is JSON whose first key is a product."""
    head = content.raw.lstrip()[:2500]
    return re.match(rb'\{\s*"(?:[^"\\]*\+)?\(\(torch\.', head) is not None


def read(content: Content) -> list[Finding]:
    """Return the first template listed for every product; what else is listed stays with it from file to file."""
    found = decode(content, dict[str, Any])
    return [_finding(key, lines) for key, lines in found.items()]


def write(findings: Sequence[Finding]) -> list[Written]:
    """Return one table of all findings that a table can tell, the others logged; raises ValueError for none."""
    table: dict[str, list[dict[str, Any]]] = {}
    untold: list[str] = []
    for finding in sorted(
        findings, key=lambda one: is_dynamic(one.problem)
    ):  # a key tells no difference, and what is safe for both is last
        try:
            op, key = _op_and_key(finding)
            table[key] = _lines(op, finding)
        except ValueError as error:
            untold.append(str(error))
    if not table:
        raise ValueError(untold[0])
    if untold:
        _log.warning("%d of %d problems are not in the lookup table: %s", len(untold), len(findings), untold[0])
    return [Written(NAME, json_text(table, indent=1))]


def _op_and_key(finding: Finding) -> tuple[str, str]:
    op = _op_of(finding.decision)
    if not set(finding.problem) <= set(FEATURES):
        raise ValueError(f"a lookup table knows the features {', '.join(FEATURES)}, and not all of {finding.problem}")
    return op, key_of(op, operands_of(op, finding.problem), finding.device)


def _lines(op: str, finding: Finding) -> list[dict[str, Any]]:
    lines = entries_of(op, [finding.config], finding.problem)
    if finding.extra.get(_HASH):
        lines[0] = {**lines[0], _HASH: finding.extra[_HASH]}
    more = [line for line in finding.extra.get(_MORE, ()) if line not in lines]
    return [lines[0], *more, *lines[1:]]


def _finding(key: str, lines: object) -> Finding:
    place = f"the key {key!r:.200}"
    device, op, told = _told(key, place)
    if not isinstance(lines, list) or not lines or not all(isinstance(line, dict) for line in lines):
        raise ValueError(f"{place} has no list of templates")
    first = lines[0]
    template = word(first.get(_TEMPLATE), f"{place}, {_TEMPLATE}")
    config = config_of(template, first)
    if config is None or template != template_of(op, config):
        raise ValueError(f"{place}: no config of {op} that we know is {canonical.encode(first):.300}")
    # A line that is not taken for even, though its hints are, was written for sizes that may change.
    is_safe = first.get(_EVEN) is False and int(told["k"]) % (int(config["BLOCK_K"]) or 1) == 0  # type: ignore[arg-type]
    problem = problem_of({**told, "dynamic": int(is_safe)})
    hashed = {_HASH: word(first[_HASH], f"{place}, {_HASH}")} if first.get(_HASH) is not None else {}
    aten = {_TEMPLATE: f"aten::{op}"}
    more = [line for line in lines[1:] if line != aten]
    return Finding(DECISION + op, problem, config, device=device, extra={**hashed, **({_MORE: more} if more else {})})


def _told(key: str, place: str) -> tuple[str, str, Problem]:
    """Return the device, the op and the problem that a key is about."""
    parts = _KEY.fullmatch(key)
    if parts is None or parts["op"] not in OPS:
        raise ValueError(f"{place} is not the types, sizes and strides of a product and one of {', '.join(OPS)}")
    op, device = parts["op"], parts["device"] or ""
    operands = [_operand(one) for one in _OPERAND.finditer(parts["operands"])]
    if len(operands) < 2:
        raise ValueError(f"{place} has {len(operands)} operands, and a product has two")
    problem = problem_of(features_of(op, operands))
    if key_of(op, operands_of(op, problem), device) != key:
        raise ValueError(f"{place} tells more than sizes and layouts without gaps, or other numbers than {_SCALARS}")
    return device, op, problem


def _operand(found: re.Match[str]) -> Operand:
    size, stride = (tuple(int(number) for number in text.split(", ") if number) for text in found.groups()[1:])
    if len(size) != len(stride) or not size:
        raise ValueError(f"{found[0]!r:.100} has {len(size)} sizes and {len(stride)} strides")
    return Operand(found[1], size, stride)


def _op_of(decision: str) -> str:
    op = decision.removeprefix(DECISION)
    if op not in OPS:
        names = ", ".join(DECISION + one for one in OPS)
        raise ValueError(f"a lookup table is about {names}, and not about {decision!r:.100}")
    return op
