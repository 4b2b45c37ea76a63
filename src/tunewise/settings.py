"""Every environment variable tunewise reads, typed, in one place; each has an argument that does the same."""

import os
import re
import reprlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeGuard, get_args

from tunewise import system
from tunewise.errors import InvalidSetting
from tunewise.eventlog import Level, Target

Mode = Literal["use", "tune", "collect", "replay", "off"]
MODES: tuple[Mode, ...] = get_args(Mode)
MEASURING: tuple[Mode, ...] = ("tune", "collect")
OnDeterministic = Literal["error", "warn"]
RANKS_LIMIT_S = 120.0
Trust = Literal["own", "host", "all"]
Place = Path | str  # of a store: its directory or file, or the address of a PostgreSQL database

_ADDRESS = re.compile(r"(?:postgres(?:ql)?://|service=)")
_KEYWORDS = re.compile(r"\s*(?:host|hostaddr|port|dbname|user|password|passfile|service\s)\s*=|service=[^\s=]*=")
# Where several places are listed: colons up to the first slash or question mark belong to user, password and port.
_LISTED = re.compile(rf"(?:postgres(?:ql)?://[^/?]*)?[^{os.pathsep}]*")

VARIABLES: dict[str, str] = {
    "TUNEWISE_HOME": "directory of the store, the locks and the compiled kernels",
    "TUNEWISE_MODE": f"mode of every decision: {', '.join(MODES)}",
    "TUNEWISE_COLLECT": "comma-separated decisions that run in collect mode",
    "TUNEWISE_USE": "comma-separated decisions that run in use mode",
    "TUNEWISE_STORE": "the store, if not in the home: a PostgreSQL database (postgresql://...) or another directory",
    "TUNEWISE_LAYERS": f"read-only stores below the user's own, separated by {os.pathsep!r}",
    "TUNEWISE_HEURISTICS": f"files and directories of heuristics that may answer, separated by {os.pathsep!r}",
    "TUNEWISE_LOG_PATH": "file, or directory with a file for each decision, that AutoHeuristic logs go to",
    "TUNEWISE_WAIT_S": "seconds to wait while another process tunes the same problem (default: until it is done)",
    "TUNEWISE_OPENCL_DEVICE": "the OpenCL device: a number, or a part of its name (default: a GPU if there is one)",
    "TUNEWISE_ON_DETERMINISTIC": "what tuning does where PyTorch is to be deterministic: error (the default), warn",
    "TUNEWISE_PINS": f"files of answers that are frozen (made by `tunewise pin`), separated by {os.pathsep!r}",
    "TUNEWISE_RANKS_LIMIT_S": "seconds in which the ranks of a job must agree on a problem (default: 120)",
    "TUNEWISE_TRUST": "whose verdicts in a shared store answer: own, host (this machine's), all (the default)",
    "TUNEWISE_SIGNS": "whether runs and look-ups tell the store what they are at, for the live page: on, off",
    "TUNEWISE_EVENTS": "file that every event is written to as a line of JSON, or stderr",
    "TUNEWISE_EVENTS_LEVEL": "from which level on events are written: debug, info (the default), warning",
    "CC": "the C compiler for C kernels",
    "XDG_CACHE_HOME": "where TUNEWISE_HOME lies when it is not set",
    "HOME": "where XDG_CACHE_HOME lies when it is not set",
    "USERPROFILE": "on Windows: what HOME is elsewhere",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment asks for. Empty variables count as not set."""

    home: Path
    mode: Mode | None = None
    collect: frozenset[str] = frozenset()
    use: frozenset[str] = frozenset()
    store: Place | None = field(default=None, repr=False)  # None: in the home; an address may hold a password
    layers: tuple[Place, ...] = field(default=(), repr=False)
    wait_s: float | None = None
    cc: str | None = None
    heuristics: tuple[Path, ...] | None = None  # None: those in the home
    log_path: Path | None = None  # None: in the home
    opencl_device: str | None = None  # None: a GPU if there is one
    on_deterministic: OnDeterministic = "error"
    pins: tuple[Path, ...] = ()
    ranks_limit_s: float = RANKS_LIMIT_S
    trust: Trust = "all"
    signs: bool = True
    events: Target | None = None
    events_level: Level = "info"

    def mode_of(self, decision: str) -> Mode | None:
        """Return the mode the environment sets for a decision, or None where it says nothing."""
        if decision in self.collect:
            return "collect"
        return "use" if decision in self.use else self.mode

    @property
    def heuristic_places(self) -> tuple[Path, ...]:
        """The files and directories whose heuristics may answer: those named, or else `heuristics` in the home."""
        return (self.home / "heuristics",) if self.heuristics is None else self.heuristics


class _Process:
    """What this process has read or was told: the one thing here that changes."""

    settings: Settings | None = None


def current() -> Settings:
    """Return the settings in force in this process, read from the environment the first time."""
    if _Process.settings is None:
        _Process.settings = load()
    return _Process.settings


def put_in_force(settings: Settings) -> None:
    """Replace the settings of this process."""
    _Process.settings = settings


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings. A process that runs with another user's rights (setuid) ignores them all."""
    env = _trusted(os.environ) if environ is None else environ
    return Settings(
        home=_home(env),
        mode=parse_mode(env["TUNEWISE_MODE"]) if env.get("TUNEWISE_MODE") else None,
        collect=parse_names(env.get("TUNEWISE_COLLECT", "")),
        use=parse_names(env.get("TUNEWISE_USE", "")),
        store=parse_place(env["TUNEWISE_STORE"], "TUNEWISE_STORE") if env.get("TUNEWISE_STORE") else None,
        layers=tuple(parse_place(text, "TUNEWISE_LAYERS") for text in _listed(env.get("TUNEWISE_LAYERS", ""))),
        wait_s=_seconds("TUNEWISE_WAIT_S", env.get("TUNEWISE_WAIT_S", "")),
        cc=env.get("CC") or None,
        heuristics=_paths("TUNEWISE_HEURISTICS", env) or None,
        log_path=_path("TUNEWISE_LOG_PATH", env["TUNEWISE_LOG_PATH"]) if env.get("TUNEWISE_LOG_PATH") else None,
        opencl_device=env.get("TUNEWISE_OPENCL_DEVICE") or None,
        on_deterministic=parse_on_deterministic(env.get("TUNEWISE_ON_DETERMINISTIC") or "error"),
        pins=_paths("TUNEWISE_PINS", env),
        ranks_limit_s=parse_limit(env.get("TUNEWISE_RANKS_LIMIT_S") or RANKS_LIMIT_S),
        trust=parse_trust(env.get("TUNEWISE_TRUST") or "all"),
        signs=parse_switch(env.get("TUNEWISE_SIGNS") or "on", "TUNEWISE_SIGNS"),
        events=parse_events(env["TUNEWISE_EVENTS"]) if env.get("TUNEWISE_EVENTS") else None,
        events_level=parse_events_level(env.get("TUNEWISE_EVENTS_LEVEL") or "info"),
    )


def parse_mode(text: str) -> Mode:
    """Return the mode named by `text`; raises InvalidSetting for any other word."""
    if text not in MODES:
        raise InvalidSetting(f"mode {text!r} is not one of {', '.join(MODES)}")
    return text


def parse_names(text: str) -> frozenset[str]:
    """Return names that have commas between them."""
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def is_server(place: Place) -> bool:
    """Return whether a store's place is a PostgreSQL database, by an address of libpq or the name of a service."""
    return isinstance(place, str) and _ADDRESS.match(place) is not None


def parse_place(place: str | Path, name: str = "store") -> Place:
    """Return where a store is: an address as it was given, anything else as an absolute path.

    Raises InvalidSetting for an address of something else, which would make a directory of that name.
    """
    if isinstance(place, str) and _KEYWORDS.match(place):  # what follows may hold a password
        raise InvalidSetting(f"{name} is an address in words; write it as postgresql://host/database or service=NAME")
    if isinstance(place, str) and is_server(place):
        return place
    kind, is_address, _ = str(place).partition("://") if isinstance(place, str) else ("", "", "")
    if is_address:  # what follows may hold a password
        raise InvalidSetting(
            f"{name}={kind}://... is no store that can be opened; such an address begins postgresql://"
        )
    return _path(name, str(place))


def shown(place: Place) -> str:
    """Return a store's place as people may see it: of an address only hosts, database and service."""
    if not isinstance(place, str) or not is_server(place):
        return str(place)
    if place.startswith("service="):
        return place.split()[0]
    main, _, query = place.partition("://")[2].partition("?")
    if "@" in query:  # a question mark in a password that is not written as %3F: nothing behind it can be told apart
        main, query = query.rpartition("@")[2], ""
    kept = [part for part in query.split("&") if part.partition("=")[0] in ("service", "host", "port", "dbname")]
    return "".join(["postgresql://", main.rpartition("@")[2], "?" if kept else "", "&".join(kept)])


def parse_limit(value: str | float) -> float:
    """Return in how many seconds ranks must agree; raises InvalidSetting for what is not a positive number."""
    seconds = _seconds("TUNEWISE_RANKS_LIMIT_S", value) if isinstance(value, str) else value
    if not is_time(seconds):
        raise InvalidSetting(f"TUNEWISE_RANKS_LIMIT_S={brief(value)} is not a positive number of seconds, such as 120")
    return float(seconds)


def is_time(value: object, *, may_be_zero: bool = False, may_be_endless: bool = False) -> TypeGuard[int | float]:
    """Return whether a value is a number of seconds; nan and integers that no float can hold are not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    is_above = value >= 0 if may_be_zero else value > 0
    return is_above and (value <= sys.float_info.max or (may_be_endless and value == float("inf")))


def brief(value: object) -> str:
    """Return a value as an error names it: not at length, and an integer that Python does not write out by its size."""
    try:
        return reprlib.repr(value)
    except ValueError:
        return f"an integer of {value.bit_length()} bits" if isinstance(value, int) else type(value).__name__


def parse_switch(text: str, name: str) -> bool:
    """Return whether something is on; raises InvalidSetting for any word but on and off."""
    if text not in ("on", "off"):
        raise InvalidSetting(f"{name}={text!r} is neither on nor off")
    return text == "on"


def parse_events(target: str | Path) -> Target:
    """Return where events go: a file, or `stderr`."""
    return "stderr" if target == "stderr" else _path("TUNEWISE_EVENTS", str(target))


def parse_events_level(text: str) -> Level:
    """Return from which level on events are written; raises InvalidSetting for any other word."""
    allowed: tuple[Level, ...] = get_args(Level)
    for word in allowed:
        if text == word:
            return word
    raise InvalidSetting(f"TUNEWISE_EVENTS_LEVEL={text!r} is not one of {', '.join(allowed)}")


def parse_trust(text: str) -> Trust:
    """Return whose verdicts answer; raises InvalidSetting for any other word."""
    allowed: tuple[Trust, ...] = get_args(Trust)
    for word in allowed:
        if text == word:
            return word
    raise InvalidSetting(f"TUNEWISE_TRUST={brief(text)} is not one of {', '.join(allowed)}")


def parse_on_deterministic(text: str) -> OnDeterministic:
    """Return what tuning does where it may not measure; raises InvalidSetting for any other word."""
    allowed: tuple[OnDeterministic, ...] = get_args(OnDeterministic)
    for word in allowed:
        if text == word:
            return word
    raise InvalidSetting(f"TUNEWISE_ON_DETERMINISTIC={text!r} is not one of {', '.join(allowed)}")


def in_force(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables of ours that are set and heeded, with their values as people may see them."""
    env = _trusted(os.environ) if environ is None else environ
    secretive: dict[str, Callable[[str], str]] = {
        "TUNEWISE_STORE": shown,
        "TUNEWISE_LAYERS": lambda text: os.pathsep.join(map(shown, _listed(text))),
    }
    return {name: secretive.get(name, str)(env[name]) for name in VARIABLES if env.get(name)}


def variable(name: str) -> str | None:
    """Return the value of an environment variable that a decision declares, or None if it is not set."""
    return os.environ.get(name)


def library_setting(prefix: str, name: str) -> str | None:
    """Return the value of a variable that a library's switch reads, such as MYLIB_AUTOTUNE; None if it is not set."""
    return _trusted(os.environ).get(f"{prefix}_{name}") or None


def _trusted(environ: Mapping[str, str]) -> Mapping[str, str]:
    return {} if system.has_lent_rights() else environ


def _home(env: Mapping[str, str]) -> Path:
    if env.get("TUNEWISE_HOME"):
        return _path("TUNEWISE_HOME", env["TUNEWISE_HOME"])
    cache, named = env.get("XDG_CACHE_HOME", ""), (env.get("HOME"), env.get("USERPROFILE"), system.user_home())
    if os.path.isabs(cache):
        return Path(cache) / "tunewise"
    home = next((place for place in named if place and os.path.isabs(place)), None)
    if home is None:  # a private place that the next boot may sweep
        return Path(tempfile.gettempdir()) / f"tunewise-{system.user()}"
    return Path(home) / ".cache" / "tunewise"


def _path(name: str, text: str) -> Path:
    try:
        return Path(text).expanduser().absolute()
    except (RuntimeError, OSError) as error:  # ~nobody, or a relative path in a directory that is gone
        raise InvalidSetting(f"{name}={text!r} is not a place: {error}") from None


def _paths(name: str, env: Mapping[str, str]) -> tuple[Path, ...]:
    return tuple(_path(name, text) for text in env.get(name, "").split(os.pathsep) if text)


def _listed(text: str) -> Iterator[str]:
    return (found for found in _LISTED.findall(text) if found)


def _seconds(name: str, text: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise InvalidSetting(f"{name}={brief(text)} is not a number of seconds, such as 30")
    return value
