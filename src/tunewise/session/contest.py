"""Contests: several strategies on several recordings over many seeds, on all cores, with the same result as on one."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import connection
from pathlib import Path

from tunewise.errors import InvalidSetting
from tunewise.formats.recorded import Recording, read
from tunewise.search import make
from tunewise.session.replaying import Replayed, replay
from tunewise.session.scores import Score, score_space


@dataclass(frozen=True, slots=True)
class Contest:
    """What is replayed: every strategy on every recording of the files, once a seed; the priors are told first."""

    files: tuple[Path, ...]
    strategies: tuple[str, ...]
    budget: int = 100
    seeds: int = 10
    priors: tuple[Path, ...] = ()
    noise: bool = False


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of a contest, small enough to send to another process."""

    file: Path
    which: int  # of the recordings in the file
    strategy: str
    seed: int


def hold(contest: Contest, *, jobs: int = 1, progress: Callable[[int, int], None] | None = None) -> list[Score]:
    """Replay everything and return one score a strategy, in order; the number of `jobs` (processes) changes nothing.

    `progress` hears how many runs are done, and of how many. Raises InvalidSetting if a prior is one of the files.
    """
    _check(contest)
    for name in contest.strategies:  # a strategy that is not there must say so before anything runs
        make(name, recordings(contest)[0].space, budget=contest.budget)
    runs = [
        _Run(file, which, strategy, seed)
        for strategy in contest.strategies
        for file in contest.files
        for which in range(len(_read(file)))
        for seed in range(contest.seeds)
    ]
    results = iter(_results(contest, runs, min(jobs, len(runs)), progress or (lambda done, total: None)))
    return [_score(contest, strategy, results) for strategy in contest.strategies]


def recordings(contest: Contest) -> list[Recording]:
    """Return what the files of a contest recorded, in order; raises InvalidFile or NotFound for those that cannot."""
    return [recording for file in contest.files for recording in _read(file)]


def _check(contest: Contest) -> None:
    if contest.budget < 1 or contest.seeds < 1:
        raise InvalidSetting(f"budget={contest.budget} and seeds={contest.seeds} must be at least 1")
    if not contest.files or not contest.strategies:
        raise InvalidSetting("a replay needs at least one file and one strategy")
    replayed = {file.resolve() for file in contest.files}
    for prior in contest.priors:
        if prior.resolve() in replayed:
            raise InvalidSetting(f"the prior {prior} is replayed itself: it would give the answer away; leave it out")


def _score(contest: Contest, strategy: str, results: Iterator[Replayed]) -> Score:
    spaces = []
    for file in contest.files:
        for recording in _read(file):
            runs = [next(results) for _ in range(contest.seeds)]
            name = str(file) if len(_read(file)) == 1 else str(file.with_name(recording.name))
            spaces.append(score_space(name, recording.optimum_s, runs, contest.budget))
    return Score(strategy, contest.budget, contest.seeds, tuple(spaces))


def _results(contest: Contest, runs: Sequence[_Run], jobs: int, progress: Callable[[int, int], None]) -> list[Replayed]:
    """Return what became of each run, in order."""
    results: list[Replayed] = []
    if jobs <= 1:
        for run in runs:
            results.append(_replayed(contest, run))
            progress(len(results), len(runs))
        return results
    with _processes(jobs) as pool:
        with _uninterrupted():  # workers inherit it: Ctrl-C is the parent's to answer
            futures = [pool.submit(_replayed, contest, run) for run in runs]
        for future in futures:
            results.append(future.result())
            progress(len(results), len(runs))
    return results


def _replayed(contest: Contest, run: _Run) -> Replayed:
    priors = [recording for prior in contest.priors for recording in _read(prior)]
    recording = _read(run.file)[run.which]
    return replay(recording, run.strategy, budget=contest.budget, seed=run.seed, priors=priors, noise=contest.noise)


@lru_cache(maxsize=64)
def _read(file: Path) -> tuple[Recording, ...]:
    return read(file)


@contextmanager
def _processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Give a pool of fresh processes; whatever goes wrong, none of them outlives the block."""
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _end_with_parent)
    try:
        yield pool
        pool.shutdown()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in set(multiprocessing.active_children()) - before:
            worker.terminate()


def _end_with_parent() -> None:
    """End this worker as soon as the process that started it is gone, even by SIGKILL."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
