"""Tests: contracts, values against `reference.py`, invariants, and the real commands end to end."""
