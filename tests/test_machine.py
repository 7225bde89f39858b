"""Memory that is left, by files such as Linux has."""

import pytest

from curious_replay.machine import free_memory

FREE = 8000 * 1024


@pytest.fixture
def root(tmp_path):
    """A machine with 8,000 kB to spare."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    8000 kB\n")
    return tmp_path


def limit(group, most, used, cached):
    """A group of version 2."""
    group.mkdir(parents=True, exist_ok=True)
    (group / "memory.max").write_text(f"{most}\n")
    (group / "memory.current").write_text(f"{used}\n")
    (group / "memory.stat").write_text(f"anon 5\nfile {cached}\n")


def test_what_the_machine_has_left(root):
    assert free_memory(root) == FREE
    assert free_memory(root / "nowhere") is None


def test_the_limit_of_a_container_counts(root):
    group = root / "sys/fs/cgroup"
    limit(group, 5_000_000, 3_000_000, 1_000_000)
    assert free_memory(root) == 3_000_000
    limit(group, "max", 3_000_000, 1_000_000)
    assert free_memory(root) == FREE
    limit(group, 5_000_000, "many", 1_000_000)
    assert free_memory(root) == FREE
    (group / "memory.stat").unlink()
    assert free_memory(root) == FREE


def test_limits_of_a_job_and_of_all_around_it_count(root):
    (root / "proc/self/cgroup").write_text("0::/slurm/job_1/step_0\n")
    job = root / "sys/fs/cgroup/slurm/job_1"
    limit(job / "step_0", "max", 0, 0)
    limit(job, 4_000_000, 1_000_000, 0)
    assert free_memory(root) == 3_000_000
    limit(job / "step_0", 2_000_000, 1_000_000, 0)
    assert free_memory(root) == 1_000_000


def test_groups_of_version_1_count(root):
    (root / "proc/self/cgroup").write_text("4:cpu,cpuacct:/other\n2:memory:/job\n")
    group = root / "sys/fs/cgroup/memory/job"
    group.mkdir(parents=True)
    (group / "memory.limit_in_bytes").write_text("5000000")
    (group / "memory.usage_in_bytes").write_text("3000000")
    (group / "memory.stat").write_text("cache 7\ntotal_cache 1000000\n")
    assert free_memory(root) == 3_000_000
    (group / "memory.limit_in_bytes").write_text("9223372036854771712")  # no limit
    assert free_memory(root) == FREE


def test_a_group_that_cannot_be_seen_from_within_its_container_does_no_harm(root):
    (root / "proc/self/cgroup").write_text("0::/docker/abc\n")
    limit(root / "sys/fs/cgroup", 5_000_000, 0, 0)
    assert free_memory(root) == 5_000_000
