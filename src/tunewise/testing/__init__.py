"""Contracts that any store, strategy or measurer can inherit; imported by nobody in the product."""
