"""The metrics of the paper's tasks, with the figures of their official scorers."""
