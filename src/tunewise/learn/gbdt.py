"""The large ranker: LightGBM over all configs, on times or on their order, whichever ranks better."""

from tunewise.learn.ranker import Budget, RankerLearner

_MOST_CHOICES = 2_000


class GbdtLearner(RankerLearner):
    """Ranks every config by as many boosted trees as cross-validation asks for."""

    name = "gbdt"
    budget = Budget(
        choices=_MOST_CHOICES,
        columns=(200,),
        trees=(120, 300),
        boosters=3,
        objectives=("regression", "lambdarank"),
    )
