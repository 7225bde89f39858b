"""What an update of each agent takes of a graphics card, counted without one; see docs/gpu.md.

python bench/card.py --scale paper
"""

import argparse

from curious_replay.agents.spaces import Spaces
from curious_replay.run import Choice, preset
from curious_replay.run.foreseen import foresee
from curious_replay.run.settings.agents import AGENTS
from curious_replay.run.settings.config import SCALES

ACTIONS = 17


def main() -> None:
    """Print a row for each agent on Crafter."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--scale", default="paper", choices=SCALES)
    parser.add_argument("--agents", nargs="*", default=[*AGENTS], choices=[*AGENTS])
    options = parser.parse_args()
    print("| Agent | TFLOP | Kernels | Weights, optimisers, GB | Batch, activations, GB |")
    print("|---|---|---|---|---|")
    for name in options.agents:
        config = preset(Choice(env="crafter", agent=name, replay="curious", scale=options.scale))
        pixels = config.env.image_size
        needed = foresee(config, Spaces(ACTIONS, discrete=True, image=(pixels, pixels)))
        if needed is None:
            print(f"| `{name}` | cannot be foreseen | | | |")
            continue
        constant, rest = needed.constant / 1e9, (needed.total - needed.constant) / 1e9
        work = f"{needed.flops / 1e12:.2f} | {needed.kernels:,}"
        print(f"| `{name}` | {work} | {constant:.2f} | {rest:.2f} |", flush=True)


if __name__ == "__main__":
    main()
