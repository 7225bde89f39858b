"""Control-suite tasks before a picture: swapped after a million frames, or new at every frame.

The picture replaces the sky on all sides, and the floor turns almost transparent so that it fills
the view. Physics and rewards stay dm_control's.
"""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import mujoco

from curious_replay.envs.control import ControlSuite
from curious_replay.envs.drawing.camera import Image
from curious_replay.envs.drawing.landscape import (
    Backgrounds,
    FolderBackgrounds,
    PaintedBackgrounds,
    Pixels,
)
from curious_replay.envs.drawing.textures import texture_pixels
from curious_replay.envs.schedule import Schedule
from curious_replay.envs.simulated import Action
from curious_replay.errors import UsageError


class BackgroundControl(ControlSuite):
    """A control-suite task before a picture.

    `images` is a folder of pictures or of clips (folders of pictures), `clips` names those to use,
    in order; without a folder, `painted` landscapes are made from `background_seed`.
    `background_size` is the side in pixels that pictures are scaled to, and `floor_alpha` the
    opacity of the floor. Further arguments are those of `ControlSuite`.
    """

    def __init__(
        self,
        *,
        images: str | Path | None = None,
        clips: Sequence[str] | None = None,
        painted: int = 100,
        background_seed: int = 1,
        background_size: int = 128,
        floor_alpha: float = 0.1,
        **control: Any,
    ) -> None:
        if not 16 <= background_size <= 800:
            raise UsageError(f"background_size must be from 16 to 800, got {background_size}")
        if not 0 <= floor_alpha <= 1:
            raise UsageError(f"floor_alpha must be from 0 to 1, got {floor_alpha}")
        if clips is not None and images is None:
            raise UsageError("clips choose among the folders of images, so images must be given")
        self._size, self._floor_alpha = background_size, floor_alpha
        self._backgrounds: Backgrounds = (
            PaintedBackgrounds(background_seed, painted, background_size)
            if images is None
            else FolderBackgrounds(Path(images), background_size, clips)
        )
        super().__init__(**control)

    def _edit_model(self, model: mujoco.MjModel) -> None:
        self._sky = int(model.texture("skybox").id)
        # A square sky is one picture for all six sides; MuJoCo stores more bytes than it needs.
        model.tex_width[self._sky] = model.tex_height[self._sky] = self._size
        model.mat_rgba[model.material("grid").id, 3] = self._floor_alpha

    def _show(self, picture: Pixels) -> None:
        texture_pixels(self.model, self._sky)[:] = picture
        self._camera.reload_texture(self._sky)


class BackgroundSwap(BackgroundControl):
    """Background A, then B, then A again; a change waits for the next episode."""

    PHASES: ClassVar[tuple[str, ...]] = ("A", "B")
    SCHEDULE: ClassVar[Schedule] = Schedule(((0, "A"), (1_000_000, "B"), (2_000_000, "A")))

    def _apply_phase(self) -> None:
        self._show(self._backgrounds.first(self.PHASES.index(self._shown_phase)))


class RandomBackground(BackgroundControl):
    """Another background, drawn at random, at every frame."""

    _number = 0  # of the present picture in the pool

    @functools.cached_property
    def _pool(self) -> Sequence[Pixels]:
        return self._backgrounds.pool()

    def _begin(self, seed: int | None) -> None:
        super()._begin(seed)
        self._number = int(self.np_random.integers(len(self._pool)))

    def _frame(self, action: Action) -> tuple[float, bool]:
        shift = int(self.np_random.integers(1, len(self._pool)))
        self._number = (self._number + shift) % len(self._pool)
        return super()._frame(action)

    def _observe(self) -> dict[str, Image]:
        # Painted only when somebody looks: of repeated frames, the last is seen.
        self._show(self._pool[self._number])
        return super()._observe()

    def _extra_state(self) -> dict[str, Any]:
        return super()._extra_state() | {"background": self._number}

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        self._number = int(state["background"])
