"""A model: what was learned of one decision, as a plain value that ranks its choices for a problem."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tunewise.decision import Config, Scalar, canonical
from tunewise.errors import InvalidModel
from tunewise.models.bodies import Forest, Tree
from tunewise.models.columns import Columns
from tunewise.models.net import Net
from tunewise.models.tensors import MAX_TENSOR_BYTES, SUFFIX, apart, joined
from tunewise.models.texts import is_text
from tunewise.models.whole import read_bounded, write_whole

if TYPE_CHECKING:
    from tunewise.models.scoring import Scorer

MAX_FILE_BYTES = 8 << 20
MAX_CHOICES, MAX_COLUMNS = 20_000, 2_000

Body = Tree | Forest | Net


class Card(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model is about, where it may be used, and what it was made from."""

    decision: str
    fence: dict[str, Scalar] = {}  # facts of the hardware that must be equal, such as hardware.name
    fingerprint: str = ""  # of the data it was learned from
    created: str = ""  # the day, as 2026-01-31
    learner: str = ""
    scores: dict[str, float] = {}  # how it did on problems that were held out
    fallback: dict[str, Scalar] = {}  # the decision's default, where it is known and none of the choices
    only_seeds: bool = False  # it says what to try first and answers nothing: nobody made sure that it beats a default


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A learned heuristic: a problem's features in, choices out, best first."""

    format: int = 1
    card: Card
    choices: tuple[dict[str, Scalar], ...]
    default: int | None = None  # which choice is the decision's default, if it is among them
    columns: Columns
    body: Body

    def rank(self, features: Mapping[str, object]) -> list[int]:
        """Return numbers of choices, best first; empty where the model abstains."""
        known = self.columns.known(features)
        if known is None:
            return []
        if isinstance(self.body, Tree):
            return list(self.body.leaf(self.columns.row(known)).ranking)
        guesses = self.guesses(known) if isinstance(self.body, Net) else self._asked(self.body.key, known)
        return sorted(range(len(guesses)), key=guesses.__getitem__)

    def guesses(self, known: Sequence[float]) -> list[float]:
        """Return the logarithm of the time of every choice, up to a constant, for the values of the problem's inputs.

        A net is asked by numpy where that is installed, which differs in the seventh digit. Raises InvalidModel for a
        tree, which knows an order and no times.
        """
        if isinstance(self.body, Tree):
            raise InvalidModel(f"{self.card.decision}: a tree guesses no times; train a ranker or a net")
        if self._scorer is not None:
            return list(self._scorer.guesses(known).tolist())
        return self._asked(self.body.guess, known)

    def _asked(self, body: Callable[[Sequence[float], int], float], known: Sequence[float]) -> list[float]:
        """Return what a body says of every choice."""
        rows = (self.columns.row(known, setting) for setting in self._settings)
        return [body(row, number) for number, row in enumerate(rows)]

    @cached_property
    def _settings(self) -> list[list[float]]:
        """The values of every choice; raises InvalidModel where one is outside the columns."""
        return [self.columns.setting(choice) for choice in self.choices]

    @cached_property
    def _scorer(self) -> "Scorer | None":
        """What scores all choices of a net at once; None for other models, and without numpy."""
        if not isinstance(self.body, Net):
            return None
        try:
            from tunewise.models.scoring import Scorer
        except ImportError:
            return None
        return Scorer(self.body, self.columns, self.choices)

    def choose(self, features: Mapping[str, object]) -> Config | None:
        """Return the best config for a problem, or None where the model abstains."""
        ranking = self.rank(features)
        return self.choices[ranking[0]] if ranking else None

    def in_trees(self) -> Tree | Forest:
        """Return the body of a model that people can read; raises InvalidModel for a net."""
        if isinstance(self.body, Net):
            raise InvalidModel(f"{self.card.decision}: a net cannot be written as code; train a ranker")
        return self.body

    def check(self) -> None:
        """Raise InvalidModel unless the model can answer every question without an error."""
        if self.format != 1:
            raise InvalidModel(f"a model of format {self.format}; this version reads format 1")
        if not self.card.decision.strip():
            raise InvalidModel("a model without the name of its decision; name it, as in --name gemm")
        if not 0 < len(self.choices) <= MAX_CHOICES:
            raise InvalidModel(f"a model of {len(self.choices)} choices; it needs 1 to {MAX_CHOICES}")
        if self.default is not None and not 0 <= self.default < len(self.choices):
            raise InvalidModel(f"the default is choice {self.default} of {len(self.choices)}")
        if len(self.columns.inputs) + len(self.columns.derived) > MAX_COLUMNS:
            raise InvalidModel(f"a model of more than {MAX_COLUMNS} columns")
        self.columns.check()
        self.columns.check_about(len(self.choices))
        self.body.check(self.columns, len(self.choices))
        if not isinstance(self.body, Tree):
            _ = self._settings
        _check_texts(msgspec.to_builtins(self, builtin_types=(bytes,)))


