"""Whether updates fit a graphics card, told before the first frame; what does not is refused.

Windows that would fit are foreseen like those that do not: much of what a large agent takes, as
weights and gradients, is the same for any number of them.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from rich.console import Console

from curious_replay.agents.interface import Agent
from curious_replay.errors import UsageError
from curious_replay.run import card
from curious_replay.run.foreseen import BATCH, CardNeeds, Windows, foreseeing, windows_of
from curious_replay.run.preflight import PreflightError, size
from curious_replay.run.settings.config import Config
from curious_replay.run.settings.config_io import knows, option

FRAGMENTS = 1.15  # an allocator of a card cannot use all of what it has
CONTEXT = 600_000_000  # bytes that CUDA and its libraries take for themselves, about
TRIES = 2  # each is an update that is foreseen, of seconds


def check(
    config: Config, agent: Agent, processes: int, console: Console, *, resumed: bool = False
) -> None:
    """Tell what updates will take of the graphics card, if there is one; refuse what it lacks.

    `processes` share the windows of an update, and each has a card of its own.
    """
    free = card.free(agent.device)
    if free is None:
        return
    whole = windows_of(config, agent)
    used = replace(config, train=replace(config.train, precision=agent.precision))
    with foreseeing(used, agent.spaces) as ask:

        def foresee(windows: Windows) -> CardNeeds | None:
            return ask({name: count // processes for name, count in windows.items()})

        needed = foresee(whole)
        if needed is None:
            console.print(
                "card: what an update will take of it cannot be foreseen", highlight=False
            )
            return
        console.print(
            f"card: {size(needed.total)} for an update, {size(free)} are free; it is "
            f"{needed.flops / 1e12:.2g} TFLOP in {needed.kernels:,} kernels",
            highlight=False,
        )
        room = free + needed.weights - CONTEXT  # the agent has its weights there already
        if takes(needed) <= room:
            return
        fits = ""
        if not resumed:  # such a run cannot have other windows

            def taken(windows: Windows) -> float:
                found = foresee(windows)
                return takes(found) if found else math.inf

            fewer = fewer_windows(config, agent, processes)
            if found := most_that_fit(taken, fewer, takes(needed), room):
                told = " ".join(f"{option(name)} {found[name]}" for name in found)
                fits = f"{told} would fit; "
    parts = ("weights", "optimisers", "batch", "activations")
    told = ", ".join(f"{size(getattr(needed, part))} {part}" for part in parts)
    raise PreflightError(
        f"an update needs about {size(takes(needed))} of the card's memory ({told}); "
        f"{size(room)} are free: {fits}{card.smaller(config, agent.device, resumed=resumed)}. "
        "--train.device cpu needs no card"
    )


def takes(needed: CardNeeds) -> float:
    """Return the bytes of a card that an update takes, with those that nothing can use."""
    return needed.total * FRAGMENTS


def fewer_windows(config: Config, agent: Agent, processes: int) -> list[Windows]:
    """Return windows that updates could have instead of what the settings say, fewest first.

    Batch and streams shrink together, to what all processes can share evenly. A stream whose
    windows are no setting stays as it is.
    """
    whole = {
        name: count
        for name, count in windows_of(config, agent).items()
        if name == BATCH or knows(type(config.agent), name.removeprefix("agent."))
    }
    found: list[Windows] = []
    for windows in range(processes, whole[BATCH], processes):
        shares = {name: count * windows // whole[BATCH] for name, count in whole.items()}
        if processes == 1 or _can_share(agent, processes, windows, config.train.batch_length):
            found.append({n: max(c - c % processes, processes) for n, c in shares.items()})
    return found


def _can_share(agent: Agent, processes: int, windows: int, length: int) -> bool:
    try:
        agent.check_sharing(processes, windows, length)
    except UsageError:
        return False
    return True


def most_that_fit(
    taken: Callable[[Windows], float], fewer: list[Windows], whole: float, room: float
) -> Windows | None:
    """Return the most windows that were `taken` to need no more than `room` bytes, if any do.

    taken  foresees the bytes of an update with some windows
    whole  bytes with all windows, which are more than there is room for

    They are looked for where memory would be used up if it grew evenly from few windows to many.
    It grows faster at the end, where other parts of an update become the most crowded, so that a
    guess in between is rather too small.
    """
    if not fewer or (least := taken(fewer[0])) > room:
        return None
    low, high = 0, len(fewer)
    for _ in range(TRIES):
        guess = low + int((room - least) / (whole - least) * (high - low))
        if guess <= low:
            break
        found = taken(fewer[guess])
        if found <= room:
            low, least = guess, found
        else:
            high, whole = guess, found
    return fewer[low]
