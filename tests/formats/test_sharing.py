"""Words that tell where or by whom something was measured do not leave the machine."""

import platform

import pytest

from tunewise.formats.sharing import Veil

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
