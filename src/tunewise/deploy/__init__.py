"""Adapters: one file for each program or framework that tunewise answers questions of."""
