"""Many environments at once, each in its own process, in step with one another.

A Gymnasium `VectorEnv` like its `AsyncVectorEnv`, on the same shared memory, that also survives
the failure of a worker and can be saved.

Autoreset is `NEXT_STEP`, as declared in `metadata["autoreset_mode"]`: the step that ends an episode
returns its last observation, the following `step` ignores the action of that environment and
returns the first observation of the next episode with reward 0. `infos["is_first"]` says for each
environment which of its observations open an episode, so a driver needs no bookkeeping.

A worker that crashes or hangs is restarted, after a pause that doubles with each failure. The step
in which it failed repeats its last observation and info, with reward 0, `truncated` and
`infos["worker_restarted"]`; the next one is the first of a new episode. So no transition joins what
was before to what comes after. The frame counter is handed on, and a schedule does not begin again.
After `Restarts.limit` failures in a row the run stops with the worker's traceback.

`get_state` and `set_state` save and restore all environments, in the middle of their episodes.
"""

import copy
import multiprocessing
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from gymnasium.error import (
    AlreadyPendingCallError,
    ClosedEnvironmentError,
    NoAsyncCallError,
    ResetNeeded,
)
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import (
    batch_space,
    concatenate,
    create_empty_array,
    create_shared_memory,
    iterate,
    read_from_shared_memory,
)

from curious_replay.envs import registry
from curious_replay.envs.vectors.pool import (
    DEFAULT_RESTARTS,
    Request,
    Restarts,
    WorkerError,
    WorkerPool,
)
from curious_replay.envs.vectors.worker import Failure, LocalWorker, MakeEnv, Worker


