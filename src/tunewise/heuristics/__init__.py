"""Heuristics: what ranks the configs of a decision without measuring them, and how it is found and loaded."""

from tunewise.heuristics.base import Heuristic
from tunewise.heuristics.case import Case
from tunewise.heuristics.expert import Expert
from tunewise.heuristics.loading import load_object, load_path, load_places, load_plugin
from tunewise.heuristics.matching import On

__all__ = ["Case", "Expert", "Heuristic", "On", "load_object", "load_path", "load_places", "load_plugin"]
