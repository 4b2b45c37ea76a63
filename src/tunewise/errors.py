"""The error tree: everything tunewise raises on purpose, so that one `except TunewiseError` catches it all."""

from tunewise.escaping import harmless, one_line


class TunewiseError(Exception):
    """Base of all errors raised by tunewise; its text is one sentence: the thing, the value and the way out.

    What it quotes may come from anybody's file or server, so its text is one line that no terminal obeys.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(one_line(part) if isinstance(part, str) else part for part in args))


class InvalidSpace(TunewiseError):
    """A space cannot be built from its parameters."""


class InvalidRule(TunewiseError):
    """A rule is not a safe expression over the space's parameters, or broke while it was applied."""


class InvalidConfig(TunewiseError):
    """A config is not a point of the space."""


class InvalidProblem(TunewiseError):
    """The features of a problem are not plain numbers and words."""


class FailedInputs(InvalidProblem):
    """The arguments of a problem cannot be made, for one because there is not so much memory."""


class InvalidDecision(TunewiseError):
    """A decision is declared in a way that cannot work."""


class DuplicateDecision(InvalidDecision):
    """Two different decisions carry one name."""


class InvalidPolicy(TunewiseError):
    """A way of measuring that does not exist."""


class InvalidSetting(TunewiseError):
    """An environment variable or argument holds a value that makes no sense."""


class MissingPart(TunewiseError):
    """Something is needed now that is not here: a compiler, an extra, Linux, or a function that was not declared."""


class BuildError(TunewiseError):
    """A kernel did not compile; the text ends with the compiler's last lines."""

    def __init__(self, *args: object) -> None:
        Exception.__init__(self, *(harmless(part) if isinstance(part, str) else part for part in args))


class LimitExceeded(TunewiseError):
    """A config asks for more than the device has, such as work-items in a group or local memory."""


class KernelError(TunewiseError):
    """A compiled kernel ran and reported that it could not do its work."""


class StoreError(TunewiseError):
    """The store cannot be used the way it was asked."""


class DamagedStore(StoreError):
    """The store's file does not hold what was written to it."""


class UnreachableStore(StoreError):
    """The server of a store does not answer."""


class InvalidTrial(TunewiseError):
    """A trial or verdict holds a value that no measurement can have."""


class InvalidFile(TunewiseError):
    """A file does not hold what its reader expects."""


class InvalidModel(TunewiseError):
    """A learned model, or code generated from one, is not what it must be."""


class InvalidData(TunewiseError):
    """A data set cannot be used the way it was asked."""


class NotFound(TunewiseError):
    """What was named does not exist."""


class Nondeterministic(TunewiseError):
    """Tuning was asked for where the program insists on the same results every time."""


class TunewiseWarning(UserWarning):
    """Base of all warnings: something degraded, and the program goes on. Its text is one line, as that of an error."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(one_line(part) if isinstance(part, str) else part for part in args))


class StoreWarning(TunewiseWarning):
    """The store is in trouble; results are kept in memory for now."""


class MeasureWarning(TunewiseWarning):
    """A measurement is less trustworthy than asked for."""


class EnvironmentWarning(TunewiseWarning):
    """A remembered answer comes from an environment that differs in a part marked *warn*."""


class PinsWarning(TunewiseWarning):
    """A pins file, or one of its pins, cannot be used and is passed over."""


class DeterminismWarning(TunewiseWarning):
    """Tuning was asked for where the program insists on the same results every time; nothing was measured."""


class EventsWarning(TunewiseWarning):
    """The file of events cannot be written; events are dropped until it can."""
