"""Markup escapes by construction, and knows which elements have no end."""

import pytest

from tunewise.report.markup import Markup, element, escaped, fragment, short


def test_text_is_escaped_and_markup_is_not() -> None:
    assert element("p", "<b>", element("b", "&")) == "<p>&lt;b&gt;<b>&amp;</b></p>"


def test_a_quote_cannot_leave_its_attribute() -> None:
    assert element("a", href="\" onclick='x'") == '<a href="&quot; onclick=&#x27;x&#x27;"></a>'


def test_what_is_none_is_left_out() -> None:
    assert element("td", None, "x", class_=None, hidden=False, open=True) == "<td open>x</td>"


def test_names_of_attributes_get_their_hyphens() -> None:
    assert element("g", stroke_width=1.5, class_="a") == '<g stroke-width="1.5" class="a"></g>'


def test_an_element_without_an_end_has_none() -> None:
    assert element("meta", charset="utf-8") == '<meta charset="utf-8">'


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\ud800", "\uffff"])
def test_what_no_document_may_hold_is_replaced(character: str) -> None:
    assert escaped(f"a{character}b") == "a\ufffdb"


def test_a_fragment_of_markup_stays_markup() -> None:
    assert isinstance(fragment(Markup("<br>"), "<"), Markup)


def test_a_long_text_is_cut_with_an_ellipsis() -> None:
    assert [short("abcd", 4), short("abcde", 4)] == ["abcd", "abc…"]