class RestartingVectorEnv(VectorEnv[Any, Any, np.ndarray]):
    """Environments in processes, stepped together; see the module for resets and restarts.

    `context` is a start method of `multiprocessing`. Not "fork" by default: the main process holds
    threads and perhaps an OpenGL context, which a forked child would inherit in a broken state. So
    a script that makes one needs the usual `if __name__ == "__main__":` around its doings.

    `processes=False` runs them one after the other in the main process, with the same interface: a
    single cheap environment is quicker so, but only exceptions are survived, not crashes or hangs.

    `preload` names modules that processes are born with, rather than import one by one: they start
    sooner and share the memory. It counts with "forkserver", for the first that a process makes.
    """

    def __init__(
        self,
        make_envs: Sequence[MakeEnv],
        *,
        restarts: Restarts = DEFAULT_RESTARTS,
        context: str = "forkserver",
        processes: bool = True,
        preload: Sequence[str] = (),
    ) -> None:
        if not make_envs:
            raise ValueError("at least one environment is needed, got none")
        probe = make_envs[0]()
        self.num_envs = len(make_envs)
        self.metadata = {**probe.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}
        self.spec = probe.spec
        self.render_mode = probe.render_mode
        self.single_observation_space = probe.observation_space
        self.single_action_space = probe.action_space
        self.observation_space = batch_space(probe.observation_space, self.num_envs)
        self.action_space = batch_space(probe.action_space, self.num_envs)
        probe.close()
        self._restarts = restarts
        self._started = False
        self._stepping = False  # between step_async and step_wait
        if processes and context == "forkserver":
            multiprocessing.set_forkserver_preload(["__main__", __name__, *preload])
        memory: Any = create_shared_memory(
            self.single_observation_space,
            self.num_envs,
            multiprocessing.get_context(context),  # type: ignore[arg-type]  # is used as a context
        )
        self._shared: Any = read_from_shared_memory(
            self.single_observation_space, memory, self.num_envs
        )
        self._latest: Any = copy.deepcopy(self._shared)  # what was last returned
        self._infos: list[dict[str, Any]] = [{} for _ in make_envs]
        self._over = np.ones(self.num_envs, bool)  # the next step of this environment is a reset
        self._opened: dict[int, dict[str, Any]] = {}  # restarted and reset, not yet reported
        self._seeds: list[int | None] = [None] * self.num_envs
        self._phase: str | None = None
        workers = [
            Worker(index, make_env, memory, context)
            if processes
            else LocalWorker(index, make_env, memory)
            for index, make_env in enumerate(make_envs)
        ]
        self._pool = WorkerPool(workers, restarts)
        self._check_spaces()

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all environments; a single seed s gives environment i the seed s + i."""
        self._check_ready()
        if isinstance(seed, int):
            seed = [seed + index for index in range(self.num_envs)]
        if seed is not None:
            if len(seed) != self.num_envs:
                raise ValueError(f"{self.num_envs} environments need as many seeds, got {seed}")
            self._seeds = list(seed)
        self._opened.clear()
        indices = range(self.num_envs)
        requests = [_reset_request(each, options) for each in seed or [None] * self.num_envs]
        for index in indices:
            self._pool.send(index, requests[index])
        for index, answer in self._pool.receive(indices, self._restarts.start_timeout).items():
            if isinstance(answer, Failure):
                if seed is None:
                    self._infos[index] = self._restart(index, answer, options)
                else:  # begins anew, whatever the frame was
                    self._infos[index] = self._start(index, answer, [requests[index]])
            else:
                self._infos[index] = answer
        self._over[:] = False
        self._started = True
        self._latest = copy.deepcopy(self._shared)
        everywhere = np.ones(self.num_envs, bool)
        return copy.deepcopy(self._latest), self._collect_infos(everywhere, ~everywhere)

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all environments, or begin their next episode where one is over."""
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: Any) -> None:
        """Send the actions; the main process is free until `step_wait`."""
        self._check_ready()
        if not self._started:
            raise ResetNeeded("call reset() or set_state() before step()")
        rows = list(iterate(self.action_space, actions))
        if len(rows) != self.num_envs:
            raise ValueError(f"{self.num_envs} environments need as many actions, got {len(rows)}")
        for index, action in enumerate(rows):
            if index in self._opened:
                continue  # its first observation is there already
            over = self._over[index]
            self._pool.send(index, _reset_request() if over else ("step", action))
        self._stepping = True

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Return what the actions of `step_async` led to."""
        if not self._stepping:
            raise NoAsyncCallError("step_wait() without step_async() before it", "step")
        self._stepping = False
        rewards = np.zeros(self.num_envs)
        terminated, truncated, first, failed = np.zeros((4, self.num_envs), bool)
        asked = [index for index in range(self.num_envs) if index not in self._opened]
        for index in list(self._opened):
            first[index] = True
            self._infos[index] = self._opened.pop(index)
        for index, answer in self._pool.receive(asked, self._restarts.step_timeout).items():
            if isinstance(answer, Failure):
                info = self._restart(index, answer)
                if self._over[index]:
                    first[index] = True
                    self._infos[index] = info
                else:
                    failed[index] = truncated[index] = True
                    self._opened[index] = info
            elif self._over[index]:
                first[index] = True
                self._infos[index] = answer
            else:
                rewards[index], terminated[index], truncated[index], info = answer
                self._infos[index] = info
        self._over = terminated | truncated
        self._over[list(self._opened)] = False
        self._pool.note_step(failed)
        self._latest = self._with_rows(self._shared, self._latest, failed)
        infos = self._collect_infos(first, failed)
        return copy.deepcopy(self._latest), rewards, terminated, truncated, infos

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of all environments, or read an attribute.

        An environment that raises here is not restarted at once: the error is the caller's to see.
        """
        return self._call_each(name, [args] * self.num_envs, kwargs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of all environments."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of all environments, to one value or to a list of one for each."""
        each = values if isinstance(values, list | tuple) else [values] * self.num_envs
        if len(each) != self.num_envs:
            raise ValueError(f"{self.num_envs} environments need as many values, got {len(each)}")
        self._check_ready()
        self._pool.ask(f"setting {name}", [("set", (name, value)) for value in each])

    def render(self) -> tuple[Any, ...]:
        """Return the pictures of all environments."""
        return self.call("render")

    def set_phase(self, phase: str | None) -> None:
        """Hold all environments in this phase, those restarted later included."""
        self.call("set_phase", phase)
        self._phase = phase

    @property
    def restarts(self) -> np.ndarray:
        """How often each environment was restarted so far, int64 [num_envs]."""
        return self._pool.restarts.copy()

    @property
    def observations(self) -> Any:
        """The observations last returned, or restored by `set_state`."""
        return copy.deepcopy(self._latest)

    def get_state(self) -> dict[str, Any]:
        """Return the states of all environments, and what belongs to their being many."""
        over = self._over.copy()
        over[list(self._opened)] = True
        return {
            "environments": list(self.call("get_state")),
            "observations": self.observations,
            "over": over,
            "seeds": list(self._seeds),
            "infos": copy.deepcopy(self._infos),
            "phase": self._phase,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `get_state()` of as many environments made with the same arguments."""
        saved = state["environments"]
        if len(saved) != self.num_envs:
            raise ValueError(f"this state has {len(saved)} environments, here are {self.num_envs}")
        self._call_each("set_state", [(each,) for each in saved], {})
        self._opened.clear()
        self._over = state["over"].copy()
        self._seeds, self._infos = list(state["seeds"]), copy.deepcopy(state["infos"])
        self._phase = state["phase"]
        self._latest = copy.deepcopy(state["observations"])
        self._started = True

    def close_extras(self, **_: Any) -> None:
        """End all processes."""
        if hasattr(self, "_pool"):  # also called for an object that refused its arguments
            self._pool.close()

    def _restart(
        self, index: int, failure: Failure, options: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Replace a failed worker; its environment opens a new episode at the frame it was at."""
        seed = self._seeds[index]
        if seed is not None:  # one that can be repeated, and not that of the failed episode
            words = np.random.SeedSequence([seed, index, int(self.restarts[index]) + 1])
            seed = int(words.generate_state(1)[0])
        requests = [_reset_request(seed, options)]
        if "frame" in self._infos[index]:
            # A reset with a seed counts from frame 0, so the frame is set after it; the second
            # reset opens the episode in the phase of that frame.
            requests.append(("call", ("set_frame", (self._infos[index]["frame"],), {})))
            requests.append(_reset_request(None, options))
        return self._start(index, failure, requests)

    def _start(self, index: int, failure: Failure, requests: list[Request]) -> dict[str, Any]:
        """Replace a failed worker and make these requests; the last of them is a reset."""
        if self._phase is not None:
            requests = [("call", ("set_phase", (self._phase,), {})), *requests]
        try:
            info: dict[str, Any] = self._pool.restart(index, failure, requests)
        except WorkerError:
            self.close()
            raise
        return info

    def _collect_infos(self, first: np.ndarray, failed: np.ndarray) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        for index, info in enumerate(self._infos):
            infos = self._add_info(infos, info, index)
        return {**infos, "is_first": first, "worker_restarted": failed}

    def _add_info(
        self, vector_infos: dict[str, Any], env_info: dict[str, Any], env_num: int
    ) -> dict[str, Any]:
        """Return the infos with one more, added as Gymnasium does but in arrays wide enough.

        Gymnasium's own cut 0.7 to 0 after an int.
        """
        for name, value in env_info.items():
            array = vector_infos.get(name)
            if isinstance(array, np.ndarray) and array.dtype.kind in "biuf":
                dtype = np.asarray(value).dtype
                if dtype != array.dtype and dtype.kind in "biuf":
                    vector_infos[name] = array.astype(np.result_type(array.dtype, dtype))
        return super()._add_info(vector_infos, env_info, env_num)

    def _with_rows(self, new: Any, old: Any, rows: np.ndarray) -> Any:
        """Return a copy of a batch of observations, with some rows taken from an older one."""
        if not rows.any():
            return copy.deepcopy(new)
        space = self.observation_space
        pairs = zip(iterate(space, new), iterate(space, old), rows, strict=True)
        chosen = [before if failed else now for now, before, failed in pairs]
        empty: Any = create_empty_array(self.single_observation_space, self.num_envs)
        return concatenate(self.single_observation_space, chosen, empty)

    def _call_each(
        self, name: str, arguments: Sequence[tuple[Any, ...]], keywords: dict[str, Any]
    ) -> tuple[Any, ...]:
        self._check_ready()
        return self._pool.ask(name, [("call", (name, each, keywords)) for each in arguments])

    def _check_spaces(self) -> None:
        """Wait until all environments are made, and refuse those unlike the first.

        A failure is not mended here: what cannot even start is a mistake, not an accident.
        """
        expected = (self.single_observation_space, self.single_action_space)
        try:
            answers = self._pool.ask("its start", [("spaces", None)] * self.num_envs)
            for index, spaces in enumerate(answers):
                if spaces != expected:
                    raise ValueError(f"environment {index} has other spaces than environment 0")
        except Exception:
            self.close()
            raise

    def _check_ready(self) -> None:
        if self.closed:
            raise ClosedEnvironmentError("the environments are closed")
        if self._stepping:
            raise AlreadyPendingCallError("call step_wait() after step_async() first", "step")


def _reset_request(seed: int | None = None, options: dict[str, Any] | None = None) -> Request:
    return ("reset", {"seed": seed, "options": options})


def make_vector(
    name: str,
    num_envs: int,
    *,
    scale: str = "paper",
    restarts: Restarts = DEFAULT_RESTARTS,
    context: str = "forkserver",
    processes: bool = True,
    **kwargs: Any,
) -> RestartingVectorEnv:
    """Return `num_envs` environments of this short name; their frames are counted together."""
    if num_envs < 1:
        raise ValueError(f"num_envs must be at least 1, got {num_envs}")
    if "parallel" in registry.arguments(name):
        kwargs.setdefault("parallel", num_envs)
    make_env = partial(registry.make, name, scale=scale, **kwargs)
    return RestartingVectorEnv(
        [make_env] * num_envs, restarts=restarts, context=context, processes=processes,
        preload=[registry.find(name).module],
    )  # fmt: skip
