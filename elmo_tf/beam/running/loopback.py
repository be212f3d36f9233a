"""Beam's gRPC servers on this machine alone: Beam 2.77 has them listen on all addresses, without authentication."""

from typing import Any

import grpc
from apache_beam.runners.portability import abstract_job_service, local_job_service
from apache_beam.runners.portability.fn_api_runner import worker_handlers
from apache_beam.runners.worker import worker_pool_main

# Each makes servers through its global name `grpc`.
_MODULES = (abstract_job_service, local_job_service, worker_handlers, worker_pool_main)


class _LoopbackGrpc:
    """The module grpc, except that its servers listen on loopback addresses whatever address they are given."""

    def __getattr__(self, name: str) -> Any:
        return getattr(grpc, name)

    def server(self, *arguments: Any, **settings: Any) -> grpc.Server:
        """Returns `grpc.server`'s server."""
        made = grpc.server(*arguments, **settings)
        listen = made.add_insecure_port
        made.add_insecure_port = lambda address: listen(f"localhost:{address.rpartition(':')[2]}")
        return made


def restrict() -> None:
    """Has the servers that Beam starts in this process from now on listen on loopback addresses only."""
    for module in _MODULES:
        module.grpc = _LoopbackGrpc()
