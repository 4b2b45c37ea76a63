import pytest

from tunewise.decision import NO_CHECK, Check, Declaration, Policy, Problem, Space
from tunewise.errors import InvalidDecision, InvalidProblem, InvalidRule

SPACE = Space({"tile": [8, 16], "way": ["a", "b"]}, rules=["tile > 8 or way == 'a'"])
DEFAULT = {"way": "a", "tile": 8}


def declare(**changes):
    return Declaration(**{"name": "gemm", "space": SPACE, "default": DEFAULT, **changes})


def test_the_default_is_a_config_in_the_order_of_the_space():
    assert list(declare().default.items()) == [("tile", 8), ("way", "a")]


@pytest.mark.parametrize(
    ("default", "reason"),
    [
        ({"tile": 9, "way": "a"}, "tile=9 is not one of"),
        ({"tile": 8, "way": "b"}, "does not hold"),
        ({"tile": 8}, "'way' is missing"),
        ({"tile": 8, "way": "a", "tyle": 1}, "did you mean 'tile'"),
        (None, "not a config"),
        ([8, "a"], "not a config"),
    ],
)
def test_a_default_outside_the_space_is_refused_with_the_reason(default, reason):
    with pytest.raises(InvalidDecision, match=rf"gemm: .*{reason}"):
        declare(default=default)


def test_a_space_that_nothing_satisfies_has_no_default():
    with pytest.raises(InvalidDecision, match="1 < 0"):
        declare(space=Space({"a": [1]}, ["1 < 0"]), default={"a": 1})


def test_a_rule_that_breaks_on_the_default_is_named():
    with pytest.raises(InvalidRule, match="broke"):
        declare(space=Space({"a": ["x"]}, ["a < 3"]), default={"a": "x"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("name", ""), ("name", "  "), ("name", None), ("name", "x" * 201), ("space", {"a": [1]}), ("policy", {})),
        *(("check", False), ("features", {"m": 1}), ("inputs", [1]), ("near", 0.5), ("near", "2"), ("near", None)),
        *(
            ("near", float("nan")),
            ("near", float("inf")),
            ("libraries", "numpy"),
            ("libraries", [3]),
            ("libraries", [""]),
        ),
        *(("variables", "OMP"), ("version", 2), ("backend", None), ("device", 0), ("derived", [len])),
        *(("derived", {"a": 3}),),
    ],
    ids=str,
)
def test_a_declaration_that_cannot_work_is_refused(name, value):
    with pytest.raises(InvalidDecision, match=name):
        declare(**{name: value})


def test_lists_of_names_are_kept_as_tuples():
    made = declare(libraries=["numpy"], variables=["OMP_NUM_THREADS"])
    assert (made.libraries, made.variables) == (("numpy",), ("OMP_NUM_THREADS",))


def test_derived_features_come_from_the_problem_or_from_both():
    made = declare(
        derived={
            "area": lambda p: p["m"] * p["n"],
            "waste": lambda p, c: p["m"] % c["tile"],
            "scaled": lambda p, by=2: p["m"] * by,
            "maybe": lambda p, config=None: config["tile"] * 1.0,
            "size": len,
        }
    )
    problem = Problem({"m": 10, "n": 3})
    assert made.derive(problem) == {"m": 10, "n": 3, "area": 30, "scaled": 20, "size": 2}
    both = made.derive(problem, {"tile": 8, "way": "a"})
    assert both == {**made.derive(problem), "waste": 2, "maybe": 8}
    assert type(both["maybe"]) is int


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda p: p["m"] / 0, "'x' broke on m=10: ZeroDivisionError"),
        (lambda p: p["q"], "'x' broke on m=10: KeyError"),
        (lambda p: [1], r"x=\[1\] is a list"),
        (lambda p: None, "x=None is a NoneType"),
        (lambda p: float("nan"), "x=nan is not a finite number"),
    ],
    ids=["division", "key", "list", "none", "nan"],
)
def test_a_derived_feature_that_breaks_is_named_with_its_decision(function, reason):
    with pytest.raises(InvalidProblem, match=rf"^gemm: derived feature {reason}"):
        declare(derived={"x": function}).derive(Problem({"m": 10}))


def test_a_derived_feature_cannot_hide_a_feature():
    with pytest.raises(InvalidProblem, match="'m' is both"):
        declare(derived={"m": len}).derive(Problem({"m": 10}))


def test_changing_the_mapping_afterwards_changes_nothing():
    derived = {"size": len}
    made = declare(derived=derived)
    derived["more"] = len
    assert made.derive(Problem({"m": 1})) == {"m": 1, "size": 1}


def test_features_that_are_no_problem_name_the_decision():
    with pytest.raises(InvalidProblem, match=r"^gemm: features must be a dict"):
        declare().problem([1, 2])
    assert declare().problem({"m": 1}) == Problem({"m": 1})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("rtol", -1), ("rtol", float("nan")), ("atol", "x"), ("atol", float("inf")), ("repeats", -1)),
        *(("repeats", 1.5), ("repeats", True), ("reference", 3), ("inputs", [1]), ("compare", "close")),
    ],
)
def test_a_check_that_makes_no_sense_is_refused_by_name(name, value):
    with pytest.raises(InvalidDecision, match=f"check: {name}="):
        Check(**{name: value})


def test_checking_is_on_unless_turned_off():
    assert declare().check.is_on
    assert not declare(check=NO_CHECK).check.is_on
    assert declare().policy == Policy()
