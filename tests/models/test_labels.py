"""Configs in few words: no name longer than needed, and never one for two."""

from tunewise.models.labels import key, labels, shared, spelled, tags

LONG = [
    {"VW": 16, "MR": 4, "NV": 4, "KC": 64, "NC": 1048576, "MC": 128, "PACKA": 0},
    {"VW": 16, "MR": 4, "NV": 4, "KC": 64, "NC": 1048576, "MC": 128, "PACKA": 1},
    {"VW": 16, "MR": 8, "NV": 2, "KC": 256, "NC": 64, "MC": 1048576, "PACKA": 1},
]


def test_a_config_of_one_parameter_is_its_value() -> None:
    assert [spelled({"choice": "fft"}), spelled({"a": 1, "b": 2})] == ["fft", "a=1, b=2"]


def test_labels_name_only_what_differs() -> None:
    assert labels([{"a": 1, "b": 2}, {"a": 1, "b": 3}]) == ["b=2", "b=3"]
    assert labels([{"choice": "fft"}, {"choice": "direct"}]) == ["fft", "direct"]
    assert labels([{"a": 1, "b": 2}]) == ["a=1, b=2"]


def test_what_configs_share_is_told_once() -> None:
    assert shared([{"a": 1, "b": 2}, {"a": 1, "b": 3}]) == {"a": 1}
    assert shared([{"a": 1}, {"a": True}]) == {}
    assert shared([{"a": 1}]) == {}


def test_a_config_that_lacks_what_differs_is_spelled_out() -> None:
    assert labels([{"a": 1}, {"a": 1, "b": 2}]) == ["1", "b=2"]


def test_tags_that_would_be_long_have_numbers_and_end_after_whole_values() -> None:
    assert tags(LONG) == [
        "#0 MR=4 NV=4 KC=64 NC=1048576 ...",
        "#1 MR=4 NV=4 KC=64 NC=1048576 ...",
        "#2 MR=8 NV=2 KC=256 NC=64 ...",
    ]


def test_tags_are_never_alike() -> None:
    alike = [{"way": 1}, {"way": "1"}]
    endless = [{"way": "x" * 100 + end} for end in "ab"]
    for choices in (LONG, alike, endless):
        assert len(set(tags(choices))) == len(choices)
        assert max(map(len, tags(choices))) <= 34


def test_short_labels_need_no_numbers() -> None:
    assert tags([{"a": 1, "b": 2}, {"a": 1, "b": 3}]) == ["b=2", "b=3"]
    assert key([{"a": 1, "b": 2}, {"a": 1, "b": 3}], [0, 1]) == {}


def test_numbers_are_explained_with_every_parameter() -> None:
    assert key(LONG, [2, 0, 2]) == {"#0": spelled(LONG[0]), "#2": spelled(LONG[2])}
