"""Pictures for people: what an agent saw and did, and what its model thought would happen."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

Array = np.ndarray
Color = tuple[int, int, int]

TILE = 128  # pixels that the shorter side of a picture has at least, after zooming
MARGIN, BORDER, LINE = 8, 2, 22  # pixels
PAPER: Color = (24, 26, 30)
INK: Color = (236, 236, 236)
FAINT: Color = (150, 152, 158)
SEEN: Color = (86, 196, 140)
UNSEEN: Color = (255, 159, 67)


def open_loop_video(truth: Array, model: Array, context: int) -> Array:
    """Show what happened beside what the model predicted, and how the two differ.

    `truth` and `model` are uint8 [B, T, h, w, 3]. The model saw the first `context` steps, and
    knows of the others only the actions. Returns uint8 [T, H, W, 3] with one column for each of the
    B sequences and three rows: truth, model, error (the absolute difference: black is right).
    """
    _check_alike({"truth": truth, "model": model}, context)
    error = np.maximum(truth, model) - np.minimum(truth, model)
    return _video_of({"truth": truth, "model": model, "error": error}, {"model"}, context)


def dreams_video(truth: Array, models: Mapping[str, Array], context: int) -> Array:
    """Show what happened above what each of several models predicted, a row for each.

    `truth` and `models` are uint8 [B, T, h, w, 3]. As `open_loop_video`, but for the error, which
    would double the rows.
    """
    rows = {"truth": truth, **models}
    _check_alike(rows, context)
    return _video_of(rows, set(models), context)


def _video_of(rows: Mapping[str, Array], models: Collection[str], context: int) -> Array:
    """Return a video uint8 [T, H, W, 3] of named rows, uint8 [B, T, h, w, 3] each.

    Those named in `models` dream.
    """
    batch, length, height, width, _ = next(iter(rows.values())).shape
    zoom = max(1, -(-TILE // min(height, width)))
    canvas = _Canvas(list(rows), models, batch, height * zoom, width * zoom)
    video = np.empty((length, canvas.height, canvas.width, 3), np.uint8)
    for step in range(length):
        video[step] = canvas.draw(step, length, context)
        for row, pictures in enumerate(rows.values()):
            for column in range(batch):
                x, y = canvas.corner(column, row)
                tile = _enlarge(pictures[column, step], zoom)
                video[step, y : y + tile.shape[0], x : x + tile.shape[1]] = tile
    return video


def episode_video(
    pictures: Array, frames: Sequence[int], phases: Sequence[str], returns: Sequence[float]
) -> Iterator[Array]:
    """Show an episode, with frame, phase and return so far below each picture.

    `pictures` are uint8 [T, h, w, 3], and the captions have one entry for each. Yields uint8
    [H, W, 3] one at a time: an hour of play would not fit into memory.
    """
    lengths = {len(pictures), len(frames), len(phases), len(returns)}
    if len(lengths) != 1:
        raise ValueError(f"pictures and captions differ in length: {sorted(lengths)}")
    return _captioned(pictures, frames, phases, returns)


def _captioned(
    pictures: Array, frames: Sequence[int], phases: Sequence[str], returns: Sequence[float]
) -> Iterator[Array]:
    zoom = max(1, -(-2 * TILE // min(pictures.shape[1:3])))
    height, width = zoom * pictures.shape[1], zoom * pictures.shape[2]
    for picture, frame, phase, total in zip(pictures, frames, phases, returns, strict=True):
        caption = Image.new("RGB", (width, 2 * LINE), PAPER)
        draw = ImageDraw.Draw(caption)
        first, second = LINE // 2, LINE + LINE // 2
        draw.text((MARGIN, first), f"frame {frame:,}", INK, _font(14), anchor="lm")
        draw.text((width - MARGIN, first), f"return {total:.1f}", INK, _font(14), anchor="rm")
        if phase:
            draw.text((MARGIN, second), f"phase {phase}", FAINT, _font(14), anchor="lm")
        whole = np.full((_even(height) + 2 * LINE, _even(width), 3), PAPER, np.uint8)
        whole[:height, :width] = _enlarge(picture, zoom)
        whole[-2 * LINE :, :width] = np.asarray(caption)
        yield whole


class _Canvas:
    """The paper that the tiles of an open-loop video lie on: labels, borders, and a time line."""

    def __init__(
        self,
        rows: Sequence[str],
        models: Collection[str],
        batch: int,
        tile_height: int,
        tile_width: int,
    ) -> None:
        self.rows, self.models = rows, models
        self.batch, self.tile_height, self.tile_width = batch, tile_height, tile_width
        self.left, self.top, self.bottom = 60, 34, 26
        # One narrow column still leaves room for the caption.
        self.width = _even(max(self.left + batch * (tile_width + MARGIN), 360))
        self.height = _even(self.top + len(rows) * (tile_height + MARGIN) + self.bottom)

    def corner(self, column: int, row: int) -> tuple[int, int]:
        """Return x and y of the upper left corner of a tile."""
        x = self.left + column * (self.tile_width + MARGIN)
        return x, self.top + row * (self.tile_height + MARGIN)

    def draw(self, step: int, length: int, context: int) -> Array:
        """Return everything but the tiles, uint8 [height, width, 3]."""
        sheet = Image.new("RGB", (self.width, self.height), PAPER)
        draw = ImageDraw.Draw(sheet)
        color = SEEN if step < context else UNSEEN
        self._draw_head(draw, step, length, context, color)
        for row, name in enumerate(self.rows):
            _, y = self.corner(0, row)
            middle = (self.left - MARGIN, y + self.tile_height // 2)
            draw.text(middle, name, INK, _font(15), anchor="rm")
            for column in range(self.batch if name in self.models else 0):
                x, y = self.corner(column, row)
                box = (x - BORDER, y - BORDER, x + self.tile_width + 1, y + self.tile_height + 1)
                draw.rectangle(box, outline=color, width=BORDER)
        self._draw_time(draw, step, length, context)
        return np.asarray(sheet)

    def _draw_head(
        self, draw: ImageDraw.ImageDraw, step: int, length: int, context: int, color: Color
    ) -> None:
        ahead = step + 1 - context
        word = "context" if ahead <= 0 else "prediction"
        detail = f"step {step + 1} of {length}" + (f", {ahead} ahead" if ahead > 0 else "")
        y = self.top // 2
        draw.text((self.left, y), word, color, _font(17), anchor="lm")
        x = self.left + draw.textlength("prediction  ", _font(17))
        draw.text((x, y), detail, FAINT, _font(14), anchor="lm")

    def _draw_time(self, draw: ImageDraw.ImageDraw, step: int, length: int, context: int) -> None:
        """Draw a bar along the bottom: context, prediction, and how far the video is."""
        first, last = self.left, self.width - MARGIN - 1
        y = self.height - self.bottom // 2 - 2
        border = first + (last - first) * context // length
        draw.rectangle((first, y - 1, border, y + 1), fill=_dim(SEEN))
        draw.rectangle((border, y - 1, last, y + 1), fill=_dim(UNSEEN))
        now = first + (last - first) * (step + 1) // length
        draw.rectangle((first, y - 3, min(now, border), y + 3), fill=SEEN)
        if now > border:
            draw.rectangle((border, y - 3, now, y + 3), fill=UNSEEN)


def _check_alike(rows: Mapping[str, Array], context: int) -> None:
    truth = rows["truth"]
    for name, pictures in rows.items():
        if pictures.dtype != np.uint8 or pictures.ndim != 5 or pictures.shape[-1] != 3:
            found = f"{pictures.dtype} {list(pictures.shape)}"
            raise ValueError(f"{name} must be uint8 [batch, time, height, width, 3], got {found}")
        if truth.shape != pictures.shape:
            raise ValueError(f"truth {truth.shape} and {name} {pictures.shape} must have one shape")
    if not 0 <= context <= truth.shape[1]:
        raise ValueError(f"context must be between 0 and {truth.shape[1]} steps, got {context}")


def _enlarge(picture: Array, zoom: int) -> Array:
    return picture.repeat(zoom, axis=0).repeat(zoom, axis=1)


def _even(pixels: int) -> int:
    """Round up: videos need even sides."""
    return pixels + pixels % 2


def _dim(color: Color) -> Color:
    red, green, blue = ((c + 2 * p) // 3 for c, p in zip(color, PAPER, strict=True))
    return red, green, blue


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return Pillow's own font, which is everywhere the same."""
    return ImageFont.load_default(size)
