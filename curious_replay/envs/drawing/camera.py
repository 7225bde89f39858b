"""Pictures of a MuJoCo model on any machine: OpenGL where it works, rays where it does not.

`camera="auto"` takes EGL, then OSMesa, then the ray camera. Pixels decide whether two runs can be
compared, so the choice is printed once, kept in `camera.name`, and belongs into a run's record.
"""

import atexit
import contextlib
import ctypes.util
import functools
import importlib
import os
import sys
import weakref
from typing import Any, Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray

from curious_replay.envs.drawing.ray_camera import RayCamera
from curious_replay.envs.interface import check_image_size
from curious_replay.errors import UsageError

Image = NDArray[np.uint8]

OPENGL = ("egl", "osmesa")
CAMERAS = (*OPENGL, "ray")
MAX_GEOMS = 2000


class Camera(Protocol):
    """What environments need of a camera."""

    name: str

    def render(self, data: mujoco.MjData) -> Image:
        """Return the picture of the present state of `data`, `[size, size, 3]`."""
        ...

    def reload_texture(self, index: int) -> None:
        """Show a texture whose bytes in the model changed."""
        ...

    def close(self) -> None:
        """Free what the camera holds."""
        ...


def make_camera(
    kind: str, model: mujoco.MjModel, camera: int, size: int, shadows: bool = False
) -> Camera:
    """Return the camera `kind` ("auto", "egl", "osmesa" or "ray") looking through camera `camera`.

    `shadows` draws shadows, reflections and smoothed edges as MuJoCo's own viewer does; the
    pictures cost several times more, and rays cannot do it.
    """
    check_image_size(size)
    name = choose_camera(kind)
    if name == "ray":
        if shadows:
            raise UsageError("the ray camera draws no shadows: use camera='egl' or shadows=False")
        return RayCamera(model, camera, size)
    return OpenGLCamera(name, model, camera, size, shadows)


def choose_camera(kind: str) -> str:
    """Resolve "auto" to the first camera that works here; refuse one that does not."""
    if kind == "ray":
        return kind
    if kind == "auto":
        return _first_working()
    if kind not in CAMERAS:
        raise UsageError(f"unknown camera {kind!r}, choose one of {['auto', *CAMERAS]}")
    problem = opengl_problem(kind)
    if problem:
        raise RuntimeError(f"camera {kind!r} does not work here ({problem}); 'ray' always does")
    return kind


def camera_problems() -> dict[str, str | None]:
    """Return for each camera why it does not work here, or None if it does."""
    return {name: opengl_problem(name) for name in OPENGL} | {"ray": None}


@functools.cache
def opengl_problem(name: str) -> str | None:
    """Return why this OpenGL backend cannot draw in this process, or None if it can."""
    library = {"egl": "EGL", "osmesa": "OSMesa"}[name]
    if ctypes.util.find_library(library) is None:
        return f"the library lib{library} is not installed"
    unbound = "PYOPENGL_PLATFORM" not in os.environ
    try:
        context = _new_context(name, 32)
        context.make_current()
        context.free()
    except Exception as error:  # drivers and PyOpenGL raise errors of many unrelated classes
        if unbound:
            _unbind_pyopengl()
        return f"{type(error).__name__}: {error}"
    return None


@functools.cache
def _first_working() -> str:
    problems: list[str] = []
    for name in OPENGL:
        problem = opengl_problem(name)
        if problem is None:
            break
        problems.append(f"{name}: {problem}")
    else:
        name = "ray"
    why = f" ({'; '.join(problems)})" if problems else ""
    print(f"camera: {name}{why}", file=sys.stderr)
    return name


def _new_context(name: str, size: int) -> Any:
    """Return MuJoCo's off-screen context; importing it binds PyOpenGL to this platform."""
    _load_triton_first()
    return importlib.import_module(f"mujoco.{name}").GLContext(size, size)


def _load_triton_first() -> None:
    """Load Triton, if it is installed, before any OpenGL.

    It and Mesa's software renderer both bring an LLVM. With Mesa's loaded first, importing Triton
    crashes the process, and PyTorch for graphics cards imports it once an optimiser is made.
    """
    with contextlib.suppress(ImportError):
        importlib.import_module("triton")


def _unbind_pyopengl() -> None:
    """Undo a failed binding: PyOpenGL chooses its platform once, at import, for good."""
    os.environ.pop("PYOPENGL_PLATFORM", None)
    for module in list(sys.modules):
        if module.split(".")[0] == "OpenGL" or module.startswith(("mujoco.egl", "mujoco.osmesa")):
            del sys.modules[module]


_open_cameras: "weakref.WeakSet[OpenGLCamera]" = weakref.WeakSet()


def _close_forgotten() -> None:
    """Free contexts at exit, before EGL itself is shut down; later it would be an error."""
    for camera in list(_open_cameras):
        camera.close()


class OpenGLCamera:
    """Renders one fixed camera of a model off screen with MuJoCo's own renderer."""

    def __init__(
        self, name: str, model: mujoco.MjModel, camera: int, size: int, shadows: bool
    ) -> None:
        self.name = name
        self._model = model
        model.vis.global_.offwidth = model.vis.global_.offheight = size
        if not shadows:
            model.vis.quality.offsamples = 0  # no multisampling
        self._gl = _new_context(name, size)
        if not _open_cameras:
            # Registered after MuJoCo's own clean-up, hence called before it.
            atexit.unregister(_close_forgotten)
            atexit.register(_close_forgotten)
        _open_cameras.add(self)
        self._gl.make_current()
        self._context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_50)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._scene = mujoco.MjvScene(model, MAX_GEOMS)
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self._scene.flags[flag] = shadows
        self._option = mujoco.MjvOption()
        self._option.flags[mujoco.mjtVisFlag.mjVIS_RANGEFINDER] = False  # as in dm_control
        self._view = mujoco.MjvCamera()
        self._view.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self._view.fixedcamid = camera
        self._rectangle = mujoco.MjrRect(0, 0, size, size)
        self._pixels = np.zeros((size, size, 3), np.uint8)

    def render(self, data: mujoco.MjData) -> Image:
        """Return the picture of the present state of `data`."""
        self._gl.make_current()
        mujoco.mjv_updateScene(
            self._model,
            data,
            self._option,
            None,
            self._view,
            mujoco.mjtCatBit.mjCAT_ALL,
            self._scene,
        )
        mujoco.mjr_render(self._rectangle, self._scene, self._context)
        mujoco.mjr_readPixels(self._pixels, None, self._rectangle, self._context)
        return self._pixels[::-1].copy()  # OpenGL counts rows from the bottom

    def reload_texture(self, index: int) -> None:
        """Show a texture whose bytes in the model changed."""
        self._gl.make_current()
        mujoco.mjr_uploadTexture(self._model, self._context, index)

    def close(self) -> None:
        """Free the renderer, then its OpenGL context; further calls do nothing."""
        if self._gl is not None:
            self._gl.make_current()
            self._context.free()
            self._gl.free()
            self._gl = None
