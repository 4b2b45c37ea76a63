"""Our export files: one fact a line with a checksum each, so that damage costs the record it hits and no other."""

import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec

from tunewise.decision import Subject, Trial, Verdict
from tunewise.decision.canonical import MAX_RECORD_BYTES
from tunewise.formats import facts
from tunewise.formats.writing import replaced

VERSION = 1
_CRC_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Record:
    """One fact and what it is about: complete in itself."""

    subject: Subject
    fact: Trial | Verdict


@dataclass(slots=True)
class Tally:
    """What became of the records of a file."""

    read: int = 0
    damaged: int = 0  # torn, or not what its checksum says
    refused: int = 0  # whole, but of a kind or with values that no measurement has


class _Line(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    version: Annotated[int, msgspec.Meta(ge=VERSION, le=VERSION)]
    subject: facts.SubjectFact
    trial: facts.TrialFact | None = None
    verdict: facts.VerdictFact | None = None


_DECODER = msgspec.json.Decoder(_Line)


def frame(record: Record) -> bytes:
    """Return a record as a line, from the newline that ends whatever was torn before it to its own newline."""
    subject = msgspec.Raw(facts.write_subject(record.subject))
    if isinstance(record.fact, Trial):
        kind, fact = "trial", msgspec.Raw(facts.write_trial(record.fact))
    else:
        kind, fact = "verdict", msgspec.Raw(facts.write_verdict(record.fact))
    body = msgspec.json.encode({"version": VERSION, "subject": subject, kind: fact})
    return b"\n%08x %s\n" % (zlib.crc32(body), body)


def write(path: Path, records: Iterable[Record]) -> int:
    """Write records to a new file that appears whole or not at all, replacing an older one; return how many.

    Raises InvalidFile where that cannot be done.
    """
    count = 0
    with replaced(path) as beside, open(beside, "wb") as stream:
        for record in records:
            stream.write(frame(record))
            count += 1
        stream.flush()
        os.fsync(stream.fileno())
    return count


def append(path: Path, records: Iterable[Record]) -> int:
    """Add records to the end of a file, each in one write, and return how many; a torn end before them does no harm."""
    count = 0
    with open(path, "ab", buffering=0) as stream:
        for record in records:
            raw = frame(record)
            if stream.write(raw) != len(raw):
                raise OSError(f"{path}: the disk took a part of a record only")
            count += 1
        os.fsync(stream.fileno())
    return count


def read(stream: BinaryIO, tally: Tally) -> Iterator[Record]:
    """Yield the records of a file one at a time and count in `tally` what was read, damaged and refused."""
    for line in _lines(stream, tally):
        body = _body(line)
        if body is None:
            tally.damaged += 1
            continue
        try:
            record = _record(body)
        except ValueError:
            tally.refused += 1
            continue
        tally.read += 1
        yield record


def _lines(stream: BinaryIO, tally: Tally) -> Iterator[bytes]:
    """Yield the lines that are not empty; one longer than any record is passed over without being held in memory."""
    limit = MAX_RECORD_BYTES + _CRC_DIGITS + 2
    while line := stream.readline(limit):
        if len(line) == limit and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = stream.readline(limit)
            tally.damaged += 1
            continue
        stripped = line.rstrip(b"\r\n")
        if stripped:
            yield stripped


def _body(line: bytes) -> bytes | None:
    """Return the JSON of a line if its checksum holds."""
    crc, space, body = line[:_CRC_DIGITS], line[_CRC_DIGITS : _CRC_DIGITS + 1], line[_CRC_DIGITS + 1 :]
    return body if space == b" " and crc == b"%08x" % zlib.crc32(body) else None


def _record(body: bytes) -> Record:
    try:
        line = _DECODER.decode(body)
    except RecursionError:
        raise ValueError("JSON nested too deep") from None
    if (line.trial is None) == (line.verdict is None):
        raise ValueError("a record holds a trial or a verdict")
    fact = facts.trial_of(line.trial) if line.trial else facts.verdict_of(line.verdict)  # type: ignore[arg-type]
    return Record(facts.subject_of(line.subject), fact)
