"""Beam's worker process with its log to Beam's driver alone: on stderr each would repeat some thirty lines at start."""

import logging
import sys

if __name__ == "__main__":
    complaints = logging.StreamHandler()
    complaints.setLevel(logging.ERROR)
    logging.basicConfig(handlers=[complaints])

    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main(sys.argv)
