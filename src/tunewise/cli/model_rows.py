"""Models as rows of a list: those that ship, those of packages at home, and those that installed packages offer."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from tunewise import workloads
from tunewise.decision import Environment, Problem, detect, environment
from tunewise.deploy.inductor import torchside
from tunewise.deploy.inductor.learning import CPU_DECISIONS
from tunewise.deploy.inductor.problems import environment_here
from tunewise.errors import MissingPart, NotFound, TunewiseError
from tunewise.heuristics.packages import Package, offered
from tunewise.heuristics.shipped import Shipped, shipped
from tunewise.session.packages import installed

_LIBRARY = "library."
_WAYS = {"installed": "activate", "available": "install"}


def rows() -> list[dict[str, Any]]:
    """Return a row for every model: its name, state, decision, and why it does not answer here, or `answers`."""
    found = [_of_shipped(one) for one in shipped()]
    at_home = installed()
    for one in at_home:
        found += _of_package(one.name, "active" if one.is_active else "installed", one.package)
    for name, offer in offered():
        if name not in {one.name for one in at_home}:
            found += _of_package(name, "available", lambda offer=offer: _sound(offer))  # type: ignore[misc]
    return found


def shown_package(package: Package) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the manifest of a package as plain values, and as facts with what they say."""
    manifest = package.manifest
    told = msgspec.to_builtins(manifest)
    here = {
        entry.file: package.why_elsewhere(entry, facts_of(entry.decision, entry.fence)) for entry in manifest.models
    }
    fence = ", ".join(f"{name}={value}" for name, value in manifest.fence.items())
    facts = [
        ("version", manifest.version),
        ("about", manifest.about or "nothing is told"),
        ("only for", fence or "what its models are for"),
        ("requires", ", ".join(f"{library} {wanted}" for library, wanted in manifest.requires.items()) or "nothing"),
        ("files", ", ".join(manifest.files)),
        ("place", package.where),
        *((f"{file} here", reason or "may answer") for file, reason in here.items()),
    ]
    return {**told, "where": package.where, "here": here}, facts


def facts_of(decision: str, fence: Mapping[str, object]) -> dict[str, object]:
    """Return what a fence is compared with, for a decision here and now."""
    return {part.name: part.value for part in _environment(decision, fence).parts}


def _environment(decision: str, fence: Mapping[str, object]) -> Environment:
    try:
        # Asking torch takes seconds: that is worth it only where the CPU is the right one.
        if decision in CPU_DECISIONS and fence.get("hardware.name") == detect().name:
            return environment_here(torchside.threads())
        return workloads.find(decision).subject(Problem({})).environment
    except (NotFound, MissingPart):  # its compiler or library is not here: the hardware can be told all the same
        libraries = [name.removeprefix(_LIBRARY) for name in fence if name.startswith(_LIBRARY)]
        return environment(detect(), libraries=libraries)


def _of_shipped(one: Shipped) -> dict[str, Any]:
    model = one.model()
    return {
        "name": one.name,
        "state": "ships",
        "decision": model.card.decision,
        "learner": model.card.learner,
        "created": model.card.created,
        "choices": len(model.choices),
        "regret": model.card.scores.get("regret"),
        "here": one.why_elsewhere(facts_of(model.card.decision, model.card.fence)) or "answers",
    }


def _sound(offer: Package | TunewiseError) -> Package:
    if isinstance(offer, TunewiseError):
        raise offer
    return offer


def _of_package(name: str, state: str, opened: Callable[[], Package]) -> Iterator[dict[str, Any]]:
    try:
        package = opened()
    except TunewiseError as error:
        nothing = dict.fromkeys(("decision", "learner", "created", "choices", "regret"))
        yield {"name": name, "state": state, **nothing, "here": f"is not sound: {error}"}
        return
    for entry in package.manifest.models:
        yield {
            "name": name,
            "state": state,
            "decision": entry.decision,
            "learner": entry.learner,
            "created": entry.created,
            "choices": entry.choices,
            "regret": entry.scores.get("regret"),
            "here": package.why_elsewhere(entry, facts_of(entry.decision, entry.fence)) or _answer(name, state),
        }


def _answer(name: str, state: str) -> str:
    return f"would answer; run: tunewise models {_WAYS[state]} {name}" if state in _WAYS else "answers"
