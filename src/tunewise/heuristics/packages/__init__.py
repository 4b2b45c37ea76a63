"""Model packages: directories and wheels of models, with a manifest that says what they are for and what they are."""

from tunewise.heuristics.packages.manifest import MANIFEST, Manifest, ModelEntry
from tunewise.heuristics.packages.opening import Package, check_models, of_directory, offered, open_package
from tunewise.heuristics.packages.packing import pack, wheel_name, write_directory

__all__ = [
    "MANIFEST",
    "Manifest",
    "ModelEntry",
    "Package",
    "check_models",
    "of_directory",
    "offered",
    "open_package",
    "pack",
    "wheel_name",
    "write_directory",
]
