"""How a config is spelled for our C sources: in capitals, names and words alike."""

from tunewise.decision import Config


def defines(config: Config, *names: str) -> dict[str, int | str | bool]:
    """Return the `-D` parameters for some parameters of a config, in the order of `names`."""
    return {name.upper(): _spelled(config[name]) for name in names}


def _spelled(value: object) -> int | str | bool:
    assert isinstance(value, int | str)
    return value.upper() if isinstance(value, str) else value
