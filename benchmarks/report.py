"""The end of a benchmark's output: a table of figures, and the same as a line of JSON."""

import json


def report(figures: dict[str, float], table: bool = True) -> None:
    """Prints a figure per line, then all as JSON."""
    if table:
        width = max(map(len, figures))
        for name, value in figures.items():
            print(f"{name:{width}} {value:12,.3f}")
    print(json.dumps({name: float(f"{value:.5g}") for name, value in figures.items()}))
