"""The profiler: what tiles cost on one problem, and with --optimize the best ones, as code to paste.

    python -m neighborhood_attention --size 64x64 --kernel-size 7 --backprop --optimize

Run it in the directory `examples` (or in the one above, as `python -m examples.neighborhood_attention`). What
--optimize finds is remembered too: from then on `na2d` and the like use it without any change of code.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

import tunewise as tw
from tunewise.decision import lower_half_mean, merged
from tunewise.session import events
from tunewise.session.context import current_store

from . import forward, tuning
from .window import Axes, axes_of

DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Pass:
    """One pass of the op on one problem."""

    name: str
    run: tw.Implementation
    args: tuple
    describe: Callable[[dict], dict[str, object]]  # a config as keywords of the op


@dataclass(frozen=True)
class Profile:
    """What is known of one pass: configs with their seconds (or why there are none), and the one to use."""

    rows: list[tuple[dict, float | str]]
    best: dict
    said: str


def main(words: Sequence[str] | None = None) -> int:
    """Print a profile of one problem; return 0, or 2 for a problem that makes no sense, or 130 after Ctrl-C."""
    options = _parser().parse_args(words)
    try:
        axes = _axes(options)
        torch.set_num_threads(options.threads)
        profiles = {one.name: _profile(one, options) for one in _passes(axes, options)}
    except (ValueError, tw.TunewiseError) as error:
        print(f"neighborhood_attention: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("neighborhood_attention: interrupted; what was measured is kept, and --optimize goes on", file=sys.stderr)
        return 130
    print(json.dumps(_plain(profiles, axes)) if options.json else _text(profiles, axes))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m neighborhood_attention",
        description="Profile neighborhood attention on one problem, on the CPU.",
        epilog="example: python -m neighborhood_attention --size 16x16 --kernel-size 5 --dim 16 --optimize --budget 2",
    )
    parser.add_argument("--size", default="64x64", help="the grid of tokens: 4096, 64x64 or 16x16x16")
    parser.add_argument("--kernel-size", default="7", help="odd; one number, or one for each dimension: 7x5")
    parser.add_argument("--dilation", default="1", help="one number, or one for each dimension: 1x2")
    parser.add_argument("--causal", action="store_true", help="in all dimensions")
    for name, value in (("batch", 1), ("heads", 2), ("dim", 32), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=value, help=f"{value} unless given")
    parser.add_argument("--dtype", choices=DTYPES, default=DTYPES[0])
    parser.add_argument("--backprop", action="store_true", help="profile the backward pass too")
    parser.add_argument("--optimize", action="store_true", help="tune, remember, and print the best config")
    parser.add_argument("--thorough", action="store_true", help="with --optimize: measure all configs there are")
    parser.add_argument("--again", action="store_true", help="with --optimize: measure although the answer is known")
    parser.add_argument("--budget", type=int, default=tuning.BUDGET, help="with --optimize: configs to measure")
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser


def _axes(options: argparse.Namespace) -> Axes:
    grid, kernels, dilations = (_sides(name, getattr(options, name)) for name in ("size", "kernel_size", "dilation"))
    for name in ("batch", "heads", "dim", "threads"):
        if getattr(options, name) < 1:
            raise ValueError(f"--{name} {getattr(options, name)} is not at least 1")
    if len(grid) > 3:
        raise ValueError(f"--size {options.size} has {len(grid)} dimensions; there are ops for 1, 2 and 3")
    each = [sides[0] if len(sides) == 1 else sides for sides in (kernels, dilations)]
    return axes_of(grid, *each, options.causal)


def _sides(name: str, text: str) -> list[int]:
    try:
        return [int(side) for side in text.lower().split("x")]
    except ValueError:
        raise ValueError(f"--{name.replace('_', '-')} {text!r} is not of numbers such as 64 or 64x64") from None


def _passes(axes: Axes, options: argparse.Namespace) -> list[Pass]:
    problem = {
        **tuning.features(torch.empty(options.batch, 1, options.heads, options.dim), torch.empty(options.dim), axes),
        "dtype": options.dtype,
    }
    if not forward.compiles_for(torch.empty(0, dtype=getattr(torch, options.dtype))):
        raise ValueError("torch does not compile flex_attention for this processor: it needs AVX2")
    dims = len(axes)
    ahead = tuning.forward_pass(dims)
    passes = [Pass("forward", ahead, ahead.decision.make_inputs(problem), _forward_words)]
    if options.backprop:
        back = tuning.backward_pass(dims)
        passes.append(Pass("backward", back, back.decision.make_inputs(problem), _backward_words))
    return passes


def _profile(one: Pass, options: argparse.Namespace) -> Profile:
    return _optimized(one, options) if options.optimize else _timed(one)


def _optimized(one: Pass, options: argparse.Namespace) -> Profile:
    """Return what a tuning run finds, with all that was measured of this problem before."""

    def hear(event: object) -> None:
        if isinstance(event, events.Evaluated):
            tiles = _tiles(one.describe(event.config))
            print(
                f"{one.name}, {event.done} of {event.budget}: {tiles} {_shown(_time(event.outcome))}", file=sys.stderr
            )

    plan = {"thorough": True} if options.thorough else {"budget": options.budget}
    tuned = one.run.tune(*one.args, listener=hear, again=options.again, **plan)
    said = "remembered from before; --again measures once more"
    if tuned.verdict is not None:
        is_better = tuned.verdict.ending == "win"
        said = f"{tuned.verdict.gain:.2f}x the default" if is_better else "the default; nothing beats it"
    return Profile(_rows(one), dict(tuned.answer.config), said)


def _rows(one: Pass) -> list[tuple[dict, float | str]]:
    """Return all configs that were measured on a problem, with what all their measurements come to."""
    outcomes: dict[tuple, list] = {}
    for trial in current_store().trials(one.run.task(*one.args).subject):
        outcomes.setdefault(tuple(trial.config.items()), []).append(trial.outcome)
    return [(dict(config), _time(merged(found))) for config, found in outcomes.items()]


def _time(outcome: tw.Timing | tw.Failure) -> float | str:
    return outcome.time_s if isinstance(outcome, tw.Timing) else f"{outcome.kind}: {outcome.detail}"


def _timed(one: Pass) -> Profile:
    """Return the times of the default and of what is known to be best, by turns."""
    decision = one.run.decision
    known = decision.decide(decision.features(*one.args), mode="replay")
    configs = [dict(decision.default)]
    if dict(known.config) != configs[0]:
        configs.append(dict(known.config))
    samples: list[list[float]] = [[] for _ in configs]
    for turn in range(6):
        for config, taken in zip(configs, samples, strict=True):
            start = time.process_time()
            one.run._function(*one.args, **config)
            if turn:  # the first call compiles
                taken.append(time.process_time() - start)
    times = [lower_half_mean(taken) for taken in samples]
    return Profile(list(zip(configs, times, strict=True)), dict(known.config), f"of the rung {known.rung!r}")


def _text(profiles: dict[str, Profile], axes: Axes) -> str:
    lines = []
    for name, one in profiles.items():
        describe = _forward_words if name == "forward" else _backward_words
        lines.append(f"{name}:")
        ranked = sorted(one.rows, key=lambda row: (isinstance(row[1], str), row[1]))  # failures last
        lines += [f"  {_tiles(describe(config)):44} {_shown(time_s)}" for config, time_s in ranked]
        lines += [f"  best: {_tiles(describe(one.best))}, {one.said}", ""]
    return "\n".join([*lines, "to hard-code it:", f"  {_code(profiles, axes)}"])


def _code(profiles: dict[str, Profile], axes: Axes) -> str:
    windows = {
        "kernel_size": tuple(axis.kernel for axis in axes),
        "dilation": tuple(axis.dilation for axis in axes),
        "is_causal": tuple(axis.causal for axis in axes),
    }
    words = {**windows, **_forward_words(profiles["forward"].best)}
    if "backward" in profiles:
        words |= _backward_words(profiles["backward"].best)
    return f"na{len(axes)}d(q, k, v, {', '.join(f'{name}={value!r}' for name, value in words.items())})"


def _plain(profiles: dict[str, Profile], axes: Axes) -> dict[str, object]:
    passes = {
        name: {
            "best": one.best,
            "said": one.said,
            "configs": [
                {"config": config, **({"error": time_s} if isinstance(time_s, str) else {"time_s": time_s})}
                for config, time_s in one.rows
            ],
        }
        for name, one in profiles.items()
    }
    return {**passes, "code": _code(profiles, axes)}


def _forward_words(config: dict) -> dict[str, object]:
    q_tile, kv_tile = tuning.forward_tiles(config)
    return {"q_tile_shape": q_tile, "kv_tile_shape": kv_tile}


def _backward_words(config: dict) -> dict[str, object]:
    tile, kv_split = tuning.backward_tiles(config)
    return {"backward_q_tile_shape": tile, "backward_kv_splits": kv_split}


def _tiles(words: dict[str, object]) -> str:
    short = {name.removeprefix("backward_").removesuffix("_tile_shape"): value for name, value in words.items()}
    sides = {name: "x".join(map(str, value)) if isinstance(value, tuple) else value for name, value in short.items()}
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in sides.items())


def _shown(time_s: float | str) -> str:
    return time_s if isinstance(time_s, str) else f"{time_s * 1e3:9.3f} ms"


if __name__ == "__main__":
    sys.exit(main())
