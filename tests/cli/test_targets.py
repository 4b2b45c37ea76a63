from pathlib import Path

import pytest

from tunewise.cli.targets import find
from tunewise.errors import DuplicateDecision, InvalidDecision, InvalidFile, InvalidRule, NotFound

DECISION = 'tw.Decision("{}", space=tw.Space({{"x": [1, 2]}}), default={{"x": 1}})'


def module(tmp_path: Path, *lines: str, name: str = "declared.py") -> Path:
    path = tmp_path / name
    path.write_text("\n".join(["import tunewise as tw", *lines]))
    return path


def test_a_decision_is_found_in_a_file(tmp_path: Path) -> None:
    path = module(tmp_path, f"tiles = {DECISION.format('in_a_file')}")
    assert find([f"{path}:tiles"])[0].name == "in_a_file"


def test_an_implementation_stands_for_its_decision(tmp_path: Path) -> None:
    path = module(tmp_path, 'way = tw.choice("by_choice", {"a": len, "b": len}, default="a")')
    assert find([f"{path}:way"])[0].name == "by_choice"


def test_a_file_may_import_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "lies_beside_it.py").write_text("NAME = 'beside'")
    path = module(tmp_path, "from lies_beside_it import NAME", f"d = {DECISION.format('beside')}")
    assert find([f"{path}:d"])[0].name == "beside"


def test_a_decision_is_found_in_a_module() -> None:
    assert find(["tunewise.workloads.library:sort"])[0].name == "sort"


def test_a_built_in_decision_is_found_by_its_name() -> None:
    assert find(["isin"])[0].name == "isin"


def test_the_only_decision_of_a_file_needs_no_name(tmp_path: Path) -> None:
    path = module(tmp_path, f"only = {DECISION.format('only_one')}", "run = only.implementation(lambda a, *, x: a)")
    assert find([str(path)])[0].name == "only_one"


def test_one_file_is_loaded_once_for_all_its_targets(tmp_path: Path) -> None:
    counting = ["from pathlib import Path", "log = Path(__file__).with_name('loads')", "log.open('a').close()"]
    loads = "log.write_text(log.read_text() + 'x')"
    path = module(tmp_path, *counting, loads, f"a = {DECISION.format('once_a')}", f"b = {DECISION.format('once_b')}")
    assert [d.name for d in find([f"{path}:a", f"{path}:b"])] == ["once_a", "once_b"]
    assert (tmp_path / "loads").read_text() == "x"


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("nowhere/at_all.py:x", "there is no file 'nowhere/at_all.py'"),
        ("no.such.module:x", "there is no module 'no.such.module'"),
        ("..:x", r"there is no module '\.\.'"),
        (":", "there is no module ''"),
        ("gem", r"did you mean 'gemm'\? A decision of your own"),
    ],
)
def test_what_does_not_exist_is_named(target: str, expected: str) -> None:
    with pytest.raises(NotFound, match=expected):
        find([target])


def test_a_typo_in_the_name_is_guessed(tmp_path: Path) -> None:
    path = module(tmp_path, f"tiles = {DECISION.format('typo')}")
    with pytest.raises(NotFound, match=r"there is no 'tile' in .*; did you mean .*:tiles\?"):
        find([f"{path}:tile"])


def test_a_name_that_is_no_decision_is_refused_with_those_that_are(tmp_path: Path) -> None:
    path = module(tmp_path, f"tiles = {DECISION.format('not_one')}", "other = 7")
    with pytest.raises(NotFound, match=r"other in .* is a int, not a decision; decisions there: tiles"):
        find([f"{path}:other"])


def test_a_file_without_decisions_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="holds no decision"):
        find([f"{module(tmp_path)}:x"])


@pytest.mark.parametrize(
    ("line", "error", "expected"),
    [
        ("1 / 0", InvalidFile, r"declared.py:2 failed to load with ZeroDivisionError: division by zero"),
        ("def (", InvalidFile, r"declared.py:2 failed to load with SyntaxError: "),
        ("raise SystemExit(3)", InvalidFile, r"declared.py:2 failed to load with SystemExit: 3"),
        ("import not_installed_anywhere", InvalidFile, r"declared.py:2 failed .* 'not_installed_anywhere'"),
        (
            'tw.Decision("bad_default", space=tw.Space({"x": [1, 2]}), default={"x": 3})',
            InvalidDecision,
            r"declared.py:2: bad_default: the default is not in the space: x=3",
        ),
        ('tw.Space({"x": [1, 2]}, rules=["y > 1"])', InvalidRule, r"declared.py:2: .*y"),
    ],
)
def test_a_file_that_fails_to_load_is_one_sentence_with_its_line(
    tmp_path: Path, line: str, error: type[Exception], expected: str
) -> None:
    with pytest.raises(error, match=expected):
        find([f"{module(tmp_path, line)}:x"])


def test_two_decisions_of_one_name_are_refused(tmp_path: Path) -> None:
    path = module(tmp_path, f"a = {DECISION.format('twice')}", f"b = {DECISION.format('twice')}")
    with pytest.raises(DuplicateDecision, match=r"declared.py:3: two decisions are named 'twice'"):
        find([f"{path}:a"])


def test_a_typo_in_the_file_is_guessed_and_a_directory_is_told(tmp_path: Path) -> None:
    (tmp_path / "tiles.py").write_text("")
    with pytest.raises(NotFound, match=r"there is no file .*; did you mean '.*/tiles\.py'\?"):
        find([f"{tmp_path}/tlies.py:tiles"])
    with pytest.raises(NotFound, match="is a directory"):
        find([f"{tmp_path}:tiles"])


def test_a_package_that_does_not_load_is_not_called_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_package").mkdir()
    (tmp_path / "broken_package" / "__init__.py").write_text("import no_such_thing\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidFile, match="No module named 'no_such_thing'"):
        find(["broken_package.inner:x"])
