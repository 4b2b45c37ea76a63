"""vLLM's and SGLang's tuned kernels: a file for each shape and device, named by them, with a config for each M."""

import re
from collections.abc import Sequence
from typing import Any

from tunewise.decision import Feature
from tunewise.formats.findings import Finding, config_of, problem_of, raw_value, word
from tunewise.formats.torn import Content, decode
from tunewise.formats.writing import Written, json_text

KEY = "M"
_DEVICE, _VERSION = "device_name", "triton_version"
_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)
_PAIRS = re.compile(r"(?:^|,)(\w+)=((?:\[[^\]]*\]|[^,\[])*)", re.ASCII)
_FOLDER = re.compile(r"triton_(\d+(?:_\d+)*)", re.ASCII)
# The order their file names are written in.
_FIRST = ("E", "inter_size", "hidden_size", "N", "K", "headdim", "dstate")
_LAST = ("dtype", "block_shape")
_DOWN, _DOWN_SUFFIX = "down_moe", "_down"  # how SGLang marks the second of a layer's two kernels
_UNSAFE = re.compile(r"[/\\\0\n]")
_MAX_NAME = 250  # bytes that a file system takes


def is_tuned(content: Content) -> bool:
    """Return whether a file is named by its shape and device, as vLLM looks it up."""
    return f"{_DEVICE}=" in content.path.name and content.raw.lstrip().startswith(b"{")


def read(content: Content) -> list[Finding]:
    """Return the config for each M; the name of the file tells the rest of the problem and the device.

    A name that ends in _down, as SGLang's do for the down projection, has the feature down_moe=True. The file does
    not say which kernel it is for: findings have no decision yet.
    """
    shape, device = _told(content.path.name)
    found = decode(content, dict[str, Any])
    version = found.get(_VERSION, _folder(content))
    versions = {"triton": word(version, _VERSION)} if version is not None else {}
    listed = {key: config for key, config in found.items() if key != _VERSION}
    if not listed:
        raise ValueError(f"it has no config for any {KEY}")
    return [
        Finding("", problem_of({**shape, KEY: _number(key)}), config_of(config, f"{KEY}={key}"), None, device, versions)
        for key, config in listed.items()
    ]


def write(findings: Sequence[Finding]) -> list[Written]:
    """Return a file for every shape and device, named so that vLLM finds it; raises ValueError without M.

    A file has one version of Triton: where its configs are of several, it names none.
    """
    named: dict[str, list[Finding]] = {}
    for finding in findings:
        if not isinstance(finding.problem.get(KEY), int):
            raise ValueError(f"a vLLM file has a config for each {KEY}, and the problem {finding.problem} has none")
        named.setdefault(_name(finding), []).append(finding)
    return [Written(name, json_text(_body(group), indent=4)) for name, group in named.items()]


def _body(group: Sequence[Finding]) -> dict[str, Any]:
    versions = {finding.versions.get("triton") for finding in group}
    version = versions.pop() if len(versions) == 1 else None
    ordered = sorted(group, key=lambda finding: int(finding.problem[KEY]))
    listed = {str(one.problem[KEY]): {n: raw_value(v) for n, v in one.config.items()} for one in ordered}
    return ({_VERSION: version} if version is not None else {}) | listed


def _told(name: str) -> tuple[dict[str, Feature], str]:
    full = name.removesuffix(".gz").removesuffix(".json")
    stem = full.removesuffix(_DOWN_SUFFIX)
    pairs = list(_PAIRS.finditer(stem))
    if not pairs or sum(len(pair[0]) for pair in pairs) != len(stem):
        raise ValueError("its name is not E=8,N=14336,device_name=NVIDIA_H100.json or the like")
    told: dict[str, Feature] = {pair[1]: int(pair[2]) if _NUMBER.fullmatch(pair[2]) else pair[2] for pair in pairs}
    told |= {_DOWN: str(True)} if stem != full else {}
    device = str(told.pop(_DEVICE, "")).replace("_", " ")
    if KEY in told or not device:
        raise ValueError(f"its name tells {KEY if KEY in told else f'no {_DEVICE}'}")
    return told, device


def _folder(content: Content) -> str | None:
    """Return the version of Triton that the directory is named after, as SGLang sorts its files."""
    found = _FOLDER.fullmatch(content.path.parent.name)
    return found[1].replace("_", ".") if found else None


def _number(key: str) -> int:
    if not _NUMBER.fullmatch(key):
        raise ValueError(f"the key {key!r:.100} is not a number of rows {KEY}")
    return int(key)


def _name(finding: Finding) -> str:
    problem = finding.problem
    is_down = problem.get(_DOWN) == str(True)
    rest = [name for name in problem if name not in (*_FIRST, *_LAST, KEY) and not (is_down and name == _DOWN)]
    words = [*_FIRST, *(name for name in rest if name in problem.numeric)]
    after = [*_LAST, *(name for name in rest if name not in problem.numeric)]
    pairs = [f"{name}={problem[name]}" for name in words if name in problem]
    pairs += [f"{_DEVICE}={finding.device.replace(' ', '_')}"]
    told = ",".join(pairs + [f"{name}={problem[name]}" for name in after if name in problem])
    name = f"{told}{_DOWN_SUFFIX if is_down else ''}.json"
    if _UNSAFE.search(name) or len(name.encode()) > _MAX_NAME or not _is_told(name, finding):
        raise ValueError(f"no vLLM file can be named after {problem} on the device {finding.device!r}")
    return name


def _is_told(name: str, finding: Finding) -> bool:
    """Return whether a name tells a problem and a device again: a comma or a bracket in a word may be in the way."""
    try:
        shape, device = _told(name)
    except ValueError:
        return False
    return device == finding.device and {**shape, KEY: finding.problem[KEY]} == dict(finding.problem)
