"""`elmo-tf train` as a script: python pipelines/train.py --data data/train --workdir runs/mine --preset tiny --gpus 0,1

The options of the command. The loop is in `elmo_tf/training/loop.py`.
"""

import sys

from elmo_tf import cli

if __name__ == "__main__":
    sys.exit(cli.main(["train", *sys.argv[1:]]))
