"""The replay explorer: a buffer as a line of steps that can be pointed at.

Some steps, evenly spread, stand for the whole. Bars are drawn here; the page's script only shows
the step that is pointed at, so that the picture is there without it.
"""

import base64
import io
import json
import math
from html import escape
from typing import Any

import numpy as np
from PIL import Image

from curious_replay.analysis import replay_probe
from curious_replay.analysis.lines import Array
from curious_replay.analysis.load import Run
from curious_replay.analysis.stored import Stored

SHOWN = 160
"""Steps that stand for the buffer."""
THUMB = 64
"""Pixels of a picture, per side."""
TERMS = ("count", "surprise")
"""Of a priority, as rules name them."""
PHASES = ("#a8a29a", "#3e7c8c", "#c4876a", "#6f8f5f", "#94789c", "#6673a3")
"""Muted, so that none is taken for the colour of a method."""


def explorer(run: Run, steps: Stored, number: int) -> str:
    """Return the explorer of one run as HTML; `number` keeps apart those of one page."""
    order = np.argsort(steps.frame, kind="stable")
    at = order[np.linspace(0, len(order) - 1, min(SHOWN, len(order))).astype(int)]
    changes = run.changes
    part = replay_probe.segments(steps.frame[at], [frame for frame, _ in changes[1:]])
    names = [phase or "all steps" for _, phase in changes] or ["all steps"]
    relative = steps.chance[at]
    priorities = steps.buffer.priorities[at]
    terms = steps.buffer.terms() or {}
    data: dict[str, Any] = {
        "frame": steps.frame[at].tolist(),
        "phase": [names[min(i, len(names) - 1)] for i in part],
        "relative": _rounded(relative),
        "priority": _rounded(priorities),
        **{name: _rounded(terms[name][at]) if name in terms else None for name in TERMS},
        "visits": steps.visits[at].tolist(),
    }
    colors = [PHASES[i % len(PHASES)] for i in part]
    sprite, columns = _sprite(steps, at)
    key = "".join(
        f'<span><i style="background:{PHASES[i % len(PHASES)]}"></i>{escape(name)}</span>'
        for i, name in enumerate(names)
    )
    thumb = (
        f'<div class="thumb" data-columns="{columns}" data-rows="{-(-len(at) // columns)}" '
        f'style="background-image:url({sprite})"></div>'
        if sprite
        else ""
    )
    return (
        f'<div class="explorer" id="explorer-{number}"><div class="key">{key}</div>'
        f'<div class="line" role="slider" tabindex="0" aria-label="stored steps, oldest first" '
        f'aria-valuemin="1" aria-valuemax="{len(at)}" aria-valuenow="{len(at)}">'
        f"{_bars(relative, steps.visits[at], colors)}<div class=cursor></div></div>"
        f'<div class="detail">{thumb}<dl></dl></div>'
        f'<script type="application/json">{_json(data)}</script></div>'
    )


def _bars(relative: Array, visits: Array, colors: list[str]) -> str:
    """Draw two rows of bars as SVG: chance to be drawn (logarithmic), and visits below."""
    floor = max(float(relative[relative > 0].min(initial=1.0)), 1e-6)
    span = max(math.log(max(float(relative.max(initial=0.0)), floor) / floor), 1e-9)
    most = max(int(visits.max(initial=0)), 1)
    bars = []
    for i, (chance, visit, color) in enumerate(zip(relative, visits, colors, strict=True)):
        high = 4 + 44 * math.log(max(float(chance), floor) / floor) / span if chance > 0 else 1
        low = 46 * int(visit) / most
        bars.append(
            f'<rect x="{i}" y="{50 - high:.1f}" width=".9" height="{high:.1f}" fill="{color}"/>'
            f'<rect x="{i}" y="52" width=".9" height="{low:.1f}" fill="{color}" opacity=".55"/>'
        )
    return (
        f'<svg viewBox="0 0 {max(len(colors), 1)} 100" preserveAspectRatio="none" '
        f'aria-hidden="true">{"".join(bars)}</svg>'
    )


def _sprite(steps: Stored, at: Array) -> tuple[str, int]:
    """Return all pictures in one, as a data address, and how many are side by side; "" if none."""
    columns = max(math.ceil(math.sqrt(len(at))), 1)
    if not steps.has("image") or not len(at):
        return "", columns
    pictures = steps.buffer.rows("image", at)
    if pictures.ndim != 4 or pictures.shape[-1] != 3 or pictures.dtype != np.uint8:
        return "", columns
    sheet = Image.new("RGB", (columns * THUMB, -(-len(at) // columns) * THUMB))
    for i, picture in enumerate(pictures):
        small = Image.fromarray(np.ascontiguousarray(picture)).resize((THUMB, THUMB), 0)
        sheet.paste(small, (i % columns * THUMB, i // columns * THUMB))
    out = io.BytesIO()
    sheet.save(out, "JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(out.getvalue()).decode()}", columns


def _rounded(values: Array) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


def _json(data: Any) -> str:
    """Return JSON that cannot end the script element it is in."""
    return json.dumps(data).replace("<", "\\u003c").replace("&", "\\u0026")
