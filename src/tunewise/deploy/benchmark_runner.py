"""Collecting by a script: many made-up problems, every choice measured on each, a log that a later run continues."""

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tunewise.deploy.ahcontext import AHContext
from tunewise.deploy.ahlog import log_file
from tunewise.deploy.autoheuristic import AutoHeuristic
from tunewise.deploy.feedback import LocalFeedback, time_ms
from tunewise.deploy.switches import switches
from tunewise.errors import MissingPart
from tunewise.eventlog import logger

_log = logger(__name__)


class BenchmarkRunner:
    """Collects data of one decision: subclass it, say how inputs are made and what is run, and call `run()`.

    `create_input` makes the arguments of one problem, by chance of the module `random` (or numpy's or torch's own, if
    imported before): sample number i is the same in every run of one seed. Then either `run_benchmark` runs code that
    asks an AutoHeuristic, or `get_features`, `get_choices` and `run_choice` say what there is to measure, and
    `run_benchmark` is ours. A run that is started again measures only what the log does not have.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.parser = argparse.ArgumentParser(description=type(self).__doc__)
        self.args: argparse.Namespace | None = None
        self.add_base_arguments()

    def add_base_arguments(self) -> None:
        """Declare the options that every runner has; a subclass adds its own to `parser`."""
        add = self.parser.add_argument
        add("--use-heuristic", action="store_true", help="use what was learned instead of collecting")
        add("-o", "--out", default="ah_data.txt", help="the log (default: %(default)s)")
        add("--num-samples", type=_at_least_one, default=1000, help="problems (default: %(default)s)")
        often = "measurements of each choice of a problem (default: %(default)s)"
        add("--num-reps", type=_at_least_one, default=3, help=often)
        add("--seed", type=int, default=0, help="of the problems that are made up (default: %(default)s)")
        add("--quiet", action="store_true", help="show no progress")

    def create_input(self) -> tuple[Any, ...]:
        """Return the arguments of one problem."""
        raise MissingPart(f"{self.name}: the runner needs a method create_input(self) that makes one problem")

    def run_benchmark(self, *args: Any) -> None:
        """Run one problem: whatever in it asks an AutoHeuristic of this name is collected."""
        context = AHContext()
        for name, value in self.get_features(*args).items():
            context.add_feature(name, value, is_categorical=isinstance(value, str))
        feedback = LocalFeedback(lambda choice: self.measure_ms(choice, *args))
        choices = self.get_choices(*args)
        AutoHeuristic(lambda: choices[0], choices, feedback, context, self.name).get_choice()

    def get_features(self, *args: Any) -> Mapping[str, Any]:
        """Return the features of a problem: numbers, and words for what is categorical."""
        raise MissingPart(f"{self.name}: the runner needs get_features(self, ...), or a run_benchmark of its own")

    def get_choices(self, *args: Any) -> Sequence[str]:
        """Return the choices of a problem, the fallback first."""
        raise MissingPart(f"{self.name}: the runner needs get_choices(self, ...), or a run_benchmark of its own")

    def run_choice(self, choice: str, *args: Any) -> Any:
        """Do a problem's work by one choice."""
        raise MissingPart(f"{self.name}: the runner needs run_choice(self, choice, ...), or a run_benchmark of its own")

    def measure_ms(self, choice: str, *args: Any) -> float:
        """Return the milliseconds of one choice: `run_choice` timed by the processor's clock."""
        return time_ms(self.run_choice, choice, *args)

    def run(self, argv: Sequence[str] | None = None) -> Path:
        """Collect as the options say, those of the command line where none are given; return where the log is.

        Ctrl-C ends the program with a line and the exit code 130; the log keeps what was measured.
        """
        self.args = self.parser.parse_args(argv)
        try:
            self.main(self.args.num_samples, self.args.num_reps)
        except KeyboardInterrupt:
            kept = f"{self._log_file()} has what was measured, and the same command goes on from there"
            self.parser.exit(130, f"interrupted: {kept}\n")
        if not self.args.use_heuristic and not self._log_file().exists():
            why = "no problem asked an AutoHeuristic of this name, with feedback and a precondition that holds"
            _log.warning("%s: nothing was collected: %s", self.name, why)
        return self._log_file()

    def _log_file(self) -> Path:
        assert self.args is not None
        return log_file(Path(self.args.out).expanduser(), self.name)

    def main(self, num_samples: int, num_reps: int) -> None:
        """Run so many problems, each choice measured so often."""
        args = self.args or self.parser.parse_args([])
        kind = {"use": [self.name]} if args.use_heuristic else {"collect": [self.name]}
        with switches(**kind, log_path=args.out, repeats=num_reps), _progress(self.name, num_samples, args) as advance:
            for number in range(num_samples):
                _seed(args.seed, number)
                self.run_benchmark(*self.create_input())
                advance()


def _at_least_one(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def _seed(seed: int, number: int) -> None:
    """Begin all chance anew, so that a sample depends on its number alone and a later run meets the same problems."""
    random.seed(f"{seed} {number}")
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(random.getrandbits(32))
    torch = sys.modules.get("torch")
    if torch is not None:  # by chance of its own: whether torch is imported must not change other draws
        torch.manual_seed(random.Random(f"{seed} {number} torch").getrandbits(32))


@contextmanager
def _progress(name: str, total: int, args: argparse.Namespace) -> Iterator[Callable[[], None]]:
    if args.quiet:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=total)
        yield lambda: bar.advance(task)
