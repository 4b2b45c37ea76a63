"""Measuring in the tuner's own process: for work that cannot be forked, such as a GPU already in use."""

from tunewise.measure.bench import Bench


class InProcess(Bench):
    """A bench in this very process: exceptions become Failures, but a crash, a hang or a leak is the program's own."""
