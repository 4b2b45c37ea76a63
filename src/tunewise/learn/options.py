"""What a training run may be told: sizes, choices that must stay, and hooks for data, features, weights and leaves."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

from tunewise.decision import Config, Feature, Problem, Scalar
from tunewise.errors import InvalidData
from tunewise.formats.dataset import DataSet, Floats


@dataclass(frozen=True, slots=True)
class Epoch:
    """How far the training of a net is: its loss, a weighted mean square, and its log regret on problems held out.

    `part` says what is trained: a fold of the cross-validation, the net, or the small net that knows a problem's level.
    """

    number: int
    of: int
    loss: float
    held_out: float | None = None
    part: str = ""


@dataclass(frozen=True, kw_only=True)
class Training:
    """All options of a training run; every learner takes what concerns it.

    `grid` maps names of these options to values that are tried, e.g. `{"max_leaves": (8, 16)}`. A hook gets values,
    never files: `filter_rows` returns the data to learn from, `add_features` maps the name of a feature to a function
    of a problem, `weights` returns a number for every problem, and `unsafe` says of the config a leaf would answer
    and the data of the problems in that leaf whether the leaf must abstain; learners without leaves refuse that one.

    `ranking` cuts what a leaf of a tree ranks. The other learners rank the same configs for every problem: for them
    it is so many configs that together lose least, besides those that are always included.

    A subclass may define `filter_rows`, `weights` and `unsafe` as methods, and other options as plain attributes: what
    it defines is used where the caller gives nothing else.
    """

    seed: int = 0
    name: str | None = None  # of the decision; None: as the data call it
    portfolio: int = 8  # at most so many choices
    max_depth: int = 8
    max_leaves: int = 24
    tolerance: float = 0.0025  # of log regret: what a smaller tree may lose, and a question must save
    readable: float = 0.02  # how much more regret than a forest's a tree may have before `auto` takes the forest
    ranking: int | None = None  # at most so many choices are ranked
    contenders: int | None = None  # at most so many choices a forest ranks; None: as many as are ranked quickly
    default: Config | str | None = None  # a config or the value of its only parameter; None: as the data say
    always_included: tuple[Config | str, ...] = ()
    unsafe: Callable[[Config, DataSet], bool] | None = None
    filter_rows: Callable[[DataSet], DataSet] | None = None
    add_features: Mapping[str, Callable[[Problem], Feature]] = field(default_factory=dict)
    grid: Mapping[str, Collection[Any]] = field(default_factory=dict)
    test_share: float = 0.0  # of the problems, kept out of training and scored in the model's card
    validation_share: float = 0.2  # of the problems, held out at a time where sizes are chosen
    weights: Callable[[DataSet], Floats] | None = None
    evaluation: Mapping[str, DataSet] = field(default_factory=dict)  # further data to score the model on, by name
    fence: Mapping[str, Scalar] | None = None  # None: what all devices of the data have in common
    created: str | None = None  # the day that the model's card names; None: today
    epochs: int | None = None  # of a net, at most; None: as many as the data need
    batch_size: int = 512  # rows that a net is shown at a time
    learning_rate: float = 3e-3  # of a net, at its highest
    listener: Callable[[Epoch], None] | None = field(default=None, compare=False)  # hears how a net gets on
    margin: float = 2.0  # at least so many times beyond the sizes seen a model still answers

    def __post_init__(self) -> None:
        for option in fields(self):
            _adopt(self, option)
        _check_hooks(self)
        _check_grid(self)
        for name in ("portfolio", "max_depth", "max_leaves", "ranking", "contenders", "epochs", "batch_size"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InvalidData(f"{name}={getattr(self, name)} is less than 1")
        if not 0 < self.learning_rate <= 1:
            raise InvalidData(f"learning_rate={self.learning_rate} is not above 0 and at most 1; use 0.003, for one")
        for name in ("test_share", "validation_share"):
            if not 0 <= getattr(self, name) < 1:
                raise InvalidData(f"{name}={getattr(self, name)} is no share of the problems; use 0.2, for one")
        if self.margin < 1:
            raise InvalidData(f"margin={self.margin} would refuse problems that were learned from; use 1 or more")

    @property
    def folds(self) -> int:
        """How many parts the problems fall into where each is held out once."""
        return max(2, round(1 / self.validation_share)) if self.validation_share else 5


def _adopt(options: Training, option: "Field[Any]") -> None:
    """Let what a subclass defines under an option's name be used, unless the caller has given something else."""
    own = next((vars(kind)[option.name] for kind in _below(type(options)) if option.name in vars(kind)), MISSING)
    if own is MISSING or option.name not in vars(options):
        return
    given = vars(options)[option.name]
    usual = option.default if option.default_factory is MISSING else option.default_factory()
    if given == usual or getattr(given, "__func__", None) is own:  # a copy was made by asking for the method
        object.__delattr__(options, option.name)


def _below(kind: type[Training]) -> tuple[type, ...]:
    return kind.__mro__[: kind.__mro__.index(Training)]


def _check_hooks(options: Training) -> None:
    for name in ("unsafe", "filter_rows", "weights"):
        if getattr(options, name) is not None and not callable(getattr(options, name)):
            raise InvalidData(f"{name}={getattr(options, name)!r} is not a function")
    features = options.add_features
    for name in ("add_features", "evaluation"):
        if not isinstance(getattr(options, name), Mapping):
            kind = type(getattr(options, name)).__name__
            raise InvalidData(f"{name} is a {kind}; give a mapping by name, in a subclass as a plain attribute")
    if not all(callable(function) for function in features.values()):
        raise InvalidData(f"add_features={features!r} does not map names to functions of a problem")
    strange = [name for name, data in options.evaluation.items() if not isinstance(data, DataSet)]
    if strange:
        raise InvalidData(f"evaluation has {strange[0]!r}, which is no DataSet; read it with datasets.read")
    if isinstance(options.always_included, str | Mapping):
        raise InvalidData(f"always_included={options.always_included!r} is one config; give a tuple of configs")


def _check_grid(options: Training) -> None:
    known = {option.name for option in fields(options)}
    unknown = [name for name in options.grid if name not in known]
    if unknown:
        raise InvalidData(f"the grid names {unknown}, and there are no such options")
    for name, values in options.grid.items():
        if isinstance(values, str) or not isinstance(values, Collection) or not len(values):
            raise InvalidData(f"the grid has {name}={values!r}; give the values to try, such as (8, 16)")
