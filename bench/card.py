"""What an update of each agent takes of a graphics card, counted without one; see docs/gpu.md.

python bench/card.py --scale paper
"""

import argparse
from dataclasses import replace

from curious_replay.agents.spaces import Spaces
from curious_replay.run import Choice, preset
from curious_replay.run.foreseen import foresee
from curious_replay.run.settings.agents import AGENTS
from curious_replay.run.settings.config import SCALES, Precision

ACTIONS = 17
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16")  # of old cards and of new ones


def main() -> None:
    """Print a row for each agent on Crafter in each precision."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--scale", default="paper", choices=SCALES)
    parser.add_argument("--agents", nargs="*", default=[*AGENTS], choices=[*AGENTS])
    options = parser.parse_args()
    print("| Agent | Precision | TFLOP | Kernels | Weights, optimisers, GB | Others, GB | All |")
    print("|---|---|---|---|---|---|---|")
    for name in options.agents:
        config = preset(Choice(env="crafter", agent=name, replay="curious", scale=options.scale))
        pixels = config.env.image_size
        spaces = Spaces(ACTIONS, discrete=True, image=(pixels, pixels))
        for precision in PRECISIONS:
            train = replace(config.train, precision=precision)
            needed = foresee(replace(config, train=train), spaces)
            if needed is None:
                print(f"| `{name}` | {precision} | cannot be foreseen | | | | |")
                continue
            constant, rest = needed.constant / 1e9, (needed.total - needed.constant) / 1e9
            work = f"{needed.flops / 1e12:.2f} | {needed.kernels:,}"
            memory = f"{constant:.2f} | {rest:.2f} | {needed.total / 1e9:.2f}"
            print(f"| `{name}` | {precision} | {work} | {memory} |", flush=True)


if __name__ == "__main__":
    main()
