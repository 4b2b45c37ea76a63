import functools
import os
import subprocess
import sys
import types

import pytest

from limits import HANG_S
from tunewise.decision.source import fingerprint


def module(text, name="user_code", **extra):
    made = types.ModuleType(name)
    made.__dict__.update(extra)
    exec(compile(text, f"/somewhere/{name}.py", "exec"), made.__dict__)
    return made


def digest(text, entry="run", name="user_code", **extra):
    return fingerprint(getattr(module(text, name, **extra), entry))


BASE = """
SCALE = 2
TABLE = {"a": [1, 2]}
def inner(x):
    return x * SCALE
def helper(x):
    return inner(x) + 1
class Shape:
    width = 4
    def area(self, n=1):
        return self.width * n
def outer(k):
    def closed(x):
        return x + k
    return closed
add = outer(5)
def run(x, y=3, *, z=4):
    def nested(q):
        return q - 7
    return helper(x) + y + z + nested(x) + TABLE["a"][0] + Shape().area() + add(x) + len([v for v in {1, 2, "x"} if v])
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("inner(x) + 1", "inner(x) + 2"),
        ("x * SCALE", "x / SCALE"),
        ("SCALE = 2", "SCALE = 3"),
        ("SCALE = 2", "SCALE = 2.0"),
        ('{"a": [1, 2]}', '{"a": [1, 3]}'),
        ('{"a": [1, 2]}', '{"a": [[1], 2]}'),
        ("y=3", "y=4"),
        ("z=4", "z=5"),
        ("y=3, *, z=4", "y=3, z=4"),
        ("q - 7", "q - 8"),
        ("width = 4", "width = 5"),
        ("self.width * n", "self.width + n"),
        ("n=1", "n=2"),
        ("outer(5)", "outer(6)"),
        ("x + k", "x - k"),
        ('{1, 2, "x"}', '{1, 2, "y"}'),
        ("run(x,", "run(w,"),
    ],
)
def test_a_change_anywhere_below_changes_the_fingerprint(old, new):
    assert old in BASE
    assert digest(BASE.replace(old, new)) != digest(BASE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def inner(x):", "\n\n# a comment\ndef inner(x):  # another"),
        ("def helper(x):", 'def helper(x):\n    """Help."""'),
        ("    def closed(x):", '    def closed(x):\n        """Words."""'),
        ("    width = 4", '    """A shape."""\n    width = 4'),
        ("SCALE = 2", "import math\nUNUSED = 9\nSCALE = 2"),
        ("x * SCALE", "(x\n            * SCALE)"),
    ],
)
def test_comments_docstrings_lines_and_unused_names_do_not_matter(old, new):
    assert old in BASE
    assert digest(BASE.replace(old, new)) == digest(BASE)


def test_a_docstring_on_a_function_that_returns_nothing_does_not_matter():
    assert digest("def run(x): x.go()") == digest('def run(x):\n  "Go."\n  x.go()')


def test_file_and_module_name_do_not_matter():
    assert digest(BASE, name="a") == digest(BASE, name="b")


def test_a_helper_reached_through_a_module_counts():
    text = "def run(x): return tools.scale(x)"
    old = module("FACTOR = 2\ndef scale(x): return x * FACTOR", "tools", __file__="/somewhere/tools.py")
    new = module("FACTOR = 3\ndef scale(x): return x * FACTOR", "tools", __file__="/somewhere/tools.py")
    assert digest(text, tools=old) != digest(text, tools=new)
    assert digest(text, tools=old) == digest(text, tools=old)


def test_an_installed_package_counts_by_name_only():
    assert digest("import json\ndef run(x): return json.dumps(x)") == digest(
        "import json\ndef run(x): return json.dumps(x)"
    )
    assert digest("from json import dumps as f\ndef run(x): return f(x)") != digest(
        "from json import loads as f\ndef run(x): return f(x)"
    )
    assert digest("from math import sin as f\ndef run(x): return f(x)") != digest(
        "from math import cos as f\ndef run(x): return f(x)"
    )


def test_what_the_code_itself_assigns_is_state():
    text = "count = 0\ndef run(x):\n    global count\n    count += 1\n    return x"
    made = module(text)
    before = fingerprint(made.run)
    made.run(1)
    assert made.count == 1
    assert fingerprint(made.run) == before


def test_a_lower_case_list_is_state_and_an_upper_case_one_is_not():
    text = "log, LOG = [], []\ndef run(x):\n    log.append(x)\n    return LOG"
    made = module(text)
    before = fingerprint(made.run)
    made.run(1)
    assert fingerprint(made.run) == before
    made.LOG.append(1)
    assert fingerprint(made.run) != before


def test_running_a_function_often_does_not_change_it():
    made = module(BASE)
    before = fingerprint(made.run)
    for _ in range(200):
        made.run(2)
    assert fingerprint(made.run) == before


def test_recursion_and_cycles_end():
    text = """
