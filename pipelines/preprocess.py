"""`elmo-tf preprocess` as a script: python pipelines/preprocess.py --input 'corpus/*' --output data/train --runner=...

The options of the command, and Beam's own. The pipeline is built in `elmo_tf/beam/preprocess/run.py`.
"""

import sys

from elmo_tf import cli

if __name__ == "__main__":
    sys.exit(cli.main(["preprocess", *sys.argv[1:]]))
