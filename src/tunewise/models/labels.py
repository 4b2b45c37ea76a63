"""Configs in few words: what tells the choices of a model apart, and short tags of which no two are alike."""

from collections.abc import Iterable, Mapping, Sequence

Shown = Mapping[str, object]
_TAG = 34  # characters


def spelled(config: Shown) -> str:
    """Return a config as `tile=8, way=plain`, or only its value where it has one parameter."""
    if len(config) == 1:
        return str(next(iter(config.values())))
    return ", ".join(f"{name}={value}" for name, value in config.items())


def labels(configs: Sequence[Shown]) -> list[str]:
    """Return a name for every config: its value, or the parameters in which the configs differ."""
    return [", ".join(words) for words in _differing(configs)]


def tags(choices: Sequence[Shown]) -> list[str]:
    """Return a short name for every choice: its label, or where one is too long, their numbers and as much as fits."""
    if not are_numbered(choices):
        return labels(choices)
    return [_fitted(f"#{number}", words) for number, words in enumerate(_differing(choices))]


def are_numbered(choices: Sequence[Shown]) -> bool:
    """Return whether the tags of choices begin with their numbers, because labels would be long or alike."""
    named = labels(choices)
    return len(set(named)) < len(named) or any(len(label) > _TAG for label in named)


def key(choices: Sequence[Shown], used: Iterable[int]) -> dict[str, str]:
    """Return what the numbers of some choices stand for in tags; empty where these have none."""
    if not are_numbered(choices):
        return {}
    return {f"#{number}": spelled(choices[number]) for number in sorted(set(used))}


def shared(configs: Sequence[Shown]) -> dict[str, object]:
    """Return the parameters that are the same in all configs, where there are several."""
    if len(configs) < 2:
        return {}
    first = configs[0]
    return {n: v for n, v in first.items() if all(n in other and repr(other[n]) == repr(v) for other in configs)}


def _differing(configs: Sequence[Shown]) -> list[list[str]]:
    """Return the words of every config's label: those of the parameters in which the configs differ, in their order."""
    names = list(dict.fromkeys(name for config in configs for name in config))
    if len(names) == 1:
        return [[spelled(config)] for config in configs]
    same = shared(configs)
    differing = [name for name in names if name not in same] or names
    found = [[f"{name}={config[name]}" for name in differing if name in config] for config in configs]
    return [words or [spelled(config)] for words, config in zip(found, configs, strict=True)]


def _fitted(number: str, words: Sequence[str]) -> str:
    """Return a number and the words after it; what is too long ends after a whole word, if one fits."""
    whole = " ".join([number, *words])
    if len(whole) <= _TAG:
        return whole
    kept = len(words) - 1
    while kept and len(" ".join([number, *words[:kept]])) > _TAG - 4:
        kept -= 1
    return " ".join([number, *words[:kept], "..."]) if kept else f"{whole[: _TAG - 3]}..."
