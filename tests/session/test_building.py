from tunewise.decision import Failure
from tunewise.errors import MissingPart
from tunewise.session.building import built

CONFIGS = [{"x": place} for place in range(6)]


def test_what_breaks_is_a_failure_of_its_config_alone():
    def build(config):
        if config["x"] == 2:
            raise ValueError("no such instruction")
        if config["x"] == 4:
            raise MissingPart("there is no compiler")

    found = built(build, CONFIGS)
    assert found[2] == Failure("compile", "ValueError: no such instruction")
    assert found[4] == Failure("compile", "there is no compiler")
    assert [found[place] for place in (0, 1, 3, 5)] == [None] * 4


def test_nothing_is_built_that_nobody_will_measure():
    made = []
    assert built(made.append, CONFIGS, lambda: True) == [None] * 6
    assert made == []
