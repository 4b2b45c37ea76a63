"""Plan files of a fleet: TOML or JSON, checked word by word, with targets and problems looked up beside the file."""

import difflib
import io
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tunewise.cli.problems import Features, check_names, read
from tunewise.cli.targets import find
from tunewise.decision import Problem
from tunewise.decision.draws import grid
from tunewise.decision.regular import open_regular
from tunewise.errors import InvalidFile, InvalidProblem, NotFound, TunewiseError
from tunewise.fleet.doing import table
from tunewise.fleet.plans import BUDGETS, KINDS, MAX_PROBLEMS, FleetPlan, Work, written
from tunewise.fleet.rehearsal import Declared, Rehearsed, Target
from tunewise.session import Decision
from tunewise.session.context import current_store

_MAX_BYTES = 8 << 20
_MOST_CONFIGS, _MOST_DEVICES = 1_000_000, 256
_KEYS = ("name", "kind", "budget", "devices", "seed", "work")
_WORK_KEYS = ("target", "problems", "grid", "replay", "pause_s")


def read_plan(path: Path) -> FleetPlan:
    """Return the plan of a file, its targets found and its problems checked; raises InvalidFile or NotFound."""
    said = _parsed(path)
    _check_keys(str(path), said, _KEYS)
    kind = said.get("kind")
    if kind not in KINDS:
        close = difflib.get_close_matches(str(kind), KINDS, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"it is one of {', '.join(KINDS)}"
        raise InvalidFile(f"{path}: kind = {kind!r} is no kind of plan; {hint}")
    budget = _whole(path, said, "budget", BUDGETS[kind], 1, _MOST_CONFIGS)
    seed = _whole(path, said, "seed", 0, 0, 2**63 - 1)
    devices = _whole(path, said, "devices", 1, 1, _MOST_DEVICES)
    works = said.get("work")
    if not isinstance(works, list) or not works:
        raise InvalidFile(f"{path} says nothing to do: give it a table [[work]] with a target and its problems")
    made = [_work(f"{path}: work {number}", path, kind, work, budget, seed) for number, work in enumerate(works, 1)]
    if sum(len(work.problems) for work in made) > MAX_PROBLEMS:
        raise InvalidFile(f"{path} names more than {MAX_PROBLEMS} problems; split it into several plans")
    plan = FleetPlan(
        name=_name(path, said),
        kind=kind,
        budget=budget,
        work=tuple(made),
        directory=str(path.resolve().parent),
        devices=devices,
        seed=seed,
    )
    if len(written(plan)) > _MAX_BYTES:
        raise InvalidFile(f"{path} comes to more than {_MAX_BYTES >> 20} MB; split it into several plans")
    return plan


def _parsed(path: Path) -> Mapping[str, Any]:
    try:
        with io.TextIOWrapper(open_regular(path), "utf-8-sig") as stream:
            text = stream.read(_MAX_BYTES + 1)
        if len(text) > _MAX_BYTES:
            raise InvalidFile(f"{path} is larger than the {_MAX_BYTES >> 20} MB a plan may have")
    except FileNotFoundError:
        raise NotFound(
            f'there is no plan {str(path)!r}; a plan is a TOML file with kind = "tune" and [[work]]'
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFile(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        said = msgspec.json.decode(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidFile(f"{path} is neither TOML nor JSON: {error}") from None
    if not isinstance(said, dict):
        raise InvalidFile(f"{path} holds a {type(said).__name__}, not a plan")
    return said


def _check_keys(where: str, said: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in said:
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
            raise InvalidFile(f"{where} has no key {key!r}; {hint}")


def _whole(path: Path, said: Mapping[str, Any], key: str, otherwise: int, low: int, high: int) -> int:
    value = said.get(key, otherwise)
    if type(value) is not int or not low <= value <= high:
        raise InvalidFile(f"{path}: {key} = {value!r} is not a whole number from {low} to {high}")
    return value


def _name(path: Path, said: Mapping[str, Any]) -> str:
    name = said.get("name", path.stem)
    if not isinstance(name, str) or not name.strip() or len(name) > 200:
        raise InvalidFile(f"{path}: name = {name!r} is not a word of 1 to 200 characters")
    return name


def _work(where: str, path: Path, kind: str, said: Any, budget: int, seed: int) -> Work:
    if not isinstance(said, dict):
        raise InvalidFile(f"{where} is {said!r}, not a table; write [[work]]")
    _check_keys(where, said, _WORK_KEYS)
    target, replay, pause_s = said.get("target", ""), said.get("replay", ""), said.get("pause_s", 0.0)
    if not isinstance(target, str) or not isinstance(replay, str) or bool(target) == bool(replay):
        raise InvalidFile(f'{where} needs either target = "file.py:name" or replay = "recording.json"')
    if isinstance(pause_s, bool) or not isinstance(pause_s, int | float) or not 0 <= pause_s <= 3600:
        raise InvalidFile(f"{where}: pause_s = {pause_s!r} is not a number of seconds from 0 to 3600")
    if "pause_s" in said and not replay:
        raise InvalidFile(f"{where}: pause_s is for a replay; {target} takes the time it takes")
    replay = str((path.resolve().parent / replay).resolve()) if replay else ""
    target = _absolute(target, path.resolve().parent)
    try:
        found = Rehearsed(Path(replay), float(pause_s)) if replay else find([target])[0]
        problems = _problems(where, path, said, kind, found)
    except (TunewiseError, OSError) as error:
        raise (
            type(error)(f"{where}: {error}") if isinstance(error, TunewiseError) else InvalidFile(f"{where}: {error}")
        ) from None
    measured: Target = found if isinstance(found, Rehearsed) else Declared(found)
    size = len(table(measured, budget, seed)) if kind == "collect" else 0
    return Work(target, tuple(problems), replay, float(pause_s), size)


def _absolute(target: str, beside: Path) -> str:
    """Return a target whose file is looked for beside the plan, wherever the command is run."""
    place, colon, name = target.rpartition(":")
    place, name = (place, f":{name}") if colon else (target, "")
    if not place.endswith(".py"):
        return target
    return f"{(beside / place).resolve()}{name}"


def _problems(
    where: str, path: Path, said: Mapping[str, Any], kind: str, found: Decision | Rehearsed
) -> list[dict[str, Any]]:
    given = [*_given(where, path, said.get("problems")), *_gridded(where, said.get("grid"))]
    if isinstance(found, Rehearsed):
        return _unique([dict(Problem(problem)) for problem in given] or [{}])
    if not given and kind == "verify":
        given = [dict(subject.problem) for subject in current_store().subjects(found.name)]
        if not given:
            raise NotFound(f"no machine has tuned {found.name} in this store, so there is nothing to verify")
    if not given:
        raise InvalidFile(
            'it names no problems: give problems = [{m = 64}], problems = "file.csv" or grid = {m = [64]}'
        )
    check_names(found, given)
    return _unique([dict(found.problem(problem)) for problem in given])


def _given(where: str, path: Path, said: Any) -> list[Features]:
    if said is None:
        return []
    if isinstance(said, str):
        return read(path.resolve().parent / said)
    if not isinstance(said, list):
        raise InvalidFile(
            f'problems = {said!r} is neither a list of tables nor the name of a file such as "shapes.csv"'
        )
    try:
        return [dict(Problem(problem)) for problem in said]
    except InvalidProblem as error:
        raise InvalidFile(f"problems: {error}") from None


def _gridded(where: str, said: Any) -> list[Features]:
    if said is None:
        return []
    if not isinstance(said, dict) or not all(isinstance(values, list) and values for values in said.values()):
        raise InvalidFile(f"grid = {said!r} is not a table of lists, such as {{m = [64, 128], n = [64]}}")
    number = 1
    for values in said.values():
        number *= len(values)
    if number > MAX_PROBLEMS:
        raise InvalidFile(f"grid has {number} combinations, more than the {MAX_PROBLEMS} a plan may have")
    return [dict(problem) for problem in grid(said)]


def _unique(problems: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({Problem(problem): problem for problem in problems}.values())
