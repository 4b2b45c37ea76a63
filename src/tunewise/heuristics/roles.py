"""Roles: what the parameters of a space are for, so that one rule serves all spellings of the same idea."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tunewise.decision import Config, Param, Space
from tunewise.heuristics.matching import at_most

# role -> how people spell it; capitals and underscores do not count
TILE: Mapping[str, tuple[str, ...]] = {
    "m": ("block_m", "block_size_m", "tile_m", "bm", "m_tile"),
    "n": ("block_n", "block_size_n", "tile_n", "bn", "n_tile"),
    "k": ("block_k", "block_size_k", "tile_k", "bk", "k_tile"),
    "group": ("group_m", "group_size_m", "group_size"),
    "split_k": ("split_k", "splits", "k_splits"),
    "warps": ("num_warps", "warps"),
    "stages": ("num_stages", "stages"),
}
ROWS: Mapping[str, tuple[str, ...]] = {
    "rows": ("block_m", "block_size_m", "xblock", "rows_per_block", "block_rows", "rows_per_program"),
    "columns": ("block_n", "block_size_n", "block_size", "block", "rblock", "r0_block", "block_columns"),
    "warps": TILE["warps"],
    "stages": TILE["stages"],
    "programs": ("num_programs", "programs", "grid", "num_blocks"),
}
CLUSTER: Mapping[str, tuple[str, ...]] = {
    "m": ("mma_tile_m", "mma_m", "mma_tiler_m", *TILE["m"]),
    "n": ("mma_tile_n", "mma_n", "mma_tiler_n", *TILE["n"]),
    "cluster_m": ("cluster_m", "cluster_shape_m"),
    "cluster_n": ("cluster_n", "cluster_shape_n"),
    "two_cta": ("use_2cta", "use_2cta_instrs", "two_cta", "cta_pair"),
}
REGISTERS: Mapping[str, tuple[str, ...]] = {
    "rows": ("mr",),
    "vectors": ("nv",),
    "width": ("vector", "vw", "vector_width"),
    "unroll": ("unroll", "ku"),
    "order": ("order",),
    "pack_a": ("pack_a",),
    "pack_b": ("pack_b",),
    "mc": ("mc",),
    "nc": ("nc",),
    "kc": ("kc",),
}
SOFTMAX: Mapping[str, tuple[str, ...]] = {
    "algorithm": ("algorithm",),
    "width": REGISTERS["width"],
    "unroll": REGISTERS["unroll"],
    "exp": ("exp",),
    "block": ("block",),
}
STENCIL: Mapping[str, tuple[str, ...]] = {
    "algorithm": ("algorithm",),
    "rows": ("rows",),
    "vectors": REGISTERS["vectors"],
    "width": REGISTERS["width"],
    "fixed": ("fixed",),
    "strip": ("strip",),
}

_LISTED, _BITS = 4096, 63


@dataclass(frozen=True)
class Cast:
    """Which parameter of a space plays each role; roles that nobody plays are left out."""

    params: Mapping[str, Param]

    def __contains__(self, role: object) -> bool:
        return role in self.params

    def has(self, *roles: str) -> bool:
        """Return whether all of these roles are played."""
        return all(role in self.params for role in roles)

    def offers(self, role: str, value: object) -> bool:
        """Return whether a role is played by a parameter that has this value."""
        return role in self.params and self.params[role].index(value) is not None

    def numbers(self, role: str) -> list[int]:
        """Return the values of a role's parameter that are whole numbers, the smallest first; none if nobody plays.

        Of a range too long to list, the powers of two.
        """
        values = self.params[role].values if role in self.params else ()
        if len(values) > _LISTED:
            values = [power for place in range(_BITS) if (power := 1 << place) in values]
        return sorted(value for value in values if isinstance(value, int) and not isinstance(value, bool))

    def at_most(self, role: str, limit: float) -> int:
        """Return the largest value of a role that is not above `limit`; the smallest where all are."""
        return at_most(self.numbers(role), limit)

    def at_least(self, role: str, limit: float) -> int:
        """Return the smallest value of a role that is not below `limit`; the largest where all are."""
        numbers = self.numbers(role)
        return next((number for number in numbers if number >= limit), numbers[-1])

    def config(self, **played: Any) -> Config:
        """Return values by role as a part of a config; switches are spelled as the space spells them."""
        return {
            self.params[role].name: _spelled(self.params[role], value)
            for role, value in played.items()
            if role in self.params
        }


def cast(space: Space, roles: Mapping[str, tuple[str, ...]]) -> Cast:
    """Return who plays which role; of several parameters for one role, the one whose spelling is listed first."""
    known = {_plain(param.name): param for param in space.params}
    found = {
        role: next((known[name] for name in map(_plain, spellings) if name in known), None)
        for role, spellings in roles.items()
    }
    return Cast({role: param for role, param in found.items() if param is not None})


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def _spelled(param: Param, value: Any) -> Any:
    """Return a switch as the 0 or 1 that some spaces use for it; anything else as it is."""
    return int(value) if isinstance(value, bool) and param.index(value) is None else value
