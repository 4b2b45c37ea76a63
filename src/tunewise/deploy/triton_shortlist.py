"""The short list: the few configs worth timing on a problem nobody knows, the author's default first."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any

from tunewise.decision import Answer, Config, Failure, Subject, Timing, Trial
from tunewise.deploy.triton_configs import TritonConfig, key_of
from tunewise.session import Decision, context, priors, seeding, shelf

_OF_A_PROBLEM = 3  # configs that another problem proposes, its best first
_LATEST = 128  # problems of a decision that are looked through for what fails everywhere


def shortlist(
    decision: Decision, subject: Subject, answer: Answer, offered: Mapping[str, TritonConfig], most: int
) -> list[TritonConfig]:
    """Return at most `most` of the configs offered, in the order in which they are believed in; the default is in.

    Where the author's pruning dropped the default, what comes first in its place stands for it. What has failed on
    this problem is left out, and what has failed on others comes last. Where all that was tried before failed here,
    everything that was not tried yet is returned.
    """
    before = context.current_store().trials(subject)
    failed = _failed(before)
    if before and len(failed) == len({key_of(trial.config) for trial in before}):
        return [config for key, config in offered.items() if key not in failed] or list(offered.values())
    others = [one.subject for one in priors.nearest(context.current_store(), subject)]
    default = key_of(decision.default) if key_of(decision.default) in offered else next(iter(offered))
    doubtful = _failed_alike(subject, others)
    ideas = dict.fromkeys([default, *_ideas(decision, subject, answer, others), *offered])
    keys = [key for key in ideas if key in offered and (key == default or key not in failed)]
    keys.sort(key=lambda key: key != default and key in doubtful)
    return [offered[key] for key in keys[:most]]


def has_failed(config: Config, subject: Subject) -> bool:
    """Return whether a config failed on this problem, or lately on others like it in the same environment."""
    store, key = context.current_store(), key_of(config)
    latest_first = store.subjects(subject.decision, _LATEST)[::-1]
    return key in _failed(store.trials(subject)) or key in _failed_alike(subject, latest_first)


def by_author(autotuner: Any, given: Sequence[TritonConfig], args: Mapping[str, Any]) -> list[TritonConfig]:
    """Return the configs that the author's performance model leaves, the fastest first; all, in order, without one."""
    model, most = getattr(autotuner, "perf_model", None), getattr(autotuner, "configs_top_k", 1.0)
    if model is None:
        return list(given)
    kept = max(1, int(len(given) * most)) if isinstance(most, float) and most <= 1 else int(most)
    costs = {place: model(**{**args, **config.all_kwargs()}) for place, config in enumerate(given)}  # type: ignore[attr-defined]
    return [given[place] for place in sorted(costs, key=lambda place: costs[place])[:kept]]


def _ideas(decision: Decision, subject: Subject, answer: Answer, others: Sequence[Subject]) -> Iterator[str]:
    """Yield configs by their keys, some more than once; who knows most speaks first.

    After these the author's order counts: on nine recorded GPU spaces, spreading the rest out was no better.
    """
    yield key_of(answer.config)
    for proposal in seeding.propose(decision, subject, decision.hardware(), (), shelf.sources_for(decision)):
        if proposal.fate == "tried":
            yield key_of(proposal.config)
    ranked = [_fastest(context.current_store().trials(other)) for other in others[: priors.MOST]]
    for turn in zip_longest(*ranked):  # the best of the nearest problem, of the next; then their second best
        yield from (key for key in turn if key is not None)


def _failed_alike(subject: Subject, others: Sequence[Subject]) -> set[str]:
    """Return what failed on the first of others that differ from a subject in sizes only: most fail at any size."""
    here, words, store = subject.environment.must, subject.problem.categorical, context.current_store()
    alike = (other for other in others if other.environment.must == here and other.problem.categorical == words)
    return {key for other in islice(alike, priors.MOST) for key in _failed(store.trials(other))}


def _fastest(trials: Sequence[Trial]) -> list[str]:
    timed = [(trial.outcome.time_s, key_of(trial.config)) for trial in trials if isinstance(trial.outcome, Timing)]
    return list(dict.fromkeys(key for _, key in sorted(timed)))[:_OF_A_PROBLEM]


def _failed(trials: Sequence[Trial]) -> set[str]:
    return {key_of(trial.config) for trial in trials if isinstance(trial.outcome, Failure)}
