"""Model packages: made, opened wherever they lie, and refused with a reason where anything about them is not sound."""

import json
import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest
from small_models import saved

import tunewise as tw
from tunewise import models
from tunewise.errors import InvalidData, InvalidFile, InvalidModel, NotFound, TunewiseError
from tunewise.heuristics import load_path, versions
from tunewise.heuristics.packages import MANIFEST, check_models, open_package, pack, wheel_name
from tunewise.models import Layer, Net, Scale

LOW, HIGH = {"steps": 1}, {"steps": 4}
FENCE = {"hardware.name": "AMD EPYC", "hardware.kind": "cpu"}
WHEEL = "tunewise_model_loop_epyc-1.0-py3-none-any.whl"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(tmp_path / "loop.json", "loop", LOW, HIGH, fence=FENCE, fingerprint="ab12", scores={"regret": 1.04})


@pytest.fixture
def directory(tmp_path: Path, model: Path) -> Path:
    return pack([model], tmp_path / "package", name="loop-epyc", about="loops on an EPYC")


@pytest.fixture
def wheel(tmp_path: Path, model: Path) -> Path:
    return pack([model], tmp_path / WHEEL, name="loop-epyc")


def changed(directory: Path, **fields: Any) -> Path:
    """Return a package whose manifest says something else."""
    told = json.loads((directory / MANIFEST).read_text())
    (directory / MANIFEST).write_text(json.dumps({**told, **fields}))
    return directory


def rewritten(wheel: Path, change: Callable[[dict[str, bytes]], object]) -> Path:
    """Return a wheel whose members were changed."""
    with zipfile.ZipFile(wheel) as held:
        members = {name: held.read(name) for name in held.namelist()}
    change(members)
    with zipfile.ZipFile(wheel, "w") as held:
        for name, raw in members.items():
            held.writestr(name, raw)
    return wheel


def test_a_manifest_tells_what_the_models_are_for(directory: Path) -> None:
    manifest = open_package(directory).manifest
    (entry,) = manifest.models
    assert (manifest.name, manifest.version, manifest.fence, manifest.requires) == ("loop-epyc", "1.0", FENCE, {})
    assert (entry.decision, entry.fingerprint, entry.scores, entry.choices) == ("loop", "ab12", {"regret": 1.04}, 2)
    assert list(manifest.files) == ["loop.json"]


def test_a_directory_and_a_wheel_hold_the_same(directory: Path, wheel: Path) -> None:
    assert open_package(directory).files() == open_package(wheel).files()


def test_equal_models_make_equal_wheels(tmp_path: Path, model: Path, wheel: Path) -> None:
    raw = wheel.read_bytes()
    assert pack([model], wheel, name="loop-epyc").read_bytes() == raw


def test_models_about_torch_are_for_the_release_that_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "installed", lambda library: "2.13.0+cpu")
    file = saved(tmp_path / "mm.json", "torch.mm", LOW, HIGH)
    assert open_package(pack([file], tmp_path / "a", name="a")).manifest.requires == {"torch": ">=2.13,<2.14"}
    wide = {"torch": ">=2.6"}
    assert open_package(pack([file], tmp_path / "b", name="b", requires=wide)).manifest.requires == wide


def test_the_fence_is_what_all_models_share(tmp_path: Path, model: Path) -> None:
    other = saved(tmp_path / "other.json", "loop", LOW, HIGH, fence={**FENCE, "hardware.name": "Xeon"})
    both = open_package(pack([model, other], tmp_path / "both", name="both")).manifest
    assert both.fence == {"hardware.kind": "cpu"}
    with pytest.raises(InvalidModel, match=r"other.json is for hardware.name='Xeon', and the package for 'AMD EPYC'"):
        pack([model, other], tmp_path / "none", name="none", fence=FENCE)


def test_the_models_of_a_package_answer_where_it_fits(directory: Path) -> None:
    (heuristic,) = tw.load_heuristic(directory)
    assert heuristic.name == "loop-epyc/loop.json"
    assert heuristic.choose({"n": 5}) == LOW
    assert heuristic.why_elsewhere(FENCE) is None
    assert heuristic.why_elsewhere({**FENCE, "hardware.name": "Xeon"}) == (
        "is for hardware.name='AMD EPYC', and here it is 'Xeon'"
    )


def test_a_package_fences_models_that_have_no_fence(tmp_path: Path) -> None:
    file = saved(tmp_path / "loop.json", "loop", LOW, HIGH)
    needs = {"msgspec": ">=99"}
    place = pack([file], tmp_path / "p", name="p", fence={"hardware.kind": "cpu"}, requires=needs)
    (heuristic,) = load_path(place)
    assert "is for hardware.kind='cpu'" in (heuristic.why_elsewhere({}) or "")
    assert "needs msgspec >=99" in (heuristic.why_elsewhere({"hardware.kind": "cpu"}) or "")


