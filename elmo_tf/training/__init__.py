"""Training the BiLM: the step, the loop around it, checkpoints, evaluation, and progress reports."""
