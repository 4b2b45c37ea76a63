"""Data sets that may leave the machine: no word in them names its host, its user or a path."""

import hashlib
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tunewise import system
from tunewise.errors import InvalidData
from tunewise.formats.dataset import Column, DataSet
from tunewise.formats.trials import DIGEST, FACTS

_PATH = re.compile(
    r"(?:^|[^\w.]|-[A-Za-z])(?:~[/\\]|(?:[A-Za-z]:)?[/\\][\w.@+-]+[/\\][\w.@+-])"  # /a/b, C:\a\b, ~/a; a/b/c is none
    r"|\bfile:/|\\\\\w"
    r"|[A-Za-z_][\w.-]*@[A-Za-z][\w.-]*"  # a user at a host; CPU@2.1GHz is none
)
_HEX = re.compile(r"[0-9a-f]{16}")
_SHORTEST = 3  # a shorter name of a host or user stands in too many words
_WHO = frozenset({"host", "hostname", "host_name", "nodename", "user", "username", "user_name", "login", "uid"})
_NOBODY = frozenset({"localhost", "root", "user", "none", "cpu"})


@dataclass
class Veil:
    """Replaces words that tell where something was measured, or by whom, by a digest; `hidden` are those it met.

    A name is found where no letter or digit touches it: alice in alice_kernel and build-alice, not in malice.
    """

    names: frozenset[str] = field(default_factory=lambda: frozenset(_own_names()))
    hidden: set[str] = field(default_factory=set)

    def __call__(self, value: Any) -> Any:
        """Return a value as it is, or the digest of a word that is private."""
        if not isinstance(value, str) or not self._is_private(value):
            return value
        self.hidden.add(value)
        return "sha256:" + hashlib.sha256(value.encode(errors="surrogateescape")).hexdigest()[:16]

    def _is_private(self, word: str) -> bool:
        text = word.lower()
        return any(_stands_in(name, text) for name in self.names) or _PATH.search(word) is not None


def _stands_in(name: str, text: str) -> bool:
    return name in text and re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", text) is not None


def shareable(data: DataSet, veil: Veil) -> DataSet:
    """Return a data set whose words are all harmless: of its name, features, configs and devices.

    Of what is known of devices only the hardware, the policy and a digest that tells environments apart stay; a feature
    or fact that is called a host or user goes, whatever it says. Raises InvalidData where no other feature is left.
    """
    features = [column for column in data.features if not _tells_who(column.name)]
    if not features:
        called = ", ".join(data.names)
        raise InvalidData(f"{data.decision}: its only features, {called}, are called a host or user; rename them")
    return replace(
        data,
        decision=veil(data.decision),
        features=tuple(_column(column, veil) for column in features),
        configs=tuple(_veiled(config, veil) for config in data.configs),
        devices=tuple(_veiled(_of_machine(facts), veil) for facts in data.devices),
    )


def _of_machine(facts: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in facts.items() if name.startswith(FACTS) and not _tells_who(name)}
    digest = facts.get(DIGEST)  # without it, what two compilers made on one machine would become one
    return kept | ({DIGEST: digest} if _HEX.fullmatch(str(digest)) else {})


def _tells_who(name: str) -> bool:
    return name.lower().rpartition(".")[2] in _WHO


def _column(column: Column, veil: Veil) -> Column:
    words = None if column.words is None else tuple(veil(word) for word in column.words)
    return replace(column, name=veil(column.name), words=words)


def _veiled(values: Mapping[str, Any], veil: Veil) -> dict[str, Any]:
    return {veil(name): veil(value) for name, value in values.items()}


def _own_names() -> list[str]:
    """Return what this host and its user are called."""
    names = [platform.node(), platform.node().split(".")[0]]
    names += [name for name in (system.user_name(),) if name]
    return [name.lower() for name in names if len(name) >= _SHORTEST and name.lower() not in _NOBODY]
