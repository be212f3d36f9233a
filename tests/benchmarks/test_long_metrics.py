"""`benchmarks/long_metrics.py` simulates a short run."""

import json

from benchmarks import long_metrics


def test_it_prints_what_a_step_costs_at_the_beginning_and_at_the_end(capsys):
    assert long_metrics.main(["--steps", "2000", "--eval-steps", "100"]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(figures) == {"first_tenth_us_per_step", "last_tenth_us_per_step", "resume_seconds", "megabytes"}
    # 2,000 lines of about 120 bytes, and 20 evaluations.
    assert min(figures.values()) > 0 and 0.2 < figures["megabytes"] < 0.3
