"""The metrics of the paper's tasks, equal to those of their official scorers."""
