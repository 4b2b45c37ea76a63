import os
import pwd
from pathlib import Path

import pytest

import tunewise
from tunewise import settings
from tunewise.errors import InvalidSetting


def test_an_empty_environment_leaves_everything_open():
    found = settings.load({"HOME": "/home/u"})
    assert found == settings.Settings(home=Path("/home/u/.cache/tunewise"))
    assert found.mode_of("gemm") is None


def test_empty_variables_count_as_not_set():
    empty = dict.fromkeys(settings.VARIABLES, "")
    assert settings.load(empty).mode is None
    assert settings.load(empty).wait_s is None
    assert settings.load(empty).layers == ()
    assert settings.in_force(empty) == {}


@pytest.mark.parametrize(
    ("env", "home"),
    [
        ({"TUNEWISE_HOME": "/x", "XDG_CACHE_HOME": "/y", "HOME": "/z"}, "/x"),
        ({"XDG_CACHE_HOME": "/y", "HOME": "/z"}, "/y/tunewise"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/z"}, "/z/.cache/tunewise"),
        ({"HOME": "/z"}, "/z/.cache/tunewise"),
        ({"HOME": "relative"}, pwd.getpwuid(os.geteuid()).pw_dir + "/.cache/tunewise"),
        ({}, pwd.getpwuid(os.geteuid()).pw_dir + "/.cache/tunewise"),
    ],
    ids=str,
)
def test_the_home_is_the_first_place_that_is_named(env, home):
    assert settings.load(env).home == Path(home)


def test_a_relative_home_is_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert settings.load({"TUNEWISE_HOME": "here"}).home == tmp_path / "here"


def test_without_home_and_passwd_entry_a_private_place_is_named(monkeypatch):
    def nobody(uid):
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert settings.load({}).home.name == f"tunewise-{os.geteuid()}"


def test_a_home_that_is_no_place_is_refused():
    with pytest.raises(InvalidSetting, match="TUNEWISE_HOME='~no-such-user/x'"):
        settings.load({"TUNEWISE_HOME": "~no-such-user/x"})


def test_one_decision_can_have_its_own_mode():
    found = settings.load({"TUNEWISE_MODE": "tune", "TUNEWISE_COLLECT": "a, b,,", "TUNEWISE_USE": "b,c"})
    assert [found.mode_of(name) for name in "abcd"] == ["collect", "collect", "use", "tune"]


@pytest.mark.parametrize("mode", settings.MODES)
def test_every_mode_is_understood(mode):
    assert settings.load({"TUNEWISE_MODE": mode}).mode == mode


@pytest.mark.parametrize("mode", ["Tune", "on", "1", " "])
def test_an_unknown_mode_lists_the_known_ones(mode):
    with pytest.raises(InvalidSetting, match="use, tune, collect, replay, off"):
        settings.load({"TUNEWISE_MODE": mode})


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "soon", "1 2", "1e400", "1" + 400 * "0"])
def test_a_wait_that_is_no_number_of_seconds_is_refused(text):
    with pytest.raises(InvalidSetting, match="TUNEWISE_WAIT_S="):
        settings.load({"TUNEWISE_WAIT_S": text})


def test_a_wait_is_in_seconds():
    assert settings.load({"TUNEWISE_WAIT_S": "0"}).wait_s == 0
    assert settings.load({"TUNEWISE_WAIT_S": "1.5"}).wait_s == 1.5


def test_layers_are_absolute_places_in_order():
    found = settings.load({"TUNEWISE_LAYERS": f"/a{os.pathsep}{os.pathsep}/b"})
    assert found.layers == (Path("/a"), Path("/b"))


def test_heuristics_lie_in_the_home_unless_places_are_named():
    assert settings.load({"TUNEWISE_HOME": "/x"}).heuristic_places == (Path("/x/heuristics"),)
    named = settings.load({"TUNEWISE_HOME": "/x", "TUNEWISE_HEURISTICS": f"/a{os.pathsep}/b/m.json"})
    assert named.heuristic_places == (Path("/a"), Path("/b/m.json"))


def test_a_log_path_is_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert settings.load({"TUNEWISE_LOG_PATH": "log.txt"}).log_path == tmp_path / "log.txt"
    assert settings.load({}).log_path is None


def test_another_users_rights_ignore_the_environment(monkeypatch):
    monkeypatch.setenv("TUNEWISE_HOME", "/evil")
    monkeypatch.setenv("HOME", "/evil")
    monkeypatch.setenv("TUNEWISE_MODE", "tune")
    uid = os.geteuid()
    monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    found = settings.load()
    assert "evil" not in str(found.home)
    assert found.mode is None
    assert settings.in_force() == {}


def test_variables_in_force_are_listed(monkeypatch):
    assert settings.in_force({"TUNEWISE_MODE": "off", "OTHER": "x"}) == {"TUNEWISE_MODE": "off"}
    monkeypatch.setenv("TUNEWISE_MODE", "off")
    assert settings.in_force()["TUNEWISE_MODE"] == "off"


@pytest.mark.parametrize("text", ["0", "-1", "soon", "inf", "nan"])
def test_ranks_need_a_limit_that_is_a_positive_time(text: str) -> None:
    with pytest.raises(InvalidSetting, match="TUNEWISE_RANKS_LIMIT_S="):
        settings.load({"TUNEWISE_RANKS_LIMIT_S": text})


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), True, 10**400, 10**5000], ids=settings.brief)
def test_a_limit_given_as_a_number_is_a_positive_time_too(value: float) -> None:
    with pytest.raises(InvalidSetting, match=r"^TUNEWISE_RANKS_LIMIT_S=.{1,60} is not a positive number of seconds"):
        settings.parse_limit(value)


def test_ranks_have_two_minutes_unless_told_otherwise() -> None:
    assert settings.load({}).ranks_limit_s == 120
    assert settings.load({"TUNEWISE_RANKS_LIMIT_S": "2.5"}).ranks_limit_s == 2.5
    tunewise.configure(ranks_limit_s=30)
    assert settings.current().ranks_limit_s == 30
    with pytest.raises(InvalidSetting, match="TUNEWISE_RANKS_LIMIT_S="):
        tunewise.configure(ranks_limit_s=0)


@pytest.mark.parametrize("address", ["mysql://me:secret@host/db", "postgress://me:secret@host/db"])
def test_an_address_of_something_else_is_refused_without_its_password(address: str) -> None:
    with pytest.raises(InvalidSetting, match="begins postgresql://") as refused:
        settings.load({"HOME": "/home/me", "TUNEWISE_STORE": address})
    assert "secret" not in str(refused.value)
