import os
import signal
import sys
from multiprocessing import forkserver

import pytest

from curious_replay import extras, host

# Tests run side by side, one in each process: more threads would only wait for each other. This
# is set before torch is loaded, and passed on to the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# What a shell runs in the background ignores Ctrl-C, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip what needs dm_control where this Python cannot have it, with the reason."""
    try:
        return (yield)
    except extras.MissingError as error:
        if not extras.obstacle("dm_control") or "dm_control" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.fixture(autouse=True, scope="session")
def no_waiting_for_the_disk():
    """Files are synced in case the power fails, which no test lets happen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def compiled_anew():
    """What Numba has kept of a source that was changed since is not what is to be tested."""
    host.forget_stale_results(host.COMPILED)


@pytest.fixture(scope="session")
def stop_forkserver():
    """Ends the server that processes are forked from.

    The next one is born with what its first user asks for, not with what an earlier test did.
    """

    def stop():
        server = forkserver._forkserver
        if server._forkserver_pid is not None:
            # It would wait for processes that an earlier test has left, if there are any.
            os.kill(server._forkserver_pid, signal.SIGKILL)
            server._stop()

    return stop


@pytest.fixture(scope="module")
def one_thread():
    """Whatever an earlier test has set: more threads than cores only wait for each other."""
    import torch  # noqa: PLC0415  # most tests do without

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def own_parts():
    """Forgets, at the end or when it is called, what a test has registered and imported."""
    from curious_replay import plugins  # noqa: PLC0415  # most tests do without all of these
    from curious_replay.envs.registry import ALIASES  # noqa: PLC0415
    from curious_replay.experiments.catalogue import OWN  # noqa: PLC0415
    from curious_replay.run.settings.agents import AGENTS  # noqa: PLC0415
    from curious_replay.run.settings.replay_config import REPLAYS  # noqa: PLC0415

    tables = (ALIASES, AGENTS, REPLAYS, OWN, plugins._loaded)
    before = [dict(table) for table in tables]
    modules, paths = {*sys.modules}, [*sys.path]

    installed = (sys.prefix, sys.base_prefix, str(host.COMPILED.parent))

    def forget():
        for table, known in zip(tables, before, strict=True):
            table.clear()
            table.update(known)
        for name in {*sys.modules} - modules:
            # Those without a file are of libraries, which import them no second time.
            origin = getattr(sys.modules[name], "__file__", None)
            if origin and not origin.startswith(installed):
                del sys.modules[name]
        sys.path[:] = paths

    yield forget
    forget()
