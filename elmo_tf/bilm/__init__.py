"""The bidirectional language model: `model` is the network, `packed` runs it over whole sentences without padding."""
