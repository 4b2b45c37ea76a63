"""Expert heuristics that ship: one file a family, listed in the registry."""
