"""What tunewise has for programs that use torch; nothing of torch is imported before it is used.

`torch.compile(model, backend="tunewise")` needs no import at all: see `tunewise.inductor` for how it is steered.
"""

from tunewise.deploy.inductor.backend import inductor
from tunewise.deploy.inductor.choices import decisions
from tunewise.deploy.inductor.collecting import Collected, collect
from tunewise.deploy.inductor.comparing import Compared, compare, compare_shapes, ways_of
from tunewise.deploy.inductor.custom import CustomDecision, custom_decision
from tunewise.deploy.inductor.flex import flex_block_size, tuned_flex_attention
from tunewise.deploy.inductor.listening import Heard, heard
from tunewise.deploy.inductor.recording import record, record_script
from tunewise.deploy.inductor.shapes import Shape

__all__ = [
    "Collected",
    "Compared",
    "CustomDecision",
    "Heard",
    "Shape",
    "collect",
    "compare",
    "compare_shapes",
    "custom_decision",
    "decisions",
    "flex_block_size",
    "heard",
    "inductor",
    "record",
    "record_script",
    "tuned_flex_attention",
    "ways_of",
]
