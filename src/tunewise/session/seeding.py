"""Seeds: what users, memory and heuristics propose to try first, made usable, and what heuristics would try next."""

import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from tunewise.decision import Config, Declaration, Hardware, Proposal, Space, Subject
from tunewise.decision.trial import ProposerKind
from tunewise.errors import InvalidProblem
from tunewise.heuristics import Case, Expert, Heuristic
from tunewise.heuristics.expert import MOST
from tunewise.search.seeded import Moves, Seed, Seeded
from tunewise.session import asking, shelf
from tunewise.session.priors import Winner

USER = "seed"  # who proposed what `tune(seeds=...)` gives
_OF_A_MODEL = 3  # configs that a learned heuristic proposes: what it ranks first is not always the best
_MOVES = 9  # of one heuristic around one config
_RECORDED = 100  # proposals of a run, though users may give more: a verdict has its limits
_DETAIL = 800  # characters of why a seed is dropped


@dataclass(frozen=True, slots=True)
class _Guess:
    """What somebody proposes, as given, and what there is to say about it."""

    by: str
    kind: ProposerKind
    config: Any
    said: str = ""


def usable(declaration: Declaration, seeds: Iterable[Any]) -> tuple[list[Config], list[tuple[Any, str]]]:
    """Return the seeds as legal configs in rank order, each once, and those that had to be dropped with the reason."""
    proposals = _judged(declaration, [_Guess(USER, "user", seed) for seed in seeds])
    kept = [proposal.config for proposal in proposals if proposal.fate == "tried"]
    return kept, [(proposal.config, proposal.detail) for proposal in proposals if proposal.fate == "dropped"]


def propose(
    declaration: Declaration,
    subject: Subject,
    hardware: Hardware,
    seeds: Iterable[Any],
    sources: Sequence[shelf.Source],
    winners: Sequence[Winner] = (),
) -> list[Proposal]:
    """Return what users propose, then what won on other machines, then what heuristics and other problems propose.

    Of these the best guesses come before anybody's second ones.
    """
    of_users = [_Guess(USER, "user", seed) for seed in seeds]
    same, others = ([_won(winner) for winner in winners if winner.is_same is kind] for kind in (True, False))
    case = case_of(declaration, subject, hardware) if sources else None
    lists = [*([_guesses(source, case, subject) for source in sources] if case is not None else []), others]
    in_turns = [row[rank] for rank in range(MOST) for row in lists if rank < len(row)]
    return _judged(declaration, [*of_users, *same, *in_turns])


def seeds_of(proposals: Sequence[Proposal]) -> list[Seed]:
    """Return the proposals that are to be tried, as a search takes them.

    What a heuristic repeats is among them: whoever proposed it before may turn out to be wrong in other things.
    """
    kept = [p for p in proposals if p.fate in ("tried", "known") or (p.fate == "repeated" and p.kind != "user")]
    return [Seed(p.config, p.by, p.kind == "user") for p in kept]


def fates(proposals: Sequence[Proposal], search: Seeded, space: Space) -> list[Proposal]:
    """Return the proposals after a run, as many as a verdict keeps; what was to be tried and was not says why."""
    dropped = {(seed.by, space.places(seed.config)): reason for seed, reason in search.dropped}
    waiting = {(seed.by, space.places(seed.config)) for seed in search.waiting}

    def fate(proposal: Proposal) -> Proposal:
        if proposal.fate == "repeated" and search.proposer(proposal.config) == proposal.by:
            return replace(proposal, fate="tried")
        if proposal.fate != "tried":
            return proposal
        seed = proposal.by, space.places(proposal.config)
        if seed in dropped:
            return replace(proposal, fate="skipped", detail=dropped[seed])
        if seed in waiting:
            return replace(proposal, fate="skipped", detail="the budget was spent before its turn")
        return proposal

    return [fate(proposal) for proposal in proposals[:_RECORDED]]


def moves_of(
    declaration: Declaration, subject: Subject, hardware: Hardware, sources: Sequence[shelf.Source]
) -> Moves | None:
    """Return what heuristics would try next to a config, or None where none has a say."""
    case = case_of(declaration, subject, hardware) if sources else None
    if case is None:
        return None
    movers = [source for source in sources if _has_moves(source) and _is_asked(source, case, subject)]
    if not movers:
        return None

    def moves(config: Config) -> list[Seed]:
        guesses = [_guess(source, move) for source in movers for move in _moves(source, case, config)]
        found = _judged(declaration, guesses)
        return [Seed(proposal.config, proposal.by) for proposal in found if proposal.fate == "tried"]

    return moves


def case_of(declaration: Declaration, subject: Subject, hardware: Hardware) -> Case | None:
    """Return what heuristics are asked about; None, with one report, where the decision's own functions break."""
    try:
        features, facts = declaration.derive(subject.problem), declaration.facts_of(subject.problem)
    except InvalidProblem as error:
        shelf.report_decision(declaration.name, str(error))
        return None
    return Case(features, hardware, declaration.space, declaration.default, facts)


