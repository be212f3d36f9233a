"""Training the BiLM: one step, the loop around it, checkpoints, evaluation, and what a person sees of it."""
