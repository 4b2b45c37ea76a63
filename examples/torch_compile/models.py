"""Two small programs for torch.compile: a perceptron and a transformer block."""

import torch
from torch import nn


def mlp(width: int = 512) -> nn.Module:
    """Return a perceptron of three layers, ready for inference."""
    layers = [nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width // 2), nn.ReLU(), nn.Linear(width // 2, 16)]
    return nn.Sequential(*layers).eval()


class Block(nn.Module):
    """A transformer block: attention over a sequence, then two layers for every token."""

    def __init__(self, width: int = 256, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sequence with what each token learned from the others."""
        batch, length, width = x.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        q, k, v = self.qkv(self.norm(x)).view(shape).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5, dim=-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm_2(x))))


def block() -> nn.Module:
    """Return a transformer block, ready for inference."""
    return Block().eval()