def test_a_net_brings_its_weights(tmp_path: Path) -> None:
    from small_models import model

    bare = model("loop", LOW, HIGH)
    import msgspec

    layers = (Layer(1, 1, b"\0\0\x80?", b"\0\0\0\0"),)
    models.save(msgspec.structs.replace(bare, body=Net((Scale(0, 0.0, 1.0),), layers)), tmp_path / "net.json")
    package = open_package(pack([tmp_path / "net.json"], tmp_path / "p", name="p"))
    assert set(package.files()) == {"net.json", "net.json.safetensors"}
    assert load_path(tmp_path / "p")[0].choose({"n": 5}) is not None


def test_data_and_a_licence_come_along(tmp_path: Path, model: Path) -> None:
    (tmp_path / "data.csv").write_text("f_n,choice,t0\n")
    package = open_package(pack([model], tmp_path / "p", name="p", extras=[tmp_path / "data.csv"]))
    assert package.files()["data.csv"] == b"f_n,choice,t0\n"


@pytest.mark.parametrize("name", ["", "Upper", "a/b", "..", "a b", "-a", "a" * 65, "naïve"])
def test_a_name_is_plain(tmp_path: Path, model: Path, name: str) -> None:
    with pytest.raises(InvalidModel, match="is not a name of a package"):
        pack([model], tmp_path / "p", name=name)
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("file", ["weights.pkl", "code.py", "weights.pt", "x.so", MANIFEST, ".hidden.json"])
def test_what_could_run_may_not_be_in_a_package(tmp_path: Path, model: Path, file: str) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / file).write_text("x")
    with pytest.raises(InvalidModel, match="may not be in a package"):
        pack([model], tmp_path / "p", name="p", extras=[tmp_path / "x" / file])


def test_a_place_that_is_taken_is_left_alone(tmp_path: Path, model: Path, directory: Path) -> None:
    with pytest.raises(InvalidFile, match="choose a place that is not there"):
        pack([model], directory, name="other")
    assert open_package(directory).manifest.name == "loop-epyc"
    with pytest.raises(InvalidFile, match=f"call it {WHEEL}"):
        pack([model], tmp_path / "mine.whl", name="loop-epyc")
    with pytest.raises(InvalidData, match="at least one model"):
        pack([], tmp_path / "none", name="none")
    with pytest.raises(InvalidData, match=r"two files of the package are called loop.json"):
        pack([model, model], tmp_path / "none", name="none")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"format": 2}, "a package of format 2"),
        ({"name": "../up"}, "is not a name of a package"),
        ({"version": "1/2"}, "is not a version"),
        ({"requires": {"torch": "any"}}, "is not a range of versions"),
        ({"models": []}, "0 models in 1 files"),
        ({"files": {}}, "is not among its files"),
        ({"files": {"../loop.json": {"sha256": "0" * 64, "size_bytes": 1}}}, "may not be in a package"),
        ({"files": {"loop.json": {"sha256": "zz", "size_bytes": 1}}}, "is not 64 hex digits"),
        ({"files": {"loop.json": {"sha256": "0" * 64, "size_bytes": 1 << 40}}}, "Expected `int` <="),
        ({"surprise": 1}, "unknown field `surprise`"),
    ],
)
def test_a_manifest_that_is_not_sound_is_one_sentence(directory: Path, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidFile, match=r"manifest.json is not sound") as caught:
        open_package(changed(directory, **fields))
    assert said in str(caught.value)


def test_a_file_that_is_not_what_the_manifest_says_is_refused(directory: Path) -> None:
    raw = (directory / "loop.json").read_bytes()
    for spoilt in (raw[:-1], raw.replace(b"4", b"5"), raw + b" "):
        (directory / "loop.json").write_bytes(spoilt)
        with pytest.raises(InvalidFile):
            open_package(directory).files()
        with pytest.raises(InvalidFile):
            load_path(directory)
    (directory / "loop.json").unlink()
    with pytest.raises(NotFound, match=r"has no file loop.json"):
        open_package(directory).files()


def test_a_model_that_is_another_than_the_manifest_says_is_refused(tmp_path: Path, directory: Path) -> None:
    told = json.loads((directory / MANIFEST).read_text())
    (entry,) = told["models"]
    package = open_package(changed(directory, models=[{**entry, "decision": "gemm"}]))
    with pytest.raises(InvalidFile, match=r"loop.json of loop-epyc is not what manifest.json says of it"):
        check_models(directory, package.manifest)


@pytest.mark.parametrize("member", ["../out.json", "/etc/out.json", "a/../../out.json", "a\\out.json", "c:/out.json"])
def test_a_wheel_that_leads_out_of_itself_is_refused(wheel: Path, member: str) -> None:
    with pytest.raises(InvalidFile, match="leads out of it"):
        open_package(rewritten(wheel, lambda members: members.update({member: b"{}"})))


