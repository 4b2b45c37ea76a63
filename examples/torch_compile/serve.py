"""A program as you may have one: it compiles two models and calls them, one more often than the other.

tunewise torch collect --script serve.py -- 10
"""

import sys

import torch

from models import block, mlp


def main(calls: int) -> None:
    """Call both models, the perceptron three times as often."""
    torch.manual_seed(0)
    perceptron, transformer = torch.compile(mlp()), torch.compile(block())
    with torch.no_grad():
        for _ in range(calls):
            transformer(torch.randn(2, 64, 256))
            for _ in range(3):
                perceptron(torch.randn(64, 784))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
