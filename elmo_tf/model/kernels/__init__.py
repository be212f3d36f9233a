"""Faster versions of parts of the network; tests compare each with the plain computation."""
