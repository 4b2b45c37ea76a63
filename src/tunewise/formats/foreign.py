"""Others' files, all of them: one line a format says how it is known, read and written."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tunewise.errors import InvalidData, InvalidFile, NotFound
from tunewise.formats import (
    diode,
    diode_findings,
    diode_shapes,
    helionbest,
    helionlog,
    inductortable,
    kerneltuner_findings,
    t4_findings,
    tritoncache,
    tunable,
    vllm,
)
from tunewise.formats.findings import Finding
from tunewise.formats.outline import has
from tunewise.formats.torn import Content, load, whole_lines
from tunewise.formats.writing import Written


@dataclass(frozen=True, slots=True)
class Format:
    """One format: `name` is what `--format` takes, `about` what people call a file of it.

    Files of winners tell which config to use, and become a table; others tell what was measured. With `names_files`,
    the name of a file is a part of what it says, so that it can only be written into a directory. With `has_lines`,
    every line is one more thing that it tells, so that a last one that was never ended can be left out. `measured_by`
    is who measured, where that is not the name: two forms of one tool's files tell the same.
    """

    name: str
    about: str
    knows: Callable[[Content], bool]
    read: Callable[[Content], list[Finding]]
    write: Callable[[Sequence[Finding]], list[Written]]
    tells_winners: bool = False
    names_files: bool = False
    has_lines: bool = False
    measured_by: str = ""

    @property
    def tool(self) -> str:
        """Who measured what a file of it tells."""
        return self.measured_by or self.name


FORMATS: tuple[Format, ...] = (
    Format("vllm", "vLLM tuned config", vllm.is_tuned, vllm.read, vllm.write, True, True),
    Format("tunable", "torch.cuda.tunable result", tunable.is_results, tunable.read, tunable.write, True, False, True),
    Format("triton", "Triton autotuning cache", has("configs_timings"), tritoncache.read, tritoncache.write),
    Format("kernel-tuner", "Kernel Tuner cache", has("cache"), kerneltuner_findings.read, kerneltuner_findings.write),
    Format("t4", "T4 results file", has("results"), t4_findings.read, t4_findings.write),
    Format(
        "helion-log",
        "Helion autotuning log",
        helionlog.is_csv,
        helionlog.read_csv,
        helionlog.write_csv,
        has_lines=True,
    ),
    Format(
        "helion-trace",
        "Helion autotuning trace",
        helionlog.is_trace,
        helionlog.read_trace,
        helionlog.write_trace,
        has_lines=True,
    ),
    Format("diode", "diode data set", diode.is_json, diode_findings.read, diode_findings.write_json),
    Format(
        "diode-msgpack",
        "diode data set",
        diode.is_msgpack,
        diode_findings.read,
        diode_findings.write_msgpack,
        measured_by="diode",
    ),
    Format(
        "diode-solution",
        "diode solution file",
        has("configs"),
        diode_shapes.read_winners,
        diode_shapes.write_winners,
        True,
    ),
    Format("helion-best", "Helion .best_config", has("config"), helionbest.read, helionbest.write, True),
    Format(
        "inductor-table",
        "lookup table of Inductor",
        inductortable.is_lookup_table,
        inductortable.read,
        inductortable.write,
        True,
    ),
)


@dataclass(frozen=True, slots=True)
class Foreign:
    """What a file of others tells: its format, its findings in their order, and a remark on what is missing."""

    path: Path
    format: Format
    findings: tuple[Finding, ...]
    remark: str = ""


def named(name: str) -> Format:
    """Return a format by its name; raises NotFound for any other."""
    for one in FORMATS:
        if one.name == name:
            return one
    raise NotFound(f"there is no format {name!r}; there are {', '.join(one.name for one in FORMATS)}")


def read(path: Path | str, name: str | None = None) -> Foreign:
    """Return what a file tells, plain or gzip, in a named format or in the one that it looks like.

    Raises NotFound where there is no such file, and InvalidFile, with the place, where it is not of the format.
    """
    content = load(Path(path))
    chosen = named(name) if name is not None else _recognised(content)
    try:
        found, is_cut = _told(content, chosen)
    except (ValueError, RecursionError) as error:
        raise InvalidFile(f"{path} is no sound {chosen.about}: {error}") from None
    return Foreign(content.path, chosen, found, _remark(found, chosen, is_cut))


def write(findings: Sequence[Finding], name: str) -> list[Written]:
    """Return findings as files of a format; raises InvalidData where it cannot say what they tell."""
    chosen = named(name)
    if not findings:
        raise InvalidData(f"there is nothing to write as a {chosen.about}")
    try:
        return chosen.write(findings)
    except ValueError as error:
        raise InvalidData(f"no {chosen.about} can be written: {error}") from None


def _told(content: Content, chosen: Format) -> tuple[tuple[Finding, ...], bool]:
    """Return the findings of a file and whether its end is missing; a torn last line is left out."""
    try:
        return _some(chosen.read(content)), content.is_cut
    except ValueError:
        whole = whole_lines(content) if chosen.has_lines else None
        if whole is not None:
            with suppress(ValueError):  # then the torn line is not what is wrong: the first error tells
                return _some(chosen.read(whole)), True
        raise


def _some(found: Sequence[Finding]) -> tuple[Finding, ...]:
    if not found:
        raise ValueError("it holds no config")
    return tuple(found)


def _remark(found: Sequence[Finding], chosen: Format, is_cut: bool) -> str:
    untold = 0 if chosen.tells_winners else sum(one.outcome is None for one in found)
    told = [f"ends early; {len(found)} configs were read"] if is_cut else []
    told += [f"tells neither a time nor a failure of {untold} of {len(found)} configs"] if untold else []
    return " and ".join(told)


def _recognised(content: Content) -> Format:
    for one in FORMATS:
        if one.knows(content):
            return one
    raise InvalidFile(f"{content.path} is of no format we know: {', '.join(one.name for one in FORMATS)}")
