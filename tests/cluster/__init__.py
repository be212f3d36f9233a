"""Both Beam jobs on a real Flink cluster on this machine: `make test-cluster`."""
