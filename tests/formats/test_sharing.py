"""Words that tell where or by whom something was measured do not leave the machine."""

import platform
from pathlib import Path

import pytest

from tunewise.errors import InvalidData
from tunewise.formats.datasets import fields, read
from tunewise.formats.sharing import Veil, shareable

NAMES = frozenset({"alice", "build-07"})


@pytest.mark.parametrize(
    "word",
    [
        "/home/alice/kernels/a.c",
        "flags=-I/opt/mine/include",
        "C:\\Users\\bob\\x",
        "~/notes",
        "\\\\server\\share",
        "file:/etc",
        "bob@example.org",
        "bob@cluster",
        "alice",
        "run of Alice.",
        "build-07",
        "alice_kernel",
        "k_alice",
        "Build-07-cpu",
        "v2_alice-x",
    ],
)
def test_a_private_word_becomes_a_digest(word: str) -> None:
    veil = Veil(NAMES)
    assert veil(word).startswith("sha256:")
    assert veil.hidden == {word}
    assert veil(word) == Veil(NAMES)(word)


@pytest.mark.parametrize(
    "word",
    [
        "torch.bfloat16",
        "type=triton_BLOCK-M=32_BLOCK-K=16",
        "aten/mm/out",
        "64x32/8",
        "Intel(R) Xeon(R) CPU @ 2.10GHz",
        "CPU@2.10GHz",
        "malice",
        "alice2",
        "square_root",
        "profile: fast",
        "a / b",
        7,
        None,
        True,
    ],
)
def test_a_harmless_value_stays(word: object) -> None:
    veil = Veil(NAMES)
    assert veil(word) == word
    assert not veil.hidden


def test_the_names_of_this_host_are_private(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "node", lambda: "Rack-9.example.org")
    for word in ("measured on rack-9", "rack-9.example.org:7"):
        assert Veil()(word).startswith("sha256:")


TOLD = """environment.host,environment.cc,hardware.name,hardware.user,policy.clock,f_n,f_Host,choice,t0
hq,gcc,X,root,cpu,8,hq,a,1e-3
hq,gcc,X,root,cpu,9,hq,a,1e-3
"""


def test_of_a_device_only_hardware_and_policy_are_shared_and_no_column_of_hosts_or_users(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TOLD)
    shared = shareable(read([tmp_path / "a.csv"]), Veil(frozenset()))
    assert shared.devices == ({"hardware.name": "X", "policy.clock": "cpu"},)
    assert shared.names == ("n",)


@pytest.mark.parametrize(("digest", "is_kept"), [("0123456789abcdef", True), ("hq", False)])
def test_environments_of_one_machine_stay_apart_by_their_digests(tmp_path: Path, digest: str, is_kept: bool) -> None:
    (tmp_path / "a.csv").write_text(TOLD.replace("environment.cc", "environment.digest").replace("gcc", digest))
    shared = shareable(read([tmp_path / "a.csv"]), Veil(frozenset()))
    assert ("environment.digest" in shared.devices[0]) is is_kept


def test_data_of_nothing_but_hosts_is_not_shared(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("f_host,choice,t0\nhq,a,1e-3\n")
    with pytest.raises(InvalidData, match="only features, host, are called a host or user; rename them"):
        shareable(read([tmp_path / "a.csv"]), Veil(frozenset()))


def test_all_that_a_log_tells_of_the_device_is_among_its_fields(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TOLD)
    told = fields(shareable(read([tmp_path / "a.csv"]), Veil(frozenset())), "autoheuristic")
    assert "'hardware.name': 'X'" in told["hardware"]
    assert "'policy.clock': 'cpu'" in told["hardware"]
