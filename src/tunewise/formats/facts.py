"""Subjects, trials and verdicts as JSON and back: typed, finite, and refused with a reason where they make no sense."""

import hashlib
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from tunewise.decision import (
    Config,
    Environment,
    Failure,
    FailureKind,
    Outcome,
    Part,
    Problem,
    Proposal,
    Scalar,
    Subject,
    Timing,
    Trial,
    Value,
    Verdict,
)
from tunewise.decision.canonical import MAX_RECORD_BYTES
from tunewise.decision.trial import Fate, ProposerKind
from tunewise.errors import InvalidTrial, TunewiseError

Seconds = Annotated[float, msgspec.Meta(gt=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Name = Annotated[str, msgspec.Meta(min_length=1)]

MAX_DETAIL = 1 << 16
_T = TypeVar("_T")


class TimingFact(msgspec.Struct, frozen=True, tag_field="is", tag="timing", forbid_unknown_fields=True):
    """The JSON of a Timing."""

    samples_s: Annotated[tuple[Seconds, ...], msgspec.Meta(min_length=1)]
    compile_s: Annotated[float, msgspec.Meta(ge=0)] | None = None


class FailureFact(msgspec.Struct, frozen=True, tag_field="is", tag="failure", forbid_unknown_fields=True):
    """The JSON of a Failure."""

    kind: FailureKind
    detail: str = ""


class TrialFact(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The JSON of a Trial."""

    config: dict[str, Value]
    outcome: TimingFact | FailureFact
    source: str = ""
    run: str = ""
    at: float = 0.0


class ProposalFact(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The JSON of a Proposal."""

    by: str
    kind: ProposerKind
    rank: Count
    config: dict[str, Value]
    fate: Fate = "tried"
    detail: str = ""


class VerdictFact(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The JSON of a Verdict."""

    ending: Literal["win", "tie", "failed"]
    incumbent: dict[str, Value]
    challenger: dict[str, Value]
    incumbent_s: tuple[Seconds, ...] = ()
    challenger_s: tuple[Seconds, ...] = ()
    gain: Seconds = 1.0
    p_value: Share = 1.0
    evaluations: Count = 0
    run: str = ""
    source: str = ""
    detail: str = ""
    at: float = 0.0
    proposals: tuple[ProposalFact, ...] = ()


class SubjectFact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The JSON of a Subject: every part of its environment too, also those that are not part of the key."""

    decision: Name
    problem: dict[str, int | float | str]
    policy: tuple[tuple[str, Scalar], ...]
    environment: tuple[tuple[str, Any, Literal["must", "warn", "ignore"]], ...]


_ENCODER = msgspec.json.Encoder()
_TRIAL = msgspec.json.Decoder(TrialFact)
_VERDICT = msgspec.json.Decoder(VerdictFact)
_SUBJECT = msgspec.json.Decoder(SubjectFact)
_PROBLEM: msgspec.json.Decoder[Mapping[str, Any]] = msgspec.json.Decoder(dict[str, int | float | str])


def write_trial(trial: Trial) -> bytes:
    """Return a trial as JSON; raises InvalidTrial for what could not be read back, such as a time of NaN or -1."""
    _finite(trial.config)
    return _checked(trial_fact(trial), _TRIAL, "trial")


def write_verdict(verdict: Verdict) -> bytes:
    """Return a verdict as JSON; raises InvalidTrial for what could not be read back."""
    _finite(verdict.incumbent)
    _finite(verdict.challenger)
    return _checked(verdict_fact(verdict), _VERDICT, "verdict")


def write_subject(subject: Subject) -> bytes:
    """Return a subject as JSON, the parts of its environment that only warn or are ignored included."""
    return _checked(subject_fact(subject), _SUBJECT, "subject")


def write_problem(problem: Problem) -> bytes:
    """Return a problem as JSON."""
    return _encoded(dict(problem), "problem")


def read_trial(raw: bytes | str) -> Trial:
    """Return the trial of some JSON; raises ValueError if it is none."""
    return trial_of(_decoded(_TRIAL, raw))


def read_verdict(raw: bytes | str) -> Verdict:
    """Return the verdict of some JSON; raises ValueError if it is none."""
    return verdict_of(_decoded(_VERDICT, raw))


def read_subject(raw: bytes | str) -> Subject:
    """Return the subject of some JSON; raises ValueError if it is none."""
    return subject_of(_decoded(_SUBJECT, raw))


def read_problem(raw: bytes | str) -> Problem:
    """Return the problem of some JSON; raises ValueError if it is none."""
    try:
        return Problem(_decoded(_PROBLEM, raw))
    except TunewiseError as error:
        raise ValueError(str(error)) from None


def identity(subject_digest: str, body: bytes) -> bytes:
    """Return 16 bytes that are equal only for the same fact about the same subject: a name and a checksum in one."""
    return hashlib.blake2b(subject_digest.encode() + b"\n" + body, digest_size=16).digest()


def trial_fact(trial: Trial) -> TrialFact:
    """Return the JSON form of a trial."""
    return TrialFact(
        dict(trial.config), _outcome_fact(trial.outcome), _text(trial.source), _text(trial.run), float(trial.at)
    )


def trial_of(fact: TrialFact) -> Trial:
    """Return the trial of its JSON form."""
    return Trial(fact.config, _outcome(fact.outcome), fact.source, fact.run, fact.at)


def verdict_fact(verdict: Verdict) -> VerdictFact:
    """Return the JSON form of a verdict."""
    return VerdictFact(
        ending=verdict.ending,
        incumbent=dict(verdict.incumbent),
        challenger=dict(verdict.challenger),
        incumbent_s=_floats(verdict.incumbent_s),
        challenger_s=_floats(verdict.challenger_s),
        gain=float(verdict.gain),
        p_value=float(verdict.p_value),
        evaluations=verdict.evaluations,
        run=_text(verdict.run),
        source=_text(verdict.source),
        detail=_text(verdict.detail),
        at=float(verdict.at),
        proposals=tuple(map(_proposal_fact, verdict.proposals)),
    )


def verdict_of(fact: VerdictFact) -> Verdict:
    """Return the verdict of its JSON form."""
    proposals = tuple(Proposal(**msgspec.structs.asdict(proposal)) for proposal in fact.proposals)
    return Verdict(**{**msgspec.structs.asdict(fact), "proposals": proposals})


def subject_fact(subject: Subject) -> SubjectFact:
    """Return the JSON form of a subject."""
    return SubjectFact(
        subject.decision,
        dict(subject.problem),
        subject.policy,
        tuple((part.name, part.value, part.match) for part in subject.environment.parts),
    )


def subject_of(fact: SubjectFact) -> Subject:
    """Return the subject of its JSON form; raises ValueError for a problem that no decision can have."""
    parts = tuple(Part(name, value, match) for name, value, match in fact.environment)
    try:
        return Subject(fact.decision, Problem(fact.problem), fact.policy, Environment(parts))
    except TunewiseError as error:
        raise ValueError(str(error)) from None


def _proposal_fact(proposal: Proposal) -> ProposalFact:
    return ProposalFact(
        _text(proposal.by),
        proposal.kind,
        proposal.rank,
        dict(proposal.config),
        proposal.fate,
        _text(proposal.detail),
    )


def _outcome_fact(outcome: Outcome) -> TimingFact | FailureFact:
    if isinstance(outcome, Failure):
        return FailureFact(outcome.kind, _text(outcome.detail))
    return TimingFact(_floats(outcome.samples_s), None if outcome.compile_s is None else float(outcome.compile_s))


def _outcome(fact: TimingFact | FailureFact) -> Outcome:
    if isinstance(fact, FailureFact):
        return Failure(fact.kind, fact.detail)
    return Timing(fact.samples_s, fact.compile_s)


def _floats(values: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _text(text: str) -> str:
    # Output of a candidate may hold half characters, and megabytes of them: its end says what went wrong.
    return text[-MAX_DETAIL:].encode("utf-8", "replace").decode()


def _finite(config: Config) -> None:
    # JSON has no NaN: the encoder would write null, which is a legal value of a config.
    for name, value in config.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidTrial(f"config value {name}={value!r} is not a finite number")


def _checked(fact: msgspec.Struct, decoder: msgspec.json.Decoder[Any], what: str) -> bytes:
    """Return the JSON of a fact, once it is known that it can be read back."""
    raw = _encoded(fact, what)
    try:
        decoder.decode(raw)
    except (ValueError, RecursionError) as error:
        raise InvalidTrial(f"this {what} cannot be kept: {error}") from None
    return raw


def _encoded(fact: object, what: str) -> bytes:
    try:
        raw = _ENCODER.encode(fact)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidTrial(f"this {what} cannot be written as JSON: {error}") from None
    if len(raw) > MAX_RECORD_BYTES // 2:
        raise InvalidTrial(f"this {what} takes {len(raw)} bytes; at most {MAX_RECORD_BYTES // 2} can be kept")
    return raw


def _decoded(decoder: msgspec.json.Decoder[_T], raw: bytes | str) -> _T:
    try:
        return decoder.decode(raw)
    except RecursionError:
        raise ValueError("JSON nested too deep") from None
