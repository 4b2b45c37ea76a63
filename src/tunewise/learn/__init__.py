"""Data sets in, models out: splits, portfolios, learners, and validation that is honest about both."""
