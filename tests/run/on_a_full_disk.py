"""Train on a small disk that fills up on the way, make room, and go on.

Needs a mount namespace of its own, in which it may mount: `unshare --map-root-user --mount`.
"""

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

SCRIPT = Path(__file__).with_name("fake_cli.py")


def main(where):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "small", str(where)], check=True)
    run, filler = where / "run", where / "filler"
    command = [
        sys.executable, str(SCRIPT), "train", "--env", "toy/count", "--agent", "fake", "--scale",
        "debug", "--resume", "--logdir", str(run), "--train.save-every", "10", "--train.steps",
    ]  # fmt: skip
    training = subprocess.Popen([*command, "1e6"], stderr=subprocess.PIPE, text=True)
    try:
        while training.poll() is None and len(list(run.glob("checkpoints/0*"))) < 2:
            time.sleep(0.02)
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        _, said = training.communicate(timeout=300)
    finally:
        training.kill()
    print(said)
    assert training.returncode == 1
    step = max(int(path.name.rpartition("-")[2]) for path in run.glob("checkpoints/0*"))
    filler.unlink()
    subprocess.run([*command, str(step + 20)], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