RING = []
RING.append(RING)
WEB = [RING, RING]
LOOP = {"self": WEB}
LOOP["loop"] = LOOP
DEEP = ()
for _ in range(5000):
    DEEP = (DEEP, DEEP)
def even(n): return n == 0 or odd(n - 1)
def odd(n): return n != 0 and even(n - 1)
def run(n): return even(n), RING, WEB, LOOP, DEEP
run.__wrapped__ = run
"""
    assert digest(text) == digest(text)


def test_a_chain_of_two_thousand_helpers_is_followed_to_its_end():
    chain = "".join(f"def f{i}(x): return f{i + 1}(x)\n" for i in range(2000))
    text = chain + "def f2000(x): return x\ndef run(x): return f0(x)"
    assert digest(text) != digest(text.replace("f2000(x): return x", "f2000(x): return -x"))


def test_partials_methods_lambdas_and_callable_objects_differ_by_what_they_hold():
    text = """
import functools
class Kernel:
    def __init__(self, n): self.n = n
    def __call__(self, x): return x * self.n
    def method(self, x): return x + self.n
    @staticmethod
    def still(x): return x
    @classmethod
    def of(cls, x): return x
    @property
    def size(self): return self.n
def scale(x, by): return x * by
one, two = functools.partial(scale, by=1), functools.partial(scale, by=2)
k1, k2 = Kernel(1), Kernel(2)
m1, m2 = k1.method, k2.method
l1, l2 = (lambda x: x + 1), (lambda x: x + 2)
s1, s2 = Kernel.still, Kernel.of
c1, c2 = functools.cache(lambda x: x + 1), functools.cache(lambda x: x + 2)
"""
    made, again = module(text), module(text)
    names = ("one", "two", "k1", "k2", "m1", "m2", "l1", "l2", "s1", "s2", "c1", "c2", "Kernel")
    assert len({fingerprint(getattr(made, name)) for name in names}) == len(names)
    assert [fingerprint(getattr(made, n)) for n in names] == [fingerprint(getattr(again, n)) for n in names]


def test_a_decorator_and_what_it_wraps_both_count():
    text = """
import functools
def twice(f):
    @functools.wraps(f)
    def wrapper(x): return f(f(x))
    return wrapper
@twice
def run(x): return x + 1
"""
    changed = {digest(text), digest(text.replace("f(f(x))", "f(x)")), digest(text.replace("x + 1", "x + 2"))}
    assert len(changed) == 3


def test_the_shape_of_a_constant_counts():
    assert digest("K = ((1, 2), 3)\ndef run(): return K") != digest("K = (1, (2, 3))\ndef run(): return K")
    assert digest("K = 1\ndef run(): return K") != digest("K = True\ndef run(): return K")
    assert digest("K = '1'\ndef run(): return K") != digest("K = 1\ndef run(): return K")


def test_an_object_can_speak_for_itself():
    class Source:
        def __init__(self, text):
            self.text = text

        def tunewise_fingerprint(self):
            return self.text

        def __call__(self):
            return None

    assert fingerprint(Source("a")) == fingerprint(Source("a")) != fingerprint(Source("b"))


def test_several_functions_have_one_fingerprint_in_their_order():
    def f():
        return 1

    def g():
        return 2

    assert fingerprint((f, g)) != fingerprint((g, f))


def test_builtins_and_odd_callables_have_one_too():
    assert len({fingerprint(f) for f in (len, sum, dict, functools.partial(print, 1), "x".join)}) == 5


SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
{order}
from {name} import start
from tunewise.decision.source import fingerprint
print(fingerprint(start))
"""


def test_fresh_processes_agree_whatever_their_seed_directory_and_imports(tmp_path):
    (tmp_path / "user_tools.py").write_text(BASE + "\nclass Later: pass\nNAMES = {'x', 'y', 'z'}\n")
    main = f"""
import user_tools
from user_tools import helper as other
{BASE}
def start(x):
    class Local: pass
    return run(x), other(x), user_tools.NAMES, user_tools.Shape, Local, __name__
if __name__ == "__main__":
    from tunewise.decision.source import fingerprint
    print(fingerprint(start))
"""
    (tmp_path / "user_main.py").write_text(main)
    runs = []
    for seed, order, folder in ((0, "", "/"), (1, "import json, user_tools", str(tmp_path)), (2, "import ast", "/tmp")):
        code = SCRIPT.format(folder=str(tmp_path), order=order, name="user_main")
        runs.append(run_python(["-c", code], seed, folder))
    runs.append(run_python([str(tmp_path / "user_main.py")], 3, "/"))
    runs.append(run_python(["-B", "-m", "user_main"], 4, str(tmp_path)))
    assert len(set(runs)) == 1, runs
    assert len(runs[0]) == 32


def run_python(arguments, seed, folder):
    env = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(
        [sys.executable, *arguments], env=env, cwd=folder, capture_output=True, text=True, check=True, timeout=HANG_S
    )
    return done.stdout.strip()
