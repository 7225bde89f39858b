"""On the path of a process, this makes every OpenGL library fail to load, as if there were none."""

import ctypes
import ctypes.util

_ABSENT = ("gl", "egl", "osmesa", "glx", "opengl", "gles")


def _is_opengl(name: object) -> bool:
    stem = str(name or "").rpartition("/")[2].lower().removeprefix("lib").split(".")[0]
    return stem.rstrip("0123456789v") in _ABSENT


class _NoOpenGL(ctypes.CDLL):
    def __init__(self, name=None, *args, **kwargs):
        if _is_opengl(name):
            raise OSError(f"{name}: cannot open shared object file: no such file")
        super().__init__(name, *args, **kwargs)


_find_library = ctypes.util.find_library
ctypes.util.find_library = lambda name: None if _is_opengl(name) else _find_library(name)
ctypes.CDLL = _NoOpenGL
for _loader in (ctypes.cdll, ctypes.pydll):
    _loader._dlltype = _NoOpenGL
