"""Which texts a model may hold: those that every file, database, header and terminal of ours can."""

MAX_TEXT = 1_000


def is_text(text: str) -> bool:
    """Return whether a text is short enough and whole: half a character could not be written."""
    return len(text) <= MAX_TEXT and (text.isascii() or not any("\ud800" <= one <= "\udfff" for one in text))