def test_a_wheel_without_a_manifest_or_with_two_is_refused(wheel: Path) -> None:
    with pytest.raises(InvalidFile, match=r"holds 2 files manifest.json"):
        open_package(rewritten(wheel, lambda members: members.update({"other/manifest.json": b"{}"})))
    with pytest.raises(InvalidFile, match=r"holds 0 files manifest.json"):
        open_package(rewritten(wheel, lambda members: [members.pop(n) for n in list(members) if n.endswith(MANIFEST)]))


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_wheel_that_is_packed_in_ways_without_a_bound_is_refused(tmp_path: Path, packing: int) -> None:
    bomb = tmp_path / "bomb.whl"
    with zipfile.ZipFile(bomb, "w", packing) as held:
        held.writestr(f"package/{MANIFEST}", b" " * (64 << 20))
    with pytest.raises(InvalidFile, match="stored or deflated"):
        open_package(bomb)


def test_a_wheel_of_far_too_many_members_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = tmp_path / "bomb.whl"
    with zipfile.ZipFile(bomb, "w") as held:
        for number in range(70_000):  # as many as need zip64
            held.writestr(f"{number:060}", b"")
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with pytest.raises(InvalidFile, match="list of members is too long"):
        open_package(bomb)


def test_a_member_that_is_far_longer_than_it_says_is_not_unpacked(wheel: Path) -> None:
    def swell(members: dict[str, bytes]) -> None:
        members["tunewise_model_loop_epyc/loop.json"] = b" " * (10 << 20)

    with pytest.raises(InvalidFile, match=r"loop.json is longer than the \d+ bytes it may have"):
        open_package(rewritten(wheel, swell)).files()


def test_what_is_no_package_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "text.whl").write_text("hello")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidFile, match="neither a package's directory nor a wheel"):
        open_package(tmp_path / "text.whl")
    with pytest.raises(NotFound, match=r"has no file manifest.json"):
        open_package(tmp_path / "empty")
    with pytest.raises(NotFound, match="there is no directory, wheel or installed package 'nowhere'"):
        open_package("nowhere")


STRANGE: list[Any] = [None, True, -1, 2**70, 1e300, "", "../x", "\ud800", "a" * 2000, [], {}, [[]], {"a": {}}]


def holders(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place of a document: what holds a value, and its key."""
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(item, dict | list):
            yield from holders(item)


def test_a_manifest_with_anything_strange_in_it_is_refused_or_harmless(directory: Path) -> None:
    original = (directory / MANIFEST).read_text()
    whole = open_package(directory).files()
    seen = []
    for number in range(len(list(holders(json.loads(original))))):
        for strange in STRANGE:
            document = json.loads(original)
            holder, key = list(holders(document))[number]
            holder[key] = strange
            (directory / MANIFEST).write_text(json.dumps(document))
            seen.append(files_or_trouble(directory))
    assert all(one == whole or isinstance(one, InvalidFile | NotFound) for one in seen)
    assert sum(isinstance(one, TunewiseError) for one in seen) > len(seen) / 2


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.full)])
def test_damaged_wheels_are_refused_or_whole(tmp_path: Path, wheel: Path, count: int) -> None:
    raw, whole, rng = wheel.read_bytes(), open_package(wheel).files(), random.Random(0)
    path, seen = tmp_path / "damaged.whl", []
    for _ in range(count):
        spoilt = bytearray(raw)
        for _ in range(rng.choice((1, 2, 8))):
            spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        path.write_bytes(spoilt[: rng.randrange(len(spoilt))] if rng.random() < 0.2 else spoilt)
        seen.append(files_or_trouble(path))
    assert all(one == whole or isinstance(one, InvalidFile | NotFound) for one in seen)
    assert any(isinstance(one, TunewiseError) for one in seen)


def files_or_trouble(path: Path) -> object:
    try:
        return open_package(path).files()
    except TunewiseError as error:
        return error


# Asked of the path alone: setuptools takes a search for pip as a sign to give the standard library's distutils back,
# and torch's compiler driver, which has the other one, breaks for the rest of the process.
@pytest.mark.skipif(PathFinder.find_spec("pip") is None, reason="pip is not installed here")
def test_pip_installs_a_wheel_and_its_name_finds_it_without_importing_it(wheel: Path, tmp_path: Path) -> None:
    assert wheel.name == wheel_name("loop-epyc", "1.0")
    site = tmp_path / "site"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps", "--no-index")
    done = subprocess.run([*pip, "--target", site, wheel], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    program = (
        "import sys, tunewise as tw\n"
        "from tunewise.heuristics.packages import open_package\n"
        "loop = tw.Decision('loop', space=tw.Space({'steps': [1, 4]}), default={'steps': 4})\n"
        "print(loop.decide({'n': 5}).rung)\n"
        "print(sorted(open_package('loop-epyc').files()))\n"
        "print(tw.load_heuristic(plugin='loop-epyc')[0].name)\n"
        "print([name for name in sys.modules if name.startswith('tunewise_model')])\n"
    )
    env = {**os.environ, "PYTHONPATH": str(site)}
    ran = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert ran.stdout.splitlines() == ["default", "['loop.json']", "loop-epyc/loop.json", "[]"], ran.stderr
