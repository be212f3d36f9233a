"""Beam's worker pool on one loopback address. Beam's own program listens on every address of the machine.

python -m tests.cluster.worker_pool ADDRESS
"""

import sys
import threading

import grpc
from apache_beam.portability.api import beam_fn_api_pb2_grpc
from apache_beam.runners.worker import worker_pool_main
from apache_beam.utils import thread_pool_executor


def main() -> None:
    # Otherwise two pools could have one address, and share the requests.
    server = grpc.server(thread_pool_executor.shared_unbounded_instance(), options=[("grpc.so_reuseport", 0)])
    server.add_insecure_port(sys.argv[1])
    pool = worker_pool_main.BeamFnExternalWorkerPoolServicer(use_process=True)
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    server.start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
