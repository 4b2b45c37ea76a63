"""The house stays in order: what no file may do, what importing may not do, and how large a file may grow."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tunewise

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "tunewise"
SOURCES = sorted(PACKAGE.rglob("*.py"))
OURS = [
    *(path for path in ROOT.iterdir() if path.is_file()),
    *(p for d in (".ci", "src", "tests", "bench", "docs", "examples") for p in (ROOT / d).rglob("*") if p.is_file()),
]
TEXTS = sorted(path for path in OURS if "__pycache__" not in path.parts)
LONGEST = 500

_CODE_FROM_DATA = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}
_RUNS_TEXT = {"eval", "exec", "compile", "__import__"}
_MAY_RUN_TEXT = {"models/source.py"}  # generated modules, once their grammar is checked
_FORBIDDEN_CALLS = {"os.system", "os.popen", "torch.load", "yaml.load", "numpy.load", "np.load"}
_SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|PRAGMA|VACUUM|ATTACH)\b")
_MAY_TOUCH_ENVIRON = {
    "settings.py",
    "cli/home.py",  # --home has to reach child processes, and is put back
    "measure/pollution.py",  # puts back what a config changed; reads no setting
}


def inside(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def places(path: Path, is_wrong: Callable[[ast.AST], bool]) -> list[str]:
    """Return where in a file something is wrong."""
    tree = ast.parse(path.read_text())
    return [f"{inside(path)}:{getattr(node, 'lineno', 0)}" for node in ast.walk(tree) if is_wrong(node)]


def found(is_wrong: Callable[[ast.AST], bool], but_not_in: Callable[[str], bool] = lambda name: False) -> list[str]:
    """Return where in the package something is wrong, some files apart."""
    assert SOURCES
    return [place for path in SOURCES if not but_not_in(inside(path)) for place in places(path, is_wrong)]


def modules_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


def called(node: ast.AST) -> str:
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def is_built_text(node: ast.AST) -> bool:
    """Return whether a text is put together at run time: an f-string with a value in it, %, + or format."""
    if isinstance(node, ast.JoinedStr):
        return any(isinstance(part, ast.FormattedValue) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        return True
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("format", "join")


def is_built_sql(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith("execute"):
        return bool(node.args) and is_built_text(node.args[0])
    texts = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return is_built_text(node) and any(_SQL.match(text) for text in texts)


def is_swallowed(node: ast.AST) -> bool:
    """Return whether any exception at all is caught and dropped."""
    if isinstance(node, ast.ExceptHandler):
        kinds = "BaseException" if node.type is None else ast.unparse(node.type)
        is_empty = all(isinstance(step, ast.Pass | ast.Continue) or _is_ellipsis(step) for step in node.body)
        return is_empty and re.search(r"\b(Base)?Exception\b", kinds) is not None
    return bool(re.search(r"\bsuppress$", called(node)) and re.search(r"\b(Base)?Exception\b", ast.unparse(node)))


def _is_ellipsis(step: ast.stmt) -> bool:
    return isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant) and step.value.value is ...


def has_value_true(node: ast.AST, keyword: str) -> bool:
    return isinstance(node, ast.keyword) and node.arg == keyword and ast.unparse(node.value) == "True"


WRONG = """
import pickle
from marshal import loads
eval("1"); exec("x"); compile("1", "", "eval"); os.system("ls"); subprocess.run("ls", shell=True)
db.execute(f"SELECT {x}"); db.execute("SELECT " + x); db.execute("SELECT %s" % x); db.execute("SELECT {}".format(x))
query = f"DELETE FROM {table}"
os.environ["A"]; os.getenv("B"); print("hello")
try: pass
except Exception: pass
with contextlib.suppress(Exception): pass
"""


def is_code_from_data(node: ast.AST) -> bool:
    return any(name.split(".")[0] in _CODE_FROM_DATA for name in modules_of(node))


def is_running_text(node: ast.AST) -> bool:
    return called(node) in _RUNS_TEXT | _FORBIDDEN_CALLS or has_value_true(node, "shell")


def is_environ(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "os" and bool({alias.name for alias in node.names} & {"environ", "getenv"})
    return isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.environ", "os.environb", "os.getenv")


def is_print(node: ast.AST) -> bool:
    return called(node) in ("print", "sys.stdout.write", "sys.stderr.write")


@pytest.mark.parametrize(
    ("is_wrong", "count"),
    [
        (is_code_from_data, 2),
        (is_running_text, 5),
        (is_built_sql, 9),
        (is_environ, 2),
        (is_print, 1),
        (is_swallowed, 2),
    ],
)
def test_the_lint_finds_what_it_looks_for(is_wrong: Callable[[ast.AST], bool], count: int) -> None:
    assert sum(map(is_wrong, ast.walk(ast.parse(WRONG)))) == count


def test_no_data_becomes_code() -> None:
    assert not found(is_code_from_data)
    assert not found(is_running_text, but_not_in=_MAY_RUN_TEXT.__contains__)


def test_sql_is_never_put_together() -> None:
    assert not found(is_built_sql)


def test_environment_variables_are_read_in_one_file() -> None:
    assert not found(is_environ, but_not_in=_MAY_TOUCH_ENVIRON.__contains__)


def test_only_the_command_line_prints() -> None:
    assert not found(is_print, but_not_in=lambda name: name.startswith("cli/"))


def test_no_exception_is_swallowed() -> None:
    assert not found(is_swallowed)


def test_every_module_opens_with_a_sentence() -> None:
    docs = {inside(path): ast.get_docstring(ast.parse(path.read_text())) or "" for path in SOURCES}
    assert not [name for name, doc in docs.items() if not re.match(r"[^\n]{19,}[.?](\n\n|$)", doc)]


AUDITED = """
import json, sys
seen = []
def hook(event, args):
    if event.startswith(("subprocess.", "socket.", "urllib.", "os.exec", "os.posix_spawn", "os.fork", "os.system")):
        seen.append(event)
    elif event in ("os.mkdir", "os.rename", "os.remove", "os.chmod", "sqlite3.connect"):
        seen.append(event)
    elif event == "open":
        path, mode, flags = args
        if (isinstance(mode, str) and set(mode) & set("wax+")) or (mode is None and flags & 3):
            seen.append(f"writes {path}")
        if str(path).endswith("entry_points.txt"):
            seen.append("reads entry points")
