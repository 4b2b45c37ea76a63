"""Problems and configs as people write them: `m=256,dtype=float32` on the command line, or a CSV or JSON file."""

import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from tunewise.decision import Problem
from tunewise.errors import InvalidFile, InvalidProblem, NotFound
from tunewise.formats.torn import check_weight
from tunewise.session import Decision

Features = Mapping[str, Any]

_PAIR = re.compile(r"""\s*([^=,\s]+)\s*=\s*("[^"]*"|'[^']*'|[^,"']*?)\s*(?:,|$)""")
_WHOLE = re.compile(r"[+-]?\d{1,4000}", re.ASCII)  # Python does not read longer ones; as a number it is out of range
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MAX_BYTES = 64 << 20
_MOST_UNKNOWN = 16  # features guessed before we stop asking what else is missing


class Pairs(click.ParamType[dict[str, Any]]):
    """`name=value,name=value` as a mapping: whole numbers, numbers, true and false, and words, quoted or not."""

    name = "name=value,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        """Return the mapping; a text that is none is a usage error."""
        return value if isinstance(value, dict) else self._parsed(value, param, ctx)

    def _parsed(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        found: dict[str, Any] = {}
        place = 0
        while place < len(text) or not found:
            pair = _PAIR.match(text, place)
            if pair is None or not pair[2]:
                self.fail(f"{text!r} is not name=value,name=value, such as m=256,n=256,dtype=float32", param, ctx)
            if pair[1] in found:
                self.fail(f"{text!r} gives {pair[1]} twice", param, ctx)
            found[pair[1]] = value_of(pair[2])
            place = pair.end()
        return found


def value_of(text: str) -> int | float | bool | str:
    """Return a value as written: a number where it is one, true or false, otherwise a word without its quotes."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if _WHOLE.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    return {"true": True, "false": False}.get(text.lower(), text)


def problem_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb `--problem`, any number of times, and `--problems FILE`."""
    file = click.Path(dir_okay=False, path_type=Path)
    verb = click.option("--problems", "file", type=file, help="CSV with a header, JSON list, or JSON lines.")(verb)
    return click.option(
        "--problem", "given", type=Pairs(), multiple=True, help="Features, such as m=256,n=256,k=64; repeatable."
    )(verb)


def gather(given: Sequence[Features], file: Path | None) -> list[Features]:
    """Return the problems of the command line and then those of the file."""
    return [*given, *(read(file) if file is not None else ())]


def read(path: Path) -> list[Features]:
    """Return the problems in a CSV file with a header, a JSON list of objects, or JSON lines; raises InvalidFile."""
    try:
        with path.open(encoding="utf-8-sig") as stream:  # a pipe is read too, as in --problems <(...)
            text = stream.read(_MAX_BYTES + 1)
        if len(text) > _MAX_BYTES:
            raise InvalidFile(f"{path} is larger than the {_MAX_BYTES >> 20} MB a file of problems may have")
    except FileNotFoundError:
        raise NotFound(f"there is no file {str(path)!r}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFile(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    rows = _json(path, text) if text.lstrip()[:1] in ("[", "{") else _csv(path, text)
    if not rows:
        raise InvalidFile(
            f"{path} holds no problems: a CSV file needs a header such as m,n,k and a row for each problem, "
            'JSON a list of objects such as [{"m": 64}]'
        )
    return [_checked(where, row) for where, row in rows]


def check_names(decision: Decision, problems: Iterable[Features]) -> None:
    """Raise InvalidProblem, naming the features expected, if a problem has too few or too many."""
    expected: list[str] | None = None
    for problem in problems:
        if expected is None:
            expected = expected_names(decision, problem)
        unknown = [name for name in problem if name not in expected] if expected else []
        missing = [name for name in expected or () if name not in problem]
        if unknown or missing:
            faults = [f"does not know {', '.join(unknown)}"] if unknown else []
            faults += [f"misses {', '.join(missing)}"] if missing else []
            raise InvalidProblem(f"{decision.name} {' and '.join(faults)} in {_fitting(problem, expected or [])}")


def expected_names(decision: Decision, like: Features) -> list[str] | None:
    """Return the features a decision knows, or None if nothing tells.

    Arguments are made for a problem like the one given, with what is missing guessed, and asked for their features.
    """
    guess = dict(like)
    made = _made(decision, guess)
    if made is None or decision.features is None:
        told = list(guess) if made is not None or len(guess) > len(like) else None
        return _remembered_names(decision.name) or told
    try:
        features = decision.features(*made)
    except Exception:  # whatever is wrong with the user's code shows when it is used
        return None
    return list(decision.problem(features))


def _made(decision: Decision, guess: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return arguments for a problem, adding to it what `inputs` asks for in vain; None if that does not help."""
    for _ in range(_MOST_UNKNOWN if decision.inputs is not None else 0):
        try:
            made = decision.inputs(Problem(guess), 0)  # type: ignore[misc]
            return made if isinstance(made, tuple) else (made,)
        except KeyError as error:
            name = str(error.args[0]) if error.args else ""
            if not name or name in guess:
                return None
            guess[name] = 8
        except Exception:  # it does not take these values; when it is used it says why
            return None
    return None


def _remembered_names(name: str) -> list[str]:
    from tunewise.session.context import current_store

    subjects = current_store().subjects(name, last=1)
    return list(subjects[-1].problem) if subjects else []


def _fitting(problem: Features, expected: Sequence[str]) -> str:
    shown = ",".join(f"{feature}={value}" for feature, value in problem.items()) or "without features"
    example = ",".join(f"{feature}={problem.get(feature, '...')}" for feature in expected)
    return f"the problem {shown}; it needs --problem {example}"


def _csv(path: Path, text: str) -> list[tuple[str, Features]]:
    lines = list(csv.reader(text.splitlines(), skipinitialspace=True))
    header = [name.strip() for name in lines[0]] if lines else []
    if not all(header) or len(set(header)) != len(header):
        raise InvalidFile(f"{path}:1 is not a header of different names, such as m,n,k")
    rows: list[tuple[str, Features]] = []
    for number, cells in enumerate(lines[1:], 2):
        if not cells:
            continue
        if len(cells) != len(header):
            raise InvalidFile(f"{path}:{number} has {len(cells)} cells and the header {len(header)}")
        values = (value_of(cell.strip()) for cell in cells)
        rows.append((f"{path}:{number}", dict(zip(header, values, strict=True))))
    return rows


def _json(path: Path, text: str) -> list[tuple[str, Features]]:
    try:
        check_weight(text.encode())
    except ValueError as error:
        raise InvalidFile(f"{path} is refused: {error}") from None
    try:
        if text.lstrip().startswith("["):
            items = msgspec.json.decode(text)
            return [(f"{path}, problem {place}", item) for place, item in enumerate(items, 1)]
        lines = ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())
        return [(f"{path}:{number}", _object(path, number, line)) for number, line in lines]
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidFile(f"{path} is not a JSON list of objects: {error}") from None


def _object(path: Path, number: int, line: str) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidFile(
            f"{path}:{number} is not a JSON object: {error}; a file holds one object a line, or a list of them"
        ) from None


def _checked(where: str, row: object) -> Features:
    try:
        return dict(Problem(row))  # type: ignore[arg-type]
    except InvalidProblem as error:
        raise InvalidFile(f"{where}: {error}") from None