# Made while the module is imported: msgspec crashes where a signal handler asks for a type that is just being taken in.
_DECODER = msgspec.json.Decoder(Model)


def save(model: Model, path: Path | str) -> None:
    """Write a model as JSON, whole or not at all; raises InvalidModel for one that could not be read back.

    The weights of a net go into a file of its name with `.safetensors` added; that is written first.
    """
    raw = dump(model)
    if isinstance(model.body, Net):
        bare, packed = apart(model.body)
        write_whole(beside(path), packed)
        raw = _text(msgspec.structs.replace(model, body=bare))
    write_whole(path, raw)


def dump(model: Model) -> bytes:
    """Return a model as JSON text; raises InvalidModel for one that could not be read back."""
    model.check()
    raw = _text(model)
    if len(raw) > MAX_FILE_BYTES:
        raise InvalidModel(f"the model takes {len(raw)} bytes; at most {MAX_FILE_BYTES} can be kept")
    return raw


def load(path: Path | str) -> Model:
    """Return the model of a file; raises NotFound, or InvalidModel where the file holds no sound model."""
    raw = read_bounded(path, MAX_FILE_BYTES)
    try:
        model = _decoded(raw)
        if isinstance(model.body, Net) and model.body.tensors:
            weights = read_bounded(beside(path), MAX_TENSOR_BYTES)
            model = msgspec.structs.replace(model, body=joined(model.body, weights))
        model.check()
    except InvalidModel as error:
        raise InvalidModel(f"{path}: {error}") from None
    return model


def beside(path: Path | str) -> Path:
    """Return where the weights of a net are whose model is at some path."""
    return Path(path).with_name(Path(path).name + SUFFIX)


def parse(raw: bytes) -> Model:
    """Return the model of JSON text; raises InvalidModel for anything that is none."""
    model = _decoded(raw)
    model.check()
    return model


def _decoded(raw: bytes) -> Model:
    if len(raw) > MAX_FILE_BYTES:
        raise InvalidModel(f"not a model: longer than {MAX_FILE_BYTES} bytes")
    try:
        return _DECODER.decode(raw)  # the type bounds the depth
    except (ValueError, RecursionError) as error:
        raise InvalidModel(f"not a model: {error}") from None


def _text(model: Model) -> bytes:
    return msgspec.json.format(msgspec.json.encode(model), indent=1)  # unsorted: parameters stay in the space's order


def _check_texts(value: Any) -> None:
    """Raise InvalidModel for a number or a text that some file, database or header could not hold."""
    if isinstance(value, dict):
        for name, item in value.items():
            _check_texts(name)
            _check_texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_texts(item)
    elif isinstance(value, float) and not isfinite(value):
        raise InvalidModel(f"the number {value} is not finite")
    elif isinstance(value, int) and not canonical.INT_MIN <= value <= canonical.INT_MAX:
        raise InvalidModel("a whole number does not fit in 64 bits")
    elif isinstance(value, str) and not is_text(value):
        raise InvalidModel(f"the text {value[:40]!r} is too long or holds half a character")
