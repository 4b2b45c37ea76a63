"""Sessions of the live page: they end, and nobody makes one up."""

import pytest

from tunewise.report.live_access import LIFETIME_S, Access

TOKEN, KEY = "t" * 32, "k" * 32
NOW = 1_800_000_000.0


def access(*, token: str = TOKEN, key: str = KEY, now: float = NOW) -> Access:
    return Access(token, key, lambda: now)


def test_a_session_is_known_until_it_ends() -> None:
    value = access().open_session()
    assert access().is_session(value)
    assert access(now=NOW + LIFETIME_S - 1).is_session(value)
    assert not access(now=NOW + LIFETIME_S).is_session(value)
    assert not access(now=NOW - LIFETIME_S).is_session(value)  # a clock that was set back makes none last longer


def test_every_session_is_another() -> None:
    assert len({access().open_session() for _ in range(100)}) == 100


def test_another_token_or_key_ends_all() -> None:
    value = access().open_session()
    assert not access(token="u" * 32).is_session(value)
    assert not access(key="l" * 32).is_session(value)


def test_the_end_cannot_be_moved() -> None:
    end, rest = access().open_session().split(".", 1)
    assert not access().is_session(f"{int(end) - 1}.{rest}")


@pytest.mark.parametrize("value", ["", ".", "..", TOKEN, KEY, "1.2.3", "ä" * 100, "9" * 5_000, "\udce4"])
def test_what_is_no_session_is_not_one(value: str) -> None:
    assert not access().is_session(value)
