"""Heuristics: what ranks the configs of a decision without measuring them, and how it is found and loaded."""

from tunewise.heuristics.base import Heuristic
from tunewise.heuristics.loading import load_path, load_places, load_plugin

__all__ = ["Heuristic", "load_path", "load_places", "load_plugin"]
