"""A library whose first call takes its time, for processes that are interrupted: prints what it went on with."""

import json
import sys
import time

import tunewise as tw
from tunewise.session import context

tuner = tw.Autotuner("slowlib")
decision = tuner.decision(
    "slowlib.nap",
    space=tw.Space({"naps": list(range(12))}),
    default={"naps": 0},
    features=lambda n: {"n": n},
    policy=tw.Policy(clock="wall", min_sample_s=1e-5),
    check=tw.NO_CHECK,
)


def slower() -> float:
    return float(sys.argv[2]) if len(sys.argv) > 2 else 1.0


@decision.implementation
def nap(n: int, *, naps: int) -> int:
    time.sleep((0.1 - 0.004 * naps) * slower())
    return n


def main() -> None:
    tuner.use_autotuner(steps_forward=5, seconds=float(sys.argv[1]) if len(sys.argv) > 1 else None)
    try:
        answer = nap.decide(1)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        raise
    again = nap.decide(1)
    store = context.current_store()
    (subject,) = store.subjects(decision.name)
    said = {
        "config": dict(answer.config),
        "again": dict(again.config),
        "tried": len({trial.config["naps"] for trial in store.trials(subject)}),
        "failed": len([trial for trial in store.trials(subject) if not hasattr(trial.outcome, "samples_s")]),
        "concluded": len(store.verdicts(subject)),
    }
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
