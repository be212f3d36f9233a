"""First import of the process that workers are forked from; changes its logging. Import it nowhere else."""

import logging

# On import, Beam logs that Google's client is not installed; without a handler that would be printed.
logging.getLogger().addHandler(logging.NullHandler())
