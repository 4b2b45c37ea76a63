"""Nets as values: what they guess without any library, what they refuse to be, and the two files they are kept in."""

import json
from math import log1p
from pathlib import Path
from struct import pack
from typing import Any

import msgspec
import pytest

from tunewise.errors import InvalidModel, NotFound
from tunewise.models import Card, Columns, Derived, Layer, Model, Net, Number, Scale, Word, dump, load, parse, save
from tunewise.models.model import beside

COLUMNS = Columns(
    problem=(Number("m", 1.0, 4096.0),),
    config=(Number("tile", 8.0, 64.0), Word("order", ("row", "column"))),
    derived=(Derived("tiles", (0, 1)),),
)
SCALES = (Scale(0, 2.0, 4.0, is_log=True), Scale(2, 0.5, 0.5, word=1), Scale(3, 0.0, 1.0))


def layer(weights: list[list[float]], biases: list[float]) -> Layer:
    flat = [number for row in weights for number in row]
    return Layer(len(weights[0]), len(weights), pack(f"<{len(flat)}f", *flat), pack(f"<{len(biases)}f", *biases))


NET = Net(SCALES, (layer([[1, 0, 0.5], [0, -1, 0]], [0, 0.25]), layer([[2, -1]], [0.5])))


def model(**changed: Any) -> Model:
    choices = ({"tile": 8, "order": "row"}, {"tile": 64, "order": "column"})
    return Model(**{"card": Card(decision="d"), "choices": choices, "columns": COLUMNS, "body": NET, **changed})


def test_a_net_guesses_by_scaling_multiplying_and_clipping() -> None:
    first = max((log1p(100.0) - 2.0) / 4.0 + 0.5 * 2.0, 0.0)
    second = max(-(1.0 - 0.5) / 0.5 + 0.25, 0.0)
    assert NET.guess([100.0, 64.0, 1.0, 2.0]) == pytest.approx(2 * first - second + 0.5, abs=1e-12)


def test_inputs_far_from_all_that_was_seen_are_taken_as_just_far() -> None:
    assert SCALES[2].value([1.0, 8.0, 0.0, 1e300]) == SCALES[2].value([1.0, 8.0, 0.0, 8.0]) == 8.0


def test_a_net_ranks_the_choices() -> None:
    assert model().rank({"m": 32}) == [1, 0]
    assert model().rank({"m": 10**9}) == []


def test_a_net_is_kept_as_json_and_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    save(model(), path)
    assert load(path) == model()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["net.json", "net.json.safetensors"]
    raw = beside(path).read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert header["layers.0.weight"] == {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}


def test_a_net_is_one_text_too() -> None:
    assert parse(dump(model())) == model()


def test_weights_that_are_not_its_own_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    save(model(), path)
    raw = beside(path).read_bytes()
    beside(path).write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    with pytest.raises(InvalidModel, match="not those it was saved with"):
        load(path)
    beside(path).unlink()
    with pytest.raises(NotFound, match=r"net\.json\.safetensors"):
        load(path)


def test_a_net_without_its_weights_says_where_they_are(tmp_path: Path) -> None:
    save(model(), tmp_path / "net.json")
    with pytest.raises(InvalidModel, match="safetensors file beside it"):
        parse((tmp_path / "net.json").read_bytes())


def test_a_net_cannot_become_code() -> None:
    with pytest.raises(InvalidModel, match="train a ranker"):
        model().in_trees()


@pytest.mark.parametrize(
    "body",
    [
        Net((), NET.layers),
        Net(SCALES, ()),
        Net(SCALES[:2], NET.layers),
        Net(SCALES, NET.layers[:1]),
        Net(SCALES, (*NET.layers, layer([[float("nan")]], [0]))),
        Net(SCALES, (*NET.layers, layer([[1e9]], [0]))),
        Net((*SCALES[:2], Scale(4, 0.0, 1.0)), NET.layers),
        Net((*SCALES[:2], Scale(3, 0.0, 0.0)), NET.layers),
        Net((*SCALES[:2], Scale(3, 0.0, 1.0, word=0)), NET.layers),
        Net((*SCALES[:2], Scale(2, 0.0, 1.0, word=2)), NET.layers),
        Net((*SCALES[:2], Scale(2, 0.0, 1.0)), NET.layers),
        Net(SCALES, (msgspec.structs.replace(NET.layers[0], weights=b"123"), NET.layers[1])),
    ],
)
def test_a_net_that_could_not_answer_is_refused(body: Net) -> None:
    with pytest.raises(InvalidModel):
        model(body=body).check()
