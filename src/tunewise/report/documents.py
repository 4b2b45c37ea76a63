"""What all our HTML documents share: a head whose policy lets nothing be loaded, and files that are written whole."""

import base64
import hashlib
from pathlib import Path

from tunewise.models.whole import write_whole
from tunewise.report.markup import Markup, element


def head(title: str, style: str, *, is_alone: bool = True) -> Markup:
    """Return the head of a document; one that `is_alone` carries its policy itself, others are sent with theirs."""
    policy = element("meta", http_equiv="Content-Security-Policy", content=closed(style)) if is_alone else None
    return element(
        "head",
        element("meta", charset="utf-8"),
        policy,
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("style", Markup(style)),
    )


def write(document: str, path: Path | str) -> None:
    """Write a document to a file, whole or not at all; raises InvalidFile where that cannot be done."""
    write_whole(path, document.encode())


def digest_of(text: str) -> str:
    """Return the digest by which a policy knows a style or a script."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def closed(style: str) -> str:
    """Return a policy under which nothing is loaded, nothing runs, and only our own stylesheet counts."""
    return f"default-src 'none'; style-src 'sha256-{digest_of(style)}'; base-uri 'none'; form-action 'none'"
