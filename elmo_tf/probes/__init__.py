"""What each of a biLM's layers knows: probes as in section 5.3 of the paper, and what mixes have learned."""
