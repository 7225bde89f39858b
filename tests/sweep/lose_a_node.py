"""Start a Ray cluster of two nodes here, run a command on it, and kill a node in the middle.

    python lose_a_node.py RUNS STEPS COMMAND...

RUNS is the folder of run folders; the node is killed when two runs have been saved that have not
come to their last of STEPS steps, one on each node. ADDRESS in the command becomes the address of
the cluster. Exits as the command does.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from ray.cluster_utils import Cluster

SMALL = {"num_cpus": 1, "object_store_memory": 80_000_000}


def going_on(runs, steps):
    """Run folders that have been saved, but not at their end."""
    saved = {path.parent for path in runs.glob("*/checkpoints/*-step-*")}
    return saved - {path.parent for path in runs.glob(f"*/checkpoints/*-step-{steps}")}


def main(runs, steps, command):
    cluster = Cluster(initialize_head=True, head_node_args={**SMALL, "include_dashboard": False})
    node = cluster.add_node(**SMALL)
    cluster.wait_for_nodes()
    process = subprocess.Popen([cluster.address if c == "ADDRESS" else c for c in command])
    while len(going_on(runs, steps)) < 2:
        if process.poll() is not None:
            return process.returncode
        time.sleep(0.05)
    cluster.remove_node(node, allow_graceful=False)
    code = process.wait(timeout=500)
    cluster.shutdown()
    return code


if __name__ == "__main__":
    code = main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
    os._exit(code)  # Ray would look for its cluster for another half a minute
