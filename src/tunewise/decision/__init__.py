"""The values: spaces, problems, hardware, policies, trials and answers. They measure nothing and store nothing."""

from tunewise.decision.answer import Answer, Rung
from tunewise.decision.check import NO_CHECK, Args, Check
from tunewise.decision.declaration import CHOICE, Declaration
from tunewise.decision.facts import AttentionFact, Fact, MatmulFact, ReductionFact
from tunewise.decision.hardware import Environment, Hardware, Part, detect, environment
from tunewise.decision.origin import Origin
from tunewise.decision.params import Param, Scalar, Value, boolean, integer, permutation, pow2
from tunewise.decision.policy import Policy
from tunewise.decision.problem import Feature, Problem
from tunewise.decision.rules import Rule
from tunewise.decision.space import Config, Places, Space
from tunewise.decision.trial import (
    FAILURE_KINDS,
    Failure,
    FailureKind,
    Miss,
    Outcome,
    Proposal,
    Subject,
    Timing,
    Trial,
    Verdict,
    half_of,
    lower_half_mean,
    merged,
)

__all__ = [
    "Answer",
    "Args",
    "AttentionFact",
    "CHOICE",
    "Check",
    "Config",
    "Declaration",
    "Environment",
    "FAILURE_KINDS",
    "Fact",
    "Failure",
    "FailureKind",
    "Feature",
    "Hardware",
    "MatmulFact",
    "Miss",
    "NO_CHECK",
    "Outcome",
    "Param",
    "Part",
    "Places",
    "Policy",
    "Problem",
    "Proposal",
    "ReductionFact",
    "Rule",
    "Rung",
    "Scalar",
    "Space",
    "Subject",
    "Timing",
    "Origin",
    "Trial",
    "Value",
    "Verdict",
    "boolean",
    "detect",
    "environment",
    "integer",
    "half_of",
    "lower_half_mean",
    "merged",
    "permutation",
    "pow2",
]
