"""Both models with what was learned, beside max-autotune: on sizes that were measured, and on sizes never seen.

python compare.py --models models
"""

import argparse

import torch

import tunewise
from models import block, mlp
from tunewise.deploy.inductor.comparing import Compared, compare

PROGRAMS = {
    "mlp, 64 rows": (mlp, (64, 784)),
    "mlp, 96 rows (never seen)": (mlp, (96, 784)),
    "block, 2 x 64 tokens": (block, (2, 64, 256)),
    "block, 3 x 48 tokens (never seen)": (block, (3, 48, 256)),
}


def main() -> None:
    """Print a row for every program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="models", help="directory of tunewise torch train")
    tunewise.load_heuristic(parser.parse_args().models)
    torch.set_num_threads(1)
    torch._inductor.config.cpp.threads = 1
    torch.manual_seed(0)
    print("| program | max-autotune compiles | tunewise compiles | ratio | run time ratio | answered by |")
    print("|---|---|---|---|---|---|")
    for name, (make, size) in PROGRAMS.items():
        print(row(name, compare(make(), [torch.randn(*size)])), flush=True)


def row(name: str, compared: Compared) -> str:
    """Return a line of a Markdown table."""
    theirs, ours = compared.runs["max-autotune"], compared.runs["top-1"]
    rungs = [one.answer.rung for one in ours.asked]
    said = ", ".join(f"{rung} ({rungs.count(rung)})" for rung in dict.fromkeys(rungs))
    ratio, faster = ours.compile_s / theirs.compile_s, ours.run_s / theirs.run_s
    return f"| {name} | {theirs.compile_s:.1f} s | {ours.compile_s:.1f} s | {ratio:.2f} | {faster:.2f} | {said} |"


if __name__ == "__main__":
    main()
