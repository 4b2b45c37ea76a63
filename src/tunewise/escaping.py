"""Foreign text, such as names in files and messages of servers, as text that no terminal and no log obeys."""


def one_line(text: str) -> str:
    """Return a text with line ends, control characters, bidi marks and half characters written out, as in `\\x1b`."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def harmless(text: str) -> str:
    """Return a text as `one_line` does, but with its line ends."""
    return text if text.isprintable() else "\n".join(map(one_line, text.split("\n")))
