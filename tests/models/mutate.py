"""Run in a process of its own: damage model files and generated modules, load them, and report what happened.

An audit hook counts everything that could be code at work: imports, exec, processes, sockets, files opened to write.
Memory and processor time are limited from outside, so that a bomb ends the process.
Usage: python mutate.py models|sources COUNT SEED DIRECTORY; prints JSON.
"""

import json
import random
import resource
import string
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tunewise.codegen import python_source
from tunewise.errors import InvalidModel
from tunewise.models import Model, Number, parse
from tunewise.models.net import Net
from tunewise.models.source import parse_source

STRANGE: list[Any] = [
    *(None, True, -1, 0, 1, 3, 10**18, 10**25, -(10**18), 0.5, -0.0, 1e308, -1e308, 5e-324),
    *("", "x", "m", "\0", "a" * 2000, "tree", "leaf", "split", "__import__('os').system('touch PWN')"),
    *([], {}, [[]], [0], [0, 0], [-1], [[[[[[[[]]]]]]]]),
    *({"type": "split"}, {"type": "leaf"}, {"op": "ratio", "of": [0, 0]}),
]
TEXTS = ["import os", "__import__('os')", "().__class__", "exec('1')", "lambda: 0", "while True: pass", "0" * 50, "[[["]
SUSPICIOUS = (
    "exec",
    "import",
    "compile",
    "open",
    "subprocess",
    "socket",
    "os.",
    "pickle",
    "marshal",
    "ctypes",
    "shutil",
)


class Watch:
    """Counts suspicious events while it is on."""

    def __init__(self) -> None:
        self.is_on = False
        self.events: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if self.is_on and event.startswith(SUSPICIOUS):
            self.events.append(f"{event} {args[:1]!r}"[:200])


def mutate_bytes(raw: bytes, rng: random.Random) -> bytes:
    """Return bytes with a few flipped, cut out, doubled, put in or cut off."""
    data = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        place, span = rng.randrange(len(data) or 1), rng.randrange(1, 40)
        match rng.randrange(6):
            case 0 if data:
                data[place] = rng.randrange(256)
            case 1:
                del data[place : place + span]
            case 2:
                data[place:place] = data[place : place + span]
            case 3:
                data[place:place] = rng.choice(TEXTS).encode()
            case 4 if rng.random() < 0.3:
                del data[place:]
            case _ if data:
                data[place : place + 1] = rng.choice(string.digits + '"[]{},:.-e').encode()
    return bytes(data)


def mutate_json(raw: bytes, rng: random.Random) -> bytes:
    """Return JSON with a few values replaced, removed, doubled or exchanged."""
    document = json.loads(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        holder, key = rng.choice(list(_places(document)))
        match rng.randrange(5):
            case 0:
                holder[key] = rng.choice(STRANGE)
            case 1:
                del holder[key]
            case 2 if isinstance(holder, list):
                holder.insert(key, holder[key])
            case 3 if isinstance(holder[key], int | float):
                holder[key] = rng.choice([holder[key] + 1, -holder[key], holder[key] * 1e9, rng.randrange(-2, 9)])
            case _:
                other, place = rng.choice(list(_places(document)))
                holder[key] = json.loads(json.dumps(other[place]))
    return json.dumps(document).encode()


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield value, key
        yield from _places(item)


def try_model(raw: bytes, rng: random.Random) -> bool:
    """Return whether damaged text is a model; then every answer it gives must be one of its choices."""
    try:
        model = parse(raw)
    except InvalidModel:
        return False
    for features in questions(model, rng):
        numbers = model.rank(features)
        assert len(set(numbers)) == len(numbers)
        assert all(0 <= number < len(model.choices) for number in numbers)
    return True


def questions(model: Model, rng: random.Random) -> list[dict[str, Any]]:
    """Return some problems, and one within all bounds."""
    columns = model.columns.problem
    inside = {column.name: column.low if isinstance(column, Number) else column.words[0] for column in columns}
    strange = [{column.name: rng.choice([0, 2.5, 64, 1e300, *STRANGE]) for column in columns} for _ in range(3)]
    return [inside, *strange]


def differs(raw: bytes, rng: random.Random) -> bool:
    """Return whether the code of a damaged model that still loads answers otherwise than the model."""
    model = parse(raw)
    if isinstance(model.body, Net):
        return False
    code = parse_source(python_source(model))
    asked = questions(model, rng)
    return any(code.rank(f) != [model.choices[number] for number in model.rank(f)] for f in asked)


def try_source(raw: bytes, rng: random.Random) -> bool:
    """Return whether damaged text is a generated module; then every answer it gives must be one of its choices."""
    try:
        code = parse_source(raw.decode("latin-1"))
    except InvalidModel:
        return False
    for value in (1, 64.0, "x", 10**400, None):
        for config in code.rank(dict.fromkeys(code.features, value)):
            assert config in code.choices
    return True


def main(kind: str, count: str, seed: str, directory: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (400, 400))
    rng = random.Random(int(seed))
    seeds = [path.read_bytes() for path in sorted(Path(directory).iterdir())]
    attempt: Callable[[bytes, random.Random], bool] = try_model if kind == "models" else try_source
    for raw in seeds:
        assert attempt(raw, rng), "the undamaged file must load"
    damage = (mutate_bytes, mutate_json) if kind == "models" else (mutate_bytes,)
    mutants = [rng.choice(damage)(rng.choice(seeds), rng) for _ in range(int(count))]
    watch, loaded, faults = Watch(), [], []
    for raw in mutants:
        watch.is_on = True
        try:
            loaded += [raw] if attempt(raw, rng) else []
        except Exception as error:
            faults.append(f"{type(error).__name__}: {error}: {raw[:2000]!r}")
        watch.is_on = False
    if kind == "models":
        faults += [f"code and model differ: {raw[:2000]!r}" for raw in loaded if differs(raw, rng)]
    print(json.dumps({"loaded": len(loaded), "faults": faults[:5], "events": sorted(set(watch.events))[:20]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
