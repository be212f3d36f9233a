"""`python -m elmo_tf.cli`, the same as `elmo-tf`."""

import sys

from elmo_tf.cli import main

if __name__ == "__main__":
    sys.exit(main())
