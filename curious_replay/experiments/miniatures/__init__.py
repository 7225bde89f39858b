"""The paper's questions in miniature: small worlds and agents, with the ratios that matter kept.

Each experiment here has a ladder of sanity, and is registered before the runs that judge it are
made. docs/miniatures.md says what shrinks and what stays.
"""

from curious_replay.experiments.miniatures import (
    appears,
    assay,
    crafter,
    doorkey,
    lava,
    mirror,
    mirror_settings,
    mirror_variants,
    rooms,
    rooms_variants,
    unchanged,
)
from curious_replay.experiments.miniatures.quick import quick

MINIATURES = (
    appears.APPEARS,
    appears.AGAIN,
    appears.PARTS,
    appears.GONE,
    rooms_variants.SAME_OFTEN,
    rooms_variants.TELEVISION,
    rooms.APPEARS,
    rooms.PARTS,
    rooms.GONE,
    rooms_variants.SAME,
    mirror.TURNED,
    mirror.PARTS,
    mirror_settings.SETTINGS,
    mirror_variants.FIRST,
    mirror_variants.SECOND,
    lava.LAVA,
    assay.BALL,
    crafter.CRAFTER,
    mirror_variants.NOISE,
    unchanged.SAME,
    unchanged.COSTS,
    doorkey.DOORKEY,
    mirror.BACK,
)
"""In the order in which they are listed."""
QUICK = (quick(appears.APPEARS), quick(mirror.TURNED), quick(mirror.BACK))
"""What a visitor runs."""
