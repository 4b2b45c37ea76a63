"""Where a file is written before it takes its place, whole."""

import os
import threading
from pathlib import Path


def draft(target: Path) -> Path:
    """Return a hidden place beside a target that no other process and no other thread writes to."""
    return target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}.part")