sys.addaudithook(hook)
before = set(sys.modules)
import MODULE
print(json.dumps({"events": seen, "modules": sorted({name.split(".")[0] for name in set(sys.modules) - before})}))
"""


def imported(module: str) -> tuple[list[str], set[str]]:
    """Return what a fresh interpreter did while it imported a module, and what it loaded."""
    code = AUDITED.replace("MODULE", module)
    ran = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, check=True)
    said = json.loads(ran.stdout)
    return said["events"], set(said["modules"])


def test_importing_does_nothing_and_loads_nothing_heavy() -> None:
    events, modules = imported("tunewise")
    assert "tunewise" in modules
    assert not events
    assert not modules & {"numpy", "scipy", "torch", "sklearn", "click", "rich", "msgspec", "sqlite3", "asyncio"}


def test_the_serving_path_loads_nothing_heavy() -> None:
    events, modules = imported("tunewise.session")
    assert not [
        event for event in events if not event.startswith("ctypes.")
    ]  # looks a symbol of libc up, starts nothing
    assert not modules & {"numpy", "scipy", "torch", "sklearn", "click", "rich"}


def test_imports_point_one_way() -> None:
    command = Path(sys.executable).parent / "lint-imports"
    ran = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_changelog_speaks_of_this_version() -> None:
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] == tunewise.__version__


def lines_of(path: Path) -> int:
    return len(path.read_bytes().splitlines())


def test_no_file_grows_too_long() -> None:
    made = (".parquet", "_model.json")  # measured and learned, not written
    mine = [path for path in TEXTS if path.name != "LICENSE" and not path.name.endswith(made)]
    assert not {str(path.relative_to(ROOT)): lines_of(path) for path in mine if lines_of(path) > LONGEST}


def private_places(text: str) -> Iterator[str]:
    yield from re.findall(r"(?<![\w.~$}])/(?:work|root|Users)/\S*", text)


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    assert list(private_places("see /" + "root/x")) == ["/" + "root/x"]
    named = {str(path.relative_to(ROOT)): list(private_places(path.read_text(errors="replace"))) for path in TEXTS}
    assert not {path: found for path, found in named.items() if found}
