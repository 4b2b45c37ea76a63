"""tunewise gives every performance decision a memory and good judgement."""

__version__ = "0.1.0"
