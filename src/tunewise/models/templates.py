"""The parts that all generated modules share, by what their choices are: words, or configs."""

CHOOSE = {
    "words": '''def choose(features):
    """Return the best choice for a problem, or None where the default is as good a guess."""
    try:
        ranking = _ranking(features)
    except Exception:  # a feature is missing, or of another kind
        return None
    return ranking[0] if ranking else None''',
    "configs": '''def choose(features):
    """Return the best config for a problem, or None where the default is as good a guess."""
    try:
        ranking = _ranking(features)
    except Exception:  # a feature is missing, or of another kind
        return None
    return {**CHOICES[ranking[0]]} if ranking else None''',
}
RANK = {
    "words": '''def rank(features, k=None):
    """Return choices for a problem, best first, at most k; empty where the default is as good a guess."""
    try:
        ranking = _ranking(features)
    except Exception:  # a feature is missing, or of another kind
        return []
    return [*ranking[:k]] if k is None or k > 0 else []''',
    "configs": '''def rank(features, k=None):
    """Return configs for a problem, best first, at most k; empty where the default is as good a guess."""
    try:
        ranking = _ranking(features)
    except Exception:  # a feature is missing, or of another kind
        return []
    return [{**CHOICES[number]} for number in ranking[:k]] if k is None or k > 0 else []''',
}
SORTED = {
    "words": "[CHOICES[number] for _, number in sorted(guesses)]",
    "configs": "[number for _, number in sorted(guesses)]",
}
