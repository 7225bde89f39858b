#!/usr/bin/env python3
"""The four commands of Slurm that a sweep needs, on one machine; called by the name of a link.

State lies in the folder $FAKE_SLURM: the submitted scripts, and a file for each job with its state.
"""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

FOLDER = Path(os.environ["FAKE_SLURM"])
FIRST = 7
"""Number of the first array."""


def sbatch(script):
    """Run the jobs of an array, one after the other, in the background."""
    text = Path(script).read_text()
    array = FIRST + len(list(FOLDER.glob("script-*")))
    copy = FOLDER / f"script-{array}"
    copy.write_text(text)
    count = int(re.search(r"--array=0-(\d+)%", text)[1]) + 1
    print(f"Submitted batch job {array}", flush=True)
    subprocess.Popen(
        [sys.executable, __file__, "serve", str(copy), str(count), str(array)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def serve(script, count, array):
    for index in range(int(count)):
        state = FOLDER / f"{array}_{index}"
        if (FOLDER / f"cancelled-{array}_{index}").exists():
            state.write_text("CANCELLED")
            continue
        state.write_text("RUNNING")
        env = {
            **os.environ, "SLURM_JOB_ID": f"{array}{index:02}", "SLURM_ARRAY_JOB_ID": array,
            "SLURM_ARRAY_TASK_ID": str(index), "SLURM_NTASKS": "1", "SLURM_JOB_NUM_NODES": "1",
            "SLURM_NODEID": "0", "SLURM_PROCID": "0", "SLURM_LOCALID": "0",
            "SLURM_JOB_NODELIST": "here",
        }  # fmt: skip
        job = subprocess.Popen(["bash", script], env=env, start_new_session=True)
        (FOLDER / f"pid-{array}_{index}").write_text(str(job.pid))
        state.write_text("FAILED" if job.wait() else "COMPLETED")


def srun(*arguments):
    begin = next(i for i, each in enumerate(arguments) if Path(each).name.startswith("python"))
    os.execvp(arguments[begin], arguments[begin:])


def sacct(*_):
    print("JobID|State|NodeList")
    for path in sorted(FOLDER.glob("[0-9]*_*")):
        print(f"{path.name}|{path.read_text()}|here")


def scancel(job):
    # Sweeps cancel all that is left: none that comes later may begin meanwhile.
    array, _, first = job.rpartition("_")
    for index in range(int(first), 64):
        (FOLDER / f"cancelled-{array}_{index}").touch()
    pid = FOLDER / f"pid-{job}"
    with suppress(FileNotFoundError, ValueError, ProcessLookupError):
        os.killpg(int(pid.read_text()), signal.SIGTERM)


COMMANDS = {"sbatch": sbatch, "serve": serve, "srun": srun, "sacct": sacct, "scancel": scancel}

if __name__ == "__main__":
    name, arguments = Path(sys.argv[0]).name, sys.argv[1:]
    if arguments[0] == "serve":
        name, *arguments = arguments
    COMMANDS[name](*arguments)
