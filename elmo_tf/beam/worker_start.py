"""The first import of the process that workers are forked from, whose logging it changes. Import it nowhere else."""

import logging

# Beam logs at its import that Google's client is not installed; without a handler that would be printed.
logging.getLogger().addHandler(logging.NullHandler())
