"""Tests: contracts, values against `elmo_tf/reference.py` in float64, invariants, and the real commands end to end."""