def promoted(declaration: Declaration, subject: Subject, hardware: Hardware, source: Expert) -> Config | str:
    """Return the first seed of a promoted heuristic as a config of the space, or why there is none."""
    case = case_of(declaration, subject, hardware)
    if case is None:
        return "cannot be asked"
    try:
        reason = _why_not_asked(source, case, subject)
        guesses = [] if reason is not None else asking.ask(source, lambda: source.seeds(case), _most(source))
    except asking.Silent as silent:
        return str(silent)
    if not guesses:
        return reason or "does not apply to this problem"
    (proposal,) = _judged(declaration, [_guess(source, guesses[0])])
    return proposal.detail if proposal.fate == "dropped" else proposal.config


def _guesses(source: shelf.Source, case: Case, subject: Subject) -> list[_Guess]:
    if not _is_asked(source, case, subject):
        return []
    try:
        found = asking.ask(source, lambda: _seeds(source, case), _most(source))
    except asking.Silent:
        return []
    return [_guess(source, guess) for guess in found]


def _won(winner: Winner) -> _Guess:
    return _Guess(winner.by, "memory", winner.config, winner.said)


def _guess(source: shelf.Source, guess: Any) -> _Guess:
    return _Guess(shelf.name_of(source), shelf.kind_of(source), guess)


def _seeds(source: shelf.Source, case: Case) -> Any:
    if isinstance(source, Heuristic):
        return islice(source.ranking(case.features), _most(source))  # it ranks far more than it may propose
    return source.seeds(case)


def _most(source: shelf.Source) -> int:
    """Return how many seeds a heuristic may propose; raises Silent, with a report, where it says nonsense."""
    if isinstance(source, Heuristic):
        return _OF_A_MODEL if source.kind == "learned" else MOST
    with asking.careful(source):
        return int(max(1, min(getattr(source, "most", 1), MOST)))


def _is_asked(source: shelf.Source, case: Case, subject: Subject) -> bool:
    try:
        return _why_not_asked(source, case, subject) is None
    except asking.Silent:
        return False


def _why_not_asked(source: shelf.Source, case: Case, subject: Subject) -> str | None:
    """Return why a heuristic is not for this device, or None; raises Silent, with a report, where it cannot tell."""
    with asking.careful(source):
        if isinstance(source, Heuristic):
            return source.why_elsewhere({part.name: part.value for part in subject.environment.parts})
        on = getattr(source, "hardware", None)
        why = None if on is None else on.why_not(case.hardware)
        return shelf.shown(str(why)) if why else None


def _has_moves(source: shelf.Source) -> bool:
    own = getattr(type(source), "neighbors", None)
    return own is not None and own is not Expert.neighbors


def _moves(source: shelf.Source, case: Case, config: Config) -> list[Any]:
    try:
        return asking.ask(source, lambda: source.neighbors(case, dict(config)), _MOVES)  # type: ignore[union-attr]
    except asking.Silent:
        return []


def _judged(declaration: Declaration, guesses: Sequence[_Guess]) -> list[Proposal]:
    return list(_judge(declaration, guesses))


def _judge(declaration: Declaration, guesses: Sequence[_Guess]) -> Iterator[Proposal]:
    """Yield each guess completed and repaired, or with the reason it is dropped; what was proposed before, as such."""
    ranks: dict[str, int] = {}
    first: dict[tuple[int, ...], str] = {}
    for guess in guesses:
        by = guess.by
        ranks[by] = ranks.get(by, 0) + 1
        proposal = _legal(declaration, Proposal(by, guess.kind, ranks[by], {}), guess.config)
        proposal = replace(proposal, detail="; ".join(filter(None, [guess.said, proposal.detail])))
        if proposal.fate != "dropped":
            places = declaration.space.places(proposal.config)
            if places in first:
                proposal = replace(proposal, fate="repeated", detail=f"proposed by {first[places]} before")
            first.setdefault(places, by)
        yield proposal


def _legal(declaration: Declaration, proposal: Proposal, guess: Any) -> Proposal:
    space = declaration.space
    if not isinstance(guess, Mapping):
        said = f"a seed is a config such as {dict(declaration.default)}, not {type(guess).__name__}"
        return replace(proposal, fate="dropped", detail=said)
    try:
        whole = {**declaration.default, **guess}
        reason = space.why_not(whole)
        if reason is None:
            return replace(proposal, config=space.config(whole))
        repaired = space.repair(whole)
    except Exception as error:  # a value that is not even comparable
        reason, repaired = shelf.broke(error), None
    if repaired is None:
        said = f"{shelf.shown(str(reason))}; proposed: {reprlib.repr(guess)}"
        return replace(proposal, fate="dropped", detail=shelf.shown(said, _DETAIL))
    return replace(proposal, config=repaired, detail=shelf.shown(f"repaired: {reason}"))
