"""Documents as programs: the blocks of a Markdown file become one script whose line numbers are the document's."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(r"```(\w*)(.*)")
_TITLE = re.compile(r'title="([\w.-]+)"')
_PRELUDE = "import shlex as _shlex, subprocess as _subprocess, sys as _sys"


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what the fence says after it, and its lines from `start` (0-based) on."""

    language: str
    info: str
    start: int
    lines: tuple[str, ...]


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a document, in order."""
    language, info, start = "", "", -1
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if start < 0 and line.startswith("```"):
            fence = _FENCE.fullmatch(line)
            assert fence is not None, f"line {number + 1} is not a fence: {line}"
            language, info, start = fence[1], fence[2].strip(), number + 1
        elif start >= 0 and line == "```":
            yield Block(language, info, start, tuple(lines[start:number]))
            start = -1
    assert start < 0, f"the block of line {start} is never closed"


def script(text: str) -> str:
    """Return the document as a script: Python as it stands, `$ tunewise` lines run, titled blocks written to a file."""
    lines = [""] * (len(text.splitlines()) + 1)
    for block in blocks(text):
        title = _TITLE.search(block.info)
        if block.language in ("python", "toml") and title:
            body = "\n".join(block.lines) + "\n"
            lines[block.start] = f"open({title[1]!r}, 'w').write({body!r})"
        elif block.language == "python" and block.info != "no-run":
            lines[block.start : block.start + len(block.lines)] = block.lines
        elif block.language == "console":
            for offset, line in enumerate(block.lines):
                if line.startswith("$ tunewise "):
                    lines[block.start + offset] = _command(line[2:])
    lines[0] = _PRELUDE  # the first line of a document is its title
    return "\n".join(lines) + "\n"


def _command(line: str) -> str:
    words = f"_shlex.split({line!r}, comments=True)[1:]"
    return f"_subprocess.run([_sys.executable, '-m', 'tunewise', *{words}], check=True)"


def is_runnable(text: str) -> bool:
    """Return whether a document has anything to run."""
    return any(line and line != _PRELUDE for line in script(text).splitlines())


def sections(text: str, level: int) -> dict[str, str]:
    """Return the sections below headings of a level, by heading; code is left out of neither."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        mark = re.match(r"(#+) (.*)", line)
        if mark and len(mark[1]) <= level:
            current = found.setdefault(mark[2], []) if len(mark[1]) == level else []
        current.append(line)
    return {heading: "\n".join(lines) for heading, lines in found.items()}
