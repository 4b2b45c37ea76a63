"""What a run may spend: evaluations and seconds that make sense."""

from tunewise.errors import InvalidSetting
from tunewise.settings import brief, is_time


def check_budget(value: object) -> None:
    """Raise InvalidSetting unless a value is a number of evaluations."""
    if type(value) is not int or value < 1:
        raise InvalidSetting(f"budget={brief(value)} is not a number of evaluations of at least 1")


def check_seconds(name: str, value: object, *, may_be_zero: bool = False) -> None:
    """Raise InvalidSetting unless a value is a number of seconds, or None where nothing is said about them."""
    if value is not None and not is_time(value, may_be_zero=may_be_zero, may_be_endless=True):
        asked = "a number of seconds, 0 or more" if may_be_zero else "a positive number of seconds"
        raise InvalidSetting(f"{name}={brief(value)} is not {asked}")


def check_seed(value: object) -> None:
    """Raise InvalidSetting unless a value is one that random choices can begin with."""
    if type(value) is not int or value < 0:
        raise InvalidSetting(f"seed={brief(value)} is not a whole number of at least 0")
