"""Packages at home: installed whole or not at all, and asked only once they are active."""

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tunewise as tw
from tunewise import models
from tunewise.errors import InvalidFile, NotFound
from tunewise.heuristics.packages import MANIFEST, pack
from tunewise.models import Card, Columns, Leaf, Model, Number, Tree
from tunewise.session import packages


def package(place: Path, answer: int = 1, name: str = "loops", **options: object) -> Path:
    """Return a package whose one model answers a number of steps for the decision `packaged`."""
    place.mkdir(parents=True, exist_ok=True)
    model = Model(
        card=Card(decision="packaged"),
        choices=({"steps": answer}, {"steps": 4}),
        columns=Columns((Number("n", 1, 1000),)),
        body=Tree((Leaf((0, 1), support=5),)),
    )
    models.save(model, place / "loop.json")
    return pack([place / "loop.json"], place / f"{name}-{answer}", name=name, **options)  # type: ignore[arg-type]


def decision() -> tw.Decision:
    return tw.Decision("packaged", space=tw.Space({"steps": [1, 2, 4]}), default={"steps": 4})


def test_a_package_answers_once_it_is_active_and_no_more_once_it_is_not(tmp_path: Path) -> None:
    loop = decision()
    done = packages.install(package(tmp_path / "p"))
    assert (done.name, done.is_active) == ("loops", False)
    assert loop.decide({"n": 5}).rung == "default"
    packages.activate("loops")
    answer = loop.decide({"n": 5})
    assert (answer.rung, answer.config, answer.source) == ("learned", {"steps": 1}, "loops/loop.json")
    packages.deactivate("loops")
    assert loop.decide({"n": 5}).rung == "default"


def test_a_program_may_ask_an_installed_package_by_its_name(tmp_path: Path) -> None:
    packages.install(package(tmp_path / "p"))
    (loaded,) = tw.load_heuristic(plugin="loops")
    assert (loaded.name, decision().decide({"n": 5}).rung) == ("loops/loop.json", "learned")
    tw.drop_heuristics()
    assert decision().decide({"n": 5}).rung == "default"


def test_the_same_package_again_changes_nothing_and_another_must_be_activated_anew(tmp_path: Path) -> None:
    packages.install(package(tmp_path / "p"))
    packages.activate("loops")
    assert packages.install(tmp_path / "p" / "loops-1").is_active
    other = packages.install(package(tmp_path / "q", 2))
    assert not other.is_active
    assert [one.name for one in packages.installed()] == ["loops"]
    assert [path for path in packages.home().iterdir() if path.is_dir()] == [other.path]


def test_where_a_version_does_not_fit_the_ladder_says_so(tmp_path: Path) -> None:
    packages.install(package(tmp_path / "p", requires={"torch": "<1.0"}))
    packages.activate("loops")
    loop = decision()
    assert loop.decide({"n": 5}).rung == "default"
    assert "loops/loop.json needs torch <1.0, " in str(loop.explain({"n": 5}))


def test_your_own_heuristics_are_asked_first(tmp_path: Path) -> None:
    packages.install(package(tmp_path / "p"))
    packages.activate("loops")
    (packages.home().parent / "heuristics").mkdir()
    own = package(tmp_path / "q", 2) / "loop.json"
    (packages.home().parent / "heuristics" / "mine.json").write_bytes(own.read_bytes())
    tw.refresh()
    assert decision().decide({"n": 5}).config == {"steps": 2}


def test_a_package_that_is_not_sound_leaves_no_trace(tmp_path: Path) -> None:
    packages.install(package(tmp_path / "p"))
    spoilt = package(tmp_path / "q", 2)
    (spoilt / "loop.json").write_text("{}")
    with pytest.raises(InvalidFile, match="is not the file that"):
        packages.install(spoilt)
    told = json.loads((spoilt / MANIFEST).read_text())
    raw = b'{"format": 1}'
    (spoilt / "loop.json").write_bytes(raw)
    import hashlib

    told["files"] = {"loop.json": {"sha256": hashlib.sha256(raw).hexdigest(), "size_bytes": len(raw)}}
    (spoilt / MANIFEST).write_text(json.dumps(told))
    with pytest.raises(InvalidFile, match=r"the model loop.json of loops is not sound"):
        packages.install(spoilt)
    (only,) = packages.installed()
    assert [path for path in packages.home().iterdir() if path.is_dir()] == [only.path]
    assert only.package().files()


def test_a_package_that_somebody_spoilt_at_home_is_left_out_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    done = packages.install(package(tmp_path / "p"))
    packages.activate("loops")
    (done.path / "loop.json").write_text("{}")
    tw.refresh()
    with caplog.at_level(logging.WARNING):
        assert decision().decide({"n": 5}).rung == "default"
    assert caplog.text.count("the model package loops is left out") == 1
    assert packages.install(tmp_path / "p" / "loops-1").package().files()
    assert decision().decide({"n": 5}).rung == "learned"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"packages": {"loops": {"directory": "../loops-1", "is_active": true}}}'],
)
def test_a_list_that_is_spoilt_is_told_and_answers_go_on(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    packages.home().mkdir(parents=True)
    (packages.home() / "installed.json").write_text(text)
    with pytest.raises(InvalidFile, match="is spoilt"):
        packages.installed()
    with caplog.at_level(logging.WARNING):
        assert decision().decide({"n": 5}).rung == "default"
    assert "no model package answers" in caplog.text


def test_a_package_that_is_not_installed_is_named_with_the_one_that_may_be_meant(tmp_path: Path) -> None:
    packages.install(package(tmp_path / "p"))
    for change in (packages.activate, packages.deactivate, packages.remove, packages.find):
        with pytest.raises(NotFound, match="did you mean 'loops'"):
            change("loop")


def test_what_is_removed_is_gone(tmp_path: Path) -> None:
    done = packages.install(package(tmp_path / "p"))
    packages.activate("loops")
    assert packages.remove("loops").is_active
    assert not packages.installed()
    assert not done.path.exists()
    assert decision().decide({"n": 5}).rung == "default"


def test_installing_reads_no_code_and_loads_no_heuristic(tmp_path: Path) -> None:
    packages.install(package(tmp_path / "p"))
    from tunewise.session.shelf import heuristics_for

    assert not heuristics_for("loop")


def test_installers_that_come_at_once_all_find_their_package_there(tmp_path: Path) -> None:
    made = [package(tmp_path / str(number), name=f"loops{number}") for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(packages.install, made))
    assert [one.name for one in packages.installed()] == [one.name for one in done]
    assert all(one.package().files() for one in done)
