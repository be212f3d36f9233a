"""What each layer of a biLM knows: probes as in section 5.3 of the paper, and learned mix weights."""
