"""The metrics of the paper's tasks, as their official scorers compute them."""
