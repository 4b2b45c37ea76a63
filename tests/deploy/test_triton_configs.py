"""Triton's configs as ours, and back."""

from enum import Enum

import pytest
from triton_standins import Config, forty

from tunewise.deploy.triton_configs import Menu, key_of
from tunewise.errors import InvalidDecision


def test_a_config_is_its_meta_parameters_and_how_it_is_launched() -> None:
    menu = Menu([Config({"block": 64, "is_even": True}, num_warps=8)])
    assert menu.config_of(menu.configs[0]) == {
        "block": 64, "is_even": True, "num_warps": 8, "num_stages": 3, "num_ctas": 1
    }  # fmt: skip


def test_the_space_of_a_list_holds_exactly_its_configs() -> None:
    menu = Menu(forty())
    assert menu.space.count() == 40
    assert all(menu.config_of(config) in menu.space for config in menu.configs)


def test_a_parameter_that_only_some_configs_set_is_none_in_the_others() -> None:
    menu = Menu([Config({"block": 64}), Config({"block": 64, "split": 2}, maxnreg=128)])
    assert [config["split"] for config in map(menu.config_of, menu.configs)] == [None, 2]
    assert [config["maxnreg"] for config in map(menu.config_of, menu.configs)] == [None, 128]
    assert menu.space.count() == 2


def test_values_that_are_no_numbers_become_words() -> None:
    class Order(Enum):
        ROW = "row"

    menu = Menu([Config({"shape": (1, 2), "order": Order.ROW, "long": tuple(range(200))})])
    config = menu.config_of(menu.configs[0])
    assert (config["shape"], config["order"]) == ("(1, 2)", "row")
    assert str(config["long"]).startswith("sha256:")


def test_the_default_is_the_first_config_or_the_first_with_the_values_named() -> None:
    menu = Menu(forty())
    assert menu.default() == menu.config_of(menu.configs[0])
    assert menu.default({"block": 128, "num_warps": 8}) == menu.config_of(menu.configs[30])


def test_a_default_that_is_not_listed_is_refused_with_the_parameters_there_are() -> None:
    with pytest.raises(InvalidDecision, match=r"no config of the kernel has the values \{'block': 7\}.*num_warps"):
        Menu(forty()).default({"block": 7})


def test_of_two_configs_that_differ_in_a_hook_only_the_first_is_meant() -> None:
    first, second = Config({"block": 64}), Config({"block": 64}, pre_hook=print)
    menu = Menu([first, second])
    assert menu.offered(menu.configs) == {key_of(menu.config_of(first)): first}
