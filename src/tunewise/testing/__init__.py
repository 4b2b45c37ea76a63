"""Contracts that any store, strategy, measurer or library can inherit; imported by nobody in the product."""

import pytest

# A contract that fails in somebody else's tests shows the values, as asserts of their own do.
pytest.register_assert_rewrite(
    f"{__name__}.autotuner_contract", f"{__name__}.store_contract", f"{__name__}.strategy_contract"
)
