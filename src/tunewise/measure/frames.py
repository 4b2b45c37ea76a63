"""What tuner and worker say to each other: length-prefixed JSON under a random token, believed only once checked."""

import struct
from math import isfinite
from typing import Literal

import msgspec

from tunewise.decision import Failure, FailureKind, Outcome, Timing, Value

MAX_BYTES = 1 << 20
TOKEN_BYTES = 16
_DETAIL_CHARS = 16 << 10
_HEADER = struct.Struct(f"<{TOKEN_BYTES}sI")


class BadFrame(ValueError):
    """What arrived is no answer to the question that was asked; its text says why. Never leaves this room."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do for one config: `n` samples, repeated checks, or turns of a pair with `rival` (0: enough)."""

    verb: Literal["first", "sample", "pair", "verify"]
    config: dict[str, Value]
    rival: dict[str, Value] | None = None
    n: int = 1
    best_s: float | None = None


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of a job: samples, or a failure, or (for a check that found nothing) neither.

    `taint` says why no other config may run in this worker any more; `is_refused` that the job was not even begun.
    """

    samples_s: list[float] = []
    compile_s: float | None = None
    kind: FailureKind | None = None
    detail: str = ""
    taint: str = ""
    is_refused: bool = False


_JOB = msgspec.json.Decoder(Job)
_REPLY = msgspec.json.Decoder(Reply)


def pack(token: bytes, message: Job | Reply) -> bytes:
    """Return a message as one frame; raises BadFrame if it is too long or cannot be written as JSON."""
    try:
        payload = msgspec.json.encode(message)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise BadFrame(f"it cannot be written as JSON ({error})") from None
    if len(payload) > MAX_BYTES:
        raise BadFrame(f"{len(payload)} bytes, more than the {MAX_BYTES} allowed")
    return _HEADER.pack(token, len(payload)) + payload


class Receiver:
    """Collects the bytes of one frame and turns away, as early as it can, whatever is not that frame."""

    def __init__(self, token: bytes | None = None) -> None:
        self.token = token  # None: take the token that comes
        self._bytes = bytearray()

    @property
    def missing(self) -> int:
        """How many bytes to ask for next; never more than this frame has."""
        if len(self._bytes) < _HEADER.size:
            return _HEADER.size - len(self._bytes)
        return _HEADER.size + self._length() - len(self._bytes)

    def feed(self, data: bytes) -> bytes | None:
        """Take some bytes and return the payload once it is whole; raises BadFrame for anything else."""
        self._bytes += data
        head = bytes(self._bytes[:TOKEN_BYTES])
        if self.token is not None and not self.token.startswith(head):
            raise BadFrame("it does not carry the token of the job")
        if len(self._bytes) < _HEADER.size or self.missing > 0:
            return None
        if self.missing < 0:
            raise BadFrame("something follows it")
        self.token = head
        return bytes(self._bytes[_HEADER.size :])

    def _length(self) -> int:
        length: int = _HEADER.unpack_from(self._bytes)[1]
        if length > MAX_BYTES:
            raise BadFrame(f"{length} bytes, more than the {MAX_BYTES} allowed")
        return length


def read_job(payload: bytes) -> Job:
    """Return the job in a frame from the tuner, with tuples where the config had tuples."""
    return _JOB.decode(payload)


def read_reply(payload: bytes) -> Reply:
    """Return the reply in a payload; raises BadFrame if it is not one."""
    try:
        return _REPLY.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadFrame(str(error)) from None


def outcome_of(job: Job, reply: Reply) -> Outcome | None:
    """Return what a reply means (None: checked and right); raises BadFrame for times that no clock can show."""
    if reply.kind is not None:
        return Failure(reply.kind, reply.detail)
    if job.verb == "verify":
        if reply.samples_s:
            raise BadFrame("a check has no samples")
        return None
    wanted = {"sample": job.n, "pair": 2}.get(job.verb, 1)
    if len(reply.samples_s) != wanted:
        raise BadFrame(f"{len(reply.samples_s)} samples instead of {wanted}")
    for sample in reply.samples_s:
        if not (isfinite(sample) and sample > 0):
            raise BadFrame(f"a sample of {sample!r} seconds")
    if reply.compile_s is not None and not (isfinite(reply.compile_s) and reply.compile_s >= 0):
        raise BadFrame(f"a build of {reply.compile_s!r} seconds")
    return Timing(tuple(reply.samples_s), reply.compile_s)


def reply_of(outcome: Outcome | None, taint: str = "") -> Reply:
    """Return the reply that carries an outcome."""
    if outcome is None:
        return Reply(taint=taint)
    if isinstance(outcome, Failure):
        # An exception's text may hold lone surrogates, which are no Unicode.
        detail = str(outcome.detail)[:_DETAIL_CHARS].encode("utf-8", "backslashreplace").decode()
        return Reply(kind=outcome.kind, detail=detail, taint=taint)
    return Reply(samples_s=list(outcome.samples_s), compile_s=outcome.compile_s, taint=taint)
