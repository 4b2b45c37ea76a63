"""Learned models as plain values: evaluate, validate, save, load; nothing here trains."""

from tunewise.models.bodies import Forest, Guess, Leaf, Split, Tree
from tunewise.models.columns import SIGNS, Columns, Derived, Input, Number, Op, Word, apply
from tunewise.models.model import Body, Card, Model, dump, load, parse, save
from tunewise.models.net import Layer, Level, Net, Scale
from tunewise.models.work import E, Work

__all__ = [
    "SIGNS",
    "Body",
    "Card",
    "Columns",
    "Derived",
    "E",
    "Forest",
    "Guess",
    "Input",
    "Layer",
    "Leaf",
    "Level",
    "Model",
    "Net",
    "Number",
    "Op",
    "Scale",
    "Split",
    "Tree",
    "Word",
    "Work",
    "apply",
    "dump",
    "load",
    "parse",
    "save",
]
