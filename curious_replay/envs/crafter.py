"""The game Crafter behind Gymnasium's interface.

The game itself is the `crafter` package, unchanged by default. Two things are added around it.

The stock game cannot be repeated: every tenth step it may remove one of several creatures, and it
picks from a Python set of objects, whose order follows memory addresses. `deterministic=True`
presents the creatures in order of age instead; everything else stays the same. Which of the two
was played is in `info["deterministic"]`, so that a run can record it.

`get_state` and `set_state` save and restore a game in the middle of an episode. With
`deterministic=True` it goes on bit for bit; the stock game goes on from the same place, with the
order of its creatures as arbitrary as ever.
"""

from collections.abc import Collection
from typing import Any

import crafter
import gymnasium
import numpy as np
from crafter import constants, objects
from gymnasium import spaces

from curious_replay.envs.interface import METADATA, check_step, image_space
from curious_replay.errors import UsageError

Array = np.ndarray
ACTIONS: tuple[str, ...] = tuple(constants.actions)
ACHIEVEMENTS: tuple[str, ...] = tuple(constants.achievements)
"""Names of the 22 achievements, in the order of `info["log_achievements"]`."""
ITEMS: tuple[str, ...] = tuple(constants.items)
"""Names of the 16 inventory entries (the first four are vital signs), as in `log_inventory`."""

SEEDS = 2**31 - 1
SLOTS = 10_000_000
"""Places for objects, living and gone, that a saved game may have."""
_CLASSES = {
    cls.__name__: cls
    for cls in (
        objects.Player,
        objects.Cow,
        objects.Zombie,
        objects.Skeleton,
        objects.Arrow,
        objects.Plant,
        objects.Fence,
    )
}
# References that every object holds and that set_state makes anew.
_LINKS = ("world", "random", "player", "pos")


class _OrderedGame(crafter.Env):  # type: ignore[misc]  # the package has no types
    """The stock game, except that creatures of a chunk are looked at in order of age."""

    def _balance_chunk(self, chunk: tuple[int, ...], objs: Collection[objects.Object]) -> None:
        world = self._world
        super()._balance_chunk(chunk, sorted(objs, key=lambda obj: world._obj_map[tuple(obj.pos)]))


