"""`elmo-tf embed` as a script: python pipelines/embed.py --model english --input a.txt --output vectors --runner=...

The options of the command, and Beam's own. The pipeline is built in `elmo_tf/beam/embed/run.py`.
"""

import sys

from elmo_tf import cli

if __name__ == "__main__":
    sys.exit(cli.main(["embed", *sys.argv[1:]]))
