"""Learned seeds: a ranker that says what a tuning run should try first, from what other problems taught."""

from dataclasses import replace

import msgspec

from tunewise.errors import InvalidData
from tunewise.formats.dataset import DataSet
from tunewise.learn.options import Training
from tunewise.learn.training import train
from tunewise.models import Model

LEARNER = "ranker"
_FEWEST = 2  # problems: what holds for one says nothing of another
_CONTENDERS = 500  # of a search's many configs more are worth proposing than could be ranked while a program waits
_MARGIN = 1e3  # a seed for a problem far from all that was learned is still a guess


def train_seeds(data: DataSet, options: Training = Training(), learner: str = LEARNER) -> Model:  # noqa: B008  # frozen
    """Return a model that proposes seeds and answers nothing; raises as `train` does, and for a single problem.

    It holds on all devices unless the options fence it: a seed that is wrong elsewhere costs an evaluation.
    """
    if len(data) < _FEWEST:
        raise InvalidData(f"{data.decision}: seeds are learned from {_FEWEST} problems or more; tune another one first")
    fence = {} if options.fence is None else options.fence
    wide = replace(options, fence=fence, contenders=options.contenders or _CONTENDERS, margin=_MARGIN)
    model = train(data, wide, learner)
    return msgspec.structs.replace(model, card=msgspec.structs.replace(model.card, only_seeds=True))
