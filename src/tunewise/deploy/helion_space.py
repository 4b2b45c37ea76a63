"""Helion's search space as ours: every slot of its flat config becomes one or more named parameters."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from tunewise.decision import Config, Param, Scalar, Space, canonical, permutation, pow2
from tunewise.errors import InvalidConfig

_LISTED = 1000  # values of a knob that are looked at; Helion's longest has a few dozen
_ORDERED = 5  # items whose orders are written out as words, so that a model can hold them
_MOST = 20  # items of an order that can be searched at all


@dataclass(frozen=True, slots=True)
class Knob:
    """One parameter of ours: its name, its values, and what Helion calls each value where that is no scalar."""

    name: str
    values: Param | tuple[Scalar, ...]
    meant: Mapping[str, Any] | None = None

    def ours(self, value: Any) -> Any:
        """Return Helion's value as ours."""
        return _word(value) if self.meant is not None else tuple(value) if isinstance(value, list) else value

    def helions(self, value: Any) -> Any:
        """Return our value as Helion's."""
        if self.meant is not None:
            return self.meant[value]
        return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class Slot:
    """One place of Helion's flat config. Without knobs it stays at its default; a list has one knob for each item."""

    knobs: tuple[Knob, ...]
    default: Any
    is_list: bool = False

    def ours(self, value: Any) -> dict[str, Any]:
        """Return Helion's value as our parameters."""
        items = value if self.is_list else [value]
        return {knob.name: knob.ours(item) for knob, item in zip(self.knobs, items, strict=False)}

    def helions(self, config: Config) -> Any:
        """Return our parameters as Helion's value."""
        if not self.knobs:
            return self.default
        items = [knob.helions(config[knob.name]) for knob in self.knobs]
        return items if self.is_list else items[0]


@dataclass(frozen=True, eq=False)
class Knobs:
    """The knobs of a bound Helion kernel: our space, and the way from our configs to Helion's and back."""

    generation: Any  # helion.autotuner.config_generation.ConfigGeneration
    slots: tuple[Slot, ...]
    space: Space
    default: Config

    def helion(self, config: Config) -> Any:
        """Return a config as a helion.Config; raises InvalidConfig with Helion's reason where it refuses it."""
        try:
            return self.generation.unflatten([slot.helions(config) for slot in self.slots])
        except Exception as error:
            raise InvalidConfig(f"Helion refuses {dict(config)}: {type(error).__name__}: {error}") from error

    def ours(self, config: Any) -> dict[str, Any]:
        """Return a helion.Config, or a part of one, as a config of ours; what it leaves open is Helion's default.

        Raises InvalidConfig for what is not of this kernel. The result may have values our space lacks.
        """
        try:
            flat = self.generation.flatten(config)
            return {
                name: value
                for slot, item in zip(self.slots, flat, strict=True)
                for name, value in slot.ours(item).items()
            }
        except Exception as error:
            raise InvalidConfig(f"{config} is not of this kernel: {type(error).__name__}: {error}") from error

    def settled(self, config: Config) -> tuple[Config, Any]:
        """Return the config that Helion makes of ours, as ours and as a helion.Config.

        Knobs that do nothing beside others fall back to their defaults, so that equal kernels are equal configs.
        """
        made = self.helion(config)
        settled = self.ours(made)
        return (self.space.config(settled) if settled in self.space else config), made


def knobs_of(config_spec: Any, settings: Any = None) -> Knobs:
    """Return the knobs of a kernel's ConfigSpec, with what its settings override held fixed."""
    generation = _generation(config_spec, settings)
    names = _names(config_spec, len(generation.flat_spec))
    slots = tuple(_slot(name, fragment) for name, fragment in zip(names, generation.flat_spec, strict=True))
    params = {knob.name: knob.values for slot in slots for knob in slot.knobs}
    bare = Knobs(generation, slots, Space(params or {"nothing": [0]}), {})
    return Knobs(generation, slots, bare.space, _default(bare, config_spec))


def _default(bare: Knobs, config_spec: Any) -> Config:
    """Return Helion's default; where that has values nobody searches, the default of every single knob."""
    chosen = bare.ours(config_spec.default_config())
    if chosen in bare.space:
        return bare.space.config(chosen)
    single = {name: value for slot in bare.slots for name, value in slot.ours(slot.default).items()}
    return bare.space.config(single or {"nothing": 0})


def _generation(config_spec: Any, settings: Any) -> Any:
    make = config_spec.create_config_generation
    known = inspect.signature(make).parameters
    wanted = {
        "overrides": getattr(settings, "autotune_config_overrides", None) or None,
        "advanced_controls_files": getattr(settings, "autotune_search_acf", None) or None,
    }
    return make(**{name: value for name, value in wanted.items() if name in known and value is not None})


def _names(config_spec: Any, count: int) -> list[str]:
    """Return the name of every slot: the config's key, and a number where the key holds a list."""
    try:
        layout = config_spec.flat_key_layout()
    except Exception:  # another version, or a layout that needs more than we know
        layout = ()
    names = [
        f"{key}_{place}" if is_sequence else str(key) for key, slots, is_sequence in layout for place in range(slots)
    ]
    return names if len(names) == count else [f"slot_{place}" for place in range(count)]


def _slot(name: str, fragment: Any) -> Slot:
    default = fragment.default()
    inner, length = getattr(fragment, "inner", None), getattr(fragment, "length", None)
    if inner is not None and isinstance(length, int):
        knobs = [_knob(f"{name}_{place}", inner, inner.default()) for place in range(length)]
        whole = tuple(knob for knob in knobs if knob is not None)
        return Slot(whole if len(whole) == length else (), default, is_list=True)
    knob = _knob(name, fragment, default)
    return Slot((knob,) if knob is not None else (), default)


def _knob(name: str, fragment: Any, default: Any) -> Knob | None:
    if isinstance(default, list) and sorted(default) == list(range(len(default))) and hasattr(fragment, "length"):
        return _order(name, default)
    values = _values(fragment)
    if values is None:
        return None
    if default not in values:
        values = [default, *values]
    if not all(_is_scalar(value) for value in values):
        meant = {_word(value): value for value in values}
        return Knob(name, tuple(meant), meant)
    return Knob(name, _scale(values) or tuple(values))


def _order(name: str, default: list[int]) -> Knob | None:
    if len(default) > _ORDERED:
        return Knob(name, permutation(default)) if len(default) <= _MOST else None
    orders = {_word(list(order)): list(order) for order in permutations(default)}
    return Knob(name, tuple(orders), orders)


def _values(fragment: Any) -> list[Any] | None:
    """Return what a knob may be set to, in Helion's order; None where nobody says."""
    listed = getattr(fragment, "search_values", None)
    found = listed(_LISTED) if callable(listed) else None
    if found is None and hasattr(fragment, "choices"):
        found = fragment.choices
    if found is None and type(fragment).__name__ == "BooleanFragment":
        found = (False, True)
    return list(found) if found else None


def _scale(values: Sequence[Any]) -> Param | None:
    """Return powers of two as what they are, so that a search can take steps on them."""
    first, last = values[0], values[-1]
    if len(values) < 2 or any(type(value) is not int or value < 1 for value in values):
        return None
    powers = [1 << place for place in range(first.bit_length() - 1, last.bit_length())]
    return pow2(first, last) if list(values) == powers else None


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _word(value: Any) -> str:
    """Return a value that is no scalar as a word: its JSON, from which a generated file reads it back."""
    try:
        return canonical.encode(value)
    except ValueError:
        return repr(value)