class CrafterEnv(gymnasium.Env[Any, np.int64]):
    """Crafter with 17 actions and a picture of the 9 x 9 cells around the player.

    - observation: `{"image": uint8 [image_size, image_size, 3]}`; one step is one frame;
    - reward: +1 for each achievement unlocked for the first time in an episode and 0.1 per point
      of health gained or lost; with `reward=False` the agent gets 0 and `log_reward` keeps it;
    - terminated when the player dies, truncated after `length` steps (0: never);
    - `info`: `achievements` and `inventory` as dictionaries of counts, the same as arrays in the
      order of `ACHIEVEMENTS` and `ITEMS` in `log_achievements` and `log_inventory`.

    `reset(seed=s)` opens the same world as `crafter.Env(seed=s).reset()`, later resets the same
    following ones.
    """

    metadata = METADATA

    def __init__(
        self,
        *,
        reward: bool = True,
        deterministic: bool = False,
        image_size: int = 64,
        length: int = 10_000,
        area: int = 64,
        view: int = 9,
        render_mode: str | None = None,
    ) -> None:
        if not 5 <= view <= 15 or view % 2 == 0:
            raise UsageError(f"view must be an odd number of cells from 5 to 15, got {view}")
        if length < 0:
            raise UsageError(f"length must be 0 (endless) or a number of steps, got {length}")
        if area < 16:
            raise UsageError(f"area must be at least 16 cells wide, got {area}")
        self.render_mode = render_mode
        self.deterministic = deterministic
        game = _OrderedGame if deterministic else crafter.Env
        # The seed is set at reset; 0 only keeps the game from asking NumPy's global generator.
        self._game = game(
            area=(area, area), view=(view, view), size=(image_size, image_size), reward=reward,
            length=length, seed=0,
        )  # fmt: skip
        self._seeded = False
        self._image: Array | None = None
        self.action_space = spaces.Discrete(len(ACTIONS))
        self.observation_space = image_space(image_size)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Open the next world; with a seed the first one of that seed."""
        super().reset(seed=seed)
        if seed is not None or not self._seeded:
            self._game._seed = int(self.np_random.integers(SEEDS)) if seed is None else seed
            self._game._episode = 0
            self._seeded = True
        self._image = self._game.reset()
        return self._observation(), self._info(reward=0.0)

    def step(
        self, action: np.int64 | int
    ) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """Play one action: an index into `ACTIONS`."""
        check_step(self, action, started=self._image is not None)
        self._image, reward, done, info = self._game.step(int(action))
        dead = info["discount"] == 0
        return (
            self._observation(),
            float(reward),
            dead,
            bool(done) and not dead,
            self._info(reward=float(info["reward"])),
        )

    def render(self) -> Array | None:
        """Return the present picture.

        Asking the game to draw again would move its random numbers.
        """
        if self.render_mode is None or self._image is None:
            return None
        return self._image.copy()

    def get_state(self) -> dict[str, Any]:
        """Return all of the game.

        Map, objects in order of age, player, counters, random numbers.
        """
        game, world = self._game, self._game._world
        if self._image is None:
            raise gymnasium.error.ResetNeeded("there is no game to save before reset()")
        alive = {slot: obj for slot, obj in enumerate(world._objects) if obj is not None}
        return {
            "deterministic": self.deterministic,
            "np_random": self.np_random.bit_generator.state,
            "image": self._image.copy(),
            "seed": game._seed,
            "episode": game._episode,
            "step": game._step,
            "last_health": game._last_health,
            "unlocked": sorted(game._unlocked),
            "world_random": world.random.get_state(legacy=False),
            "materials": world._mat_map.copy(),
            "slots": len(world._objects),
            "objects": [_object_state(slot, obj) for slot, obj in alive.items()],
            # Chunks are visited in the order in which something first entered them.
            "chunks": [[int(edge) for edge in chunk] for chunk in world._chunks],
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue a game saved by `get_state` of an environment made with the same arguments."""
        if state["deterministic"] != self.deterministic:
            raise ValueError(
                f"this state was saved with deterministic={state['deterministic']}, "
                f"the environment has deterministic={self.deterministic}"
            )
        game, world = self._game, self._game._world
        if state["materials"].shape != tuple(world.area):
            raise ValueError(
                f"this state has an area of {state['materials'].shape} cells, "
                f"the environment of {tuple(world.area)}"
            )
        if not len(state["objects"]) <= state["slots"] <= SLOTS:
            raise ValueError(f"a world has at most {SLOTS} objects, this state {state['slots']}")
        self.np_random.bit_generator.state = state["np_random"]
        self._seeded = True
        self._image = state["image"].copy()
        game._seed, game._episode, game._step = state["seed"], state["episode"], state["step"]
        game._last_health, game._unlocked = state["last_health"], set(state["unlocked"])
        world.reset()
        world.random.set_state(state["world_random"])
        game._update_time()
        world._mat_map[:] = state["materials"]
        world._objects = [None] * state["slots"]
        for chunk in state["chunks"]:
            world._chunks[tuple(chunk)] = set()
        # The player is the first object of every world; creatures refer to it.
        for saved in state["objects"]:
            obj = _restore_object(world, saved)
            if isinstance(obj, objects.Player):
                game._player = obj
            elif isinstance(obj, objects.Zombie | objects.Skeleton):
                obj.player = game._player

    def _observation(self) -> dict[str, Array]:
        assert self._image is not None
        return {"image": self._image.copy()}

    def _info(self, reward: float) -> dict[str, Any]:
        player = self._game._player
        return {
            "phase": "constant",
            "deterministic": self.deterministic,
            "achievements": dict(player.achievements),
            "inventory": dict(player.inventory),
            "log_achievements": np.array([player.achievements[n] for n in ACHIEVEMENTS], np.uint16),
            "log_inventory": np.array([player.inventory[n] for n in ITEMS], np.uint8),
            "log_player_position": np.array(player.pos, np.int16),
            "log_reward": np.float32(reward),
        }


def _object_state(slot: int, obj: objects.Object) -> dict[str, Any]:
    """Return one object as plain values; `slot` is its place in the list of objects."""
    fields = {name: value for name, value in vars(obj).items() if name not in _LINKS}
    if "facing" in fields:
        fields["facing"] = [int(value) for value in fields["facing"]]
    for name in ("inventory", "achievements"):
        if name in fields:
            fields[name] = {key: int(value) for key, value in fields[name].items()}
    pos = [int(value) for value in obj.pos]
    return {"slot": slot, "class": type(obj).__name__, "pos": pos, "fields": fields}


def _restore_object(world: Any, saved: dict[str, Any]) -> objects.Object:
    """Put an object back into the slot, cell and chunk it had."""
    obj = objects.Object.__new__(_CLASSES[saved["class"]])
    obj.world, obj.random, obj.pos = world, world.random, np.array(saved["pos"])
    for name, value in saved["fields"].items():
        setattr(obj, name, dict(value) if isinstance(value, dict) else value)
    world._objects[saved["slot"]] = obj
    world._obj_map[tuple(obj.pos)] = saved["slot"]
    world._chunks[world.chunk_key(obj.pos)].add(obj)
    return obj
