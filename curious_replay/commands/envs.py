"""`curious envs`: list the environments, or look at one of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.table import Table

from curious_replay.commands.outputs import check_file
from curious_replay.envs import make, registry
from curious_replay.envs.drawing.video import record_random_policy, write_gif
from curious_replay.errors import UsageError

Subcommand = tyro.conf.subcommand


@dataclass(frozen=True)
class ListEnvs:
    """List all environments, one line each."""

    tag: str | None = None
    """Only those with this tag: assay, control, constrained, background, crafter, toy, minigrid
    (families; of the last all tasks), changes (in some phase the world is another), mujoco
    (simulated bodies)."""

    def run(self, console: Console) -> int:
        """Print the table."""
        entries = [e for e in registry.ENTRIES if self.tag is None or self.tag in e.tags]
        if not entries:
            tags = sorted({tag for entry in registry.ENTRIES for tag in entry.tags})
            raise UsageError(f"no environment has the tag {self.tag!r}; tags are {', '.join(tags)}")
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True)
        if self.tag == "minigrid":
            entries += registry.minigrid_tasks()
        for entry in entries:
            table.add_row(entry.name, entry.description)
        if self.tag is None:
            table.add_row("minigrid/ID", "any task of it (list --tag minigrid)")
            table.add_row("switch", "any two worlds, one after the other")
            for name, where in registry.ALIASES.items():
                table.add_row(name, where)
        console.print(table)
        return 0


@dataclass(frozen=True)
class ShowEnv:
    """Record a random policy."""

    name: tyro.conf.Positional[str]
    """Short name of the environment."""
    frames: int = 200
    """Simulated frames; a step is one picture and may take several frames."""
    out: Path | None = None
    """The GIF to write; by default out/NAME.gif."""
    phase: str | None = None
    """Hold the environment in this phase, for instance "ball"."""
    scale: Literal["paper", "mini"] = "paper"
    """Size of the world and of its schedule."""
    camera: Literal["auto", "egl", "osmesa", "ray"] = "auto"
    """What draws the pictures of a simulated body."""
    image_size: int = 64
    """Pixels the agent sees, per side."""
    zoom: int = 4
    """Width of one of these pixels in the video."""
    seed: int = 0
    """Seed of the environment and of the actions."""

    def run(self, console: Console) -> int:
        """Write the video and say what is on it."""
        if self.name == "switch":
            raise UsageError("a switch is made of other worlds: name one of them")
        out = self.out or Path("out") / f"{self.name.replace('/', '-')}.gif"
        check_file("--out", out)
        known = registry.arguments(self.name)
        kwargs: dict[str, object] = {"image_size": self.image_size}
        for argument, value, default in (
            ("phase", self.phase, None),
            ("camera", self.camera, "auto"),
        ):
            if argument in known:
                kwargs[argument] = value
            elif value != default:
                raise UsageError(f"{self.name} has no {argument}, so it cannot be {value!r}")
        env = make(self.name, scale=self.scale, **kwargs)
        video = record_random_policy(env, self.frames, self.seed)
        speed = env.metadata["render_fps"]
        write_gif(video.pictures, out, zoom=self.zoom, pictures_per_second=speed)
        camera = f", camera {env.get_wrapper_attr('camera_name')}" if "camera" in known else ""
        env.close()
        console.print(
            f"{out}: {len(video.pictures)} pictures of {video.frames} frames{camera}, "
            f"phase {', '.join(video.phases)}",
            highlight=False,
            soft_wrap=True,
        )
        return 0


@dataclass(frozen=True)
class Envs:
    """List the environments, or look at one of them."""

    action: (
        Annotated[ListEnvs, Subcommand("list", prefix_name=False)]
        | Annotated[ShowEnv, Subcommand("show", prefix_name=False)]
    ) = field(default_factory=ListEnvs)


def main(arguments: Sequence[str], console: Console) -> int:
    """Do what was asked for."""
    command = tyro.cli(
        Envs,
        args=list(arguments),
        prog="curious envs",
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
    )
    return command.action.run(console)
