"""`curious`, the command line: a table of commands, each a module that is imported when asked for.

A command is a dataclass whose fields are its options. None is imported before it is chosen, so
that `curious envs` does not wait for torch.
"""

import difflib
import importlib
import os
import shutil
import signal
import sys
import textwrap
from collections.abc import Sequence

import curious_replay
from curious_replay import host, launch, plugins
from curious_replay.errors import UsageError
from curious_replay.extras import explained

# name: (module below curious_replay.commands, what it does)
COMMANDS = {
    "train": ("train", "train an agent, or go on with a run"),
    "fork": ("fork", "begin a new run where another one was saved, with another kind of replay"),
    "eval": ("evaluate", "play episodes with the agent of a run"),
    "sweep": ("sweep", "run a table or figure of the paper, on one machine or many"),
    "experiments": ("experiments", "list the tables and figures that can be run"),
    "report": ("report", "compare runs on one page"),
    "demo": ("demo", "see within minutes what curious replay does"),
    "envs": ("envs", "list the environments, or record one"),
    "doctor": ("diagnose", "report what this machine has and what is missing"),
}
SHARED = "train"  # the command whose work several processes can share


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; docs/training.md lists them."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help"):
        _print_help()
        return 0 if given else 2
    try:
        return _run(given)
    except BrokenPipeError:  # whoever read the output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except UsageError as mistake:
        print(f"curious: {mistake}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("curious: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except OSError as error:  # of the machine: a disk that is full, a file that may not be read
        print(f"curious: {_told(error)}", file=sys.stderr)
        return 1


def _run(given: Sequence[str]) -> int:
    """Import the user's own code, then the command, and run it."""
    own, words = plugins.taken_from(given)
    name, *rest = words or [""]
    if name == "--version":
        print(f"curious-replay {curious_replay.__version__}")
        return 0
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        guess = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}"
        raise UsageError(f"unknown command {name!r}; {guess}")
    if launch.processes() > 1 and name != SHARED:
        raise UsageError(
            f"torchrun started {launch.processes()} processes, and curious {name} is work for one: "
            f"start it without torchrun, which is for curious {SHARED}"
        )
    host.prepare()
    with explained(f"curious {name}"):
        console = importlib.import_module("rich.console").Console()
        plugins.load(own)
        command = importlib.import_module(f"curious_replay.commands.{COMMANDS[name][0]}")
        try:
            return int(command.main(rest, console))
        except SystemExit as end:
            if end.code == 0:  # help was shown
                _print_shared_options()
            raise


def _told(error: OSError) -> str:
    """Return an error of the machine in one line: the file it is about, and what is wrong."""
    if error.filename is None or error.strerror is None:
        return " ".join(str(error).split()) or type(error).__name__
    return f"{os.fsdecode(error.filename)}: {error.strerror}"


def _print_help() -> None:
    """Print all commands; with nothing but the standard library, so that it works everywhere."""
    print("usage: curious COMMAND [OPTIONS]\n")
    print("Curious Replay: world-model agents that adapt when their world changes.\n")
    widest = max(map(len, COMMANDS))
    for name, (_, does) in COMMANDS.items():
        _print_row(name, does, widest)
    _print_shared_options()
    print("\n`curious COMMAND --help` shows the options of one.")
    print("`curious --version` says which version this is.")


def _print_shared_options() -> None:
    print("\nEvery command also takes")
    widest = max(map(len, plugins.FORMS))
    for option, does in plugins.FORMS.items():
        _print_row(option, does, widest)


def _print_row(name: str, does: str, widest: int) -> None:
    begin = f"  {name:<{widest}} "
    width = max(shutil.get_terminal_size().columns, 40)
    print(textwrap.fill(does, width, initial_indent=begin, subsequent_indent=" " * len(begin)))


if __name__ == "__main__":
    sys.exit(main())
