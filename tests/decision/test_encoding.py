import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunewise.decision import Space, boolean, integer, permutation, pow2

values = st.one_of(
    st.lists(st.integers(-4, 9), min_size=1, max_size=5, unique=True),
    st.just(["x", "y", None]),
    st.just(boolean()),
    st.just(pow2(1, 32)),
    st.just(permutation("abc")),
    st.just(integer(0, 2**60, 7)),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(values, min_size=1, max_size=4), st.integers(0, 9))
def test_many_rows_are_encoded_as_each_one_is(lists, seed):
    space = Space({f"p{i}": each for i, each in enumerate(lists)})
    sample = space.sample(20, seed)
    places = np.array([space.places(config) for config in sample])
    assert space.encode_table(places).tolist() == [space.encode(config) for config in sample]


def test_a_whole_table_can_be_encoded():
    space = Space({"a": pow2(1, 8), "w": ["x", "y", "z"], "o": permutation("ij")}, ["a > 1 or w == 'x'"])
    encoded = space.encode_table(space.table())
    assert encoded.dtype == np.float64
    assert encoded.tolist() == [space.encode(config) for config in space]


def test_no_rows_keep_their_width():
    space = Space({"a": pow2(1, 8), "w": ["x", "y", "z"]})
    assert space.encode_table(np.empty((0, 2), np.int32)).shape == (0, 4)


@pytest.mark.parametrize("shape", [(3,), (3, 1), (1, 2, 3)])
def test_what_is_not_rows_of_places_is_refused(shape):
    with pytest.raises(ValueError, match="not rows of 2 places"):
        Space({"a": [1, 2], "b": [1, 2]}).encode_table(np.zeros(shape, int))
