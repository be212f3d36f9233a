"""Training the BiLM: the step, the loop around it, checkpoints, evaluation, and the progress that a person sees."""
