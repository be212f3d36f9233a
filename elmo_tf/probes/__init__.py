"""What each layer of a biLM knows: probes as in section 5.3 of the paper, and the weights that mixes have learned."""
