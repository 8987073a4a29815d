"""A worker whose counts find no place serves on, and what it could count is told."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from streamkit.gateway.metrics import FILE_BYTES, CountFile

#: Counts for ever more series, says how many answers it has counted, and reads them as whoever serves /metrics does.
WORKER = """
import sys
from streamkit.gateway.metrics import Metrics, exposition, forget_live
from streamkit.gateway.record import Record
metrics = Metrics()
for route in range(int(sys.argv[1])):
    metrics.active(1)
    record = Record("req_1", "POST", "/", client="ollama", status=200, ending="whole", seconds=1.0)
    record.route = f"route-{route}"
    metrics.observe(record)
    metrics.observe(record)
    metrics.active(-1)
text = exposition(None).decode()
print(sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith("streamkit_requests_total")))
forget_live(1)
"""
#: A folder of some KiB, which is gone with the process.
FULL = 'mount -t tmpfs -o size="$2"k none "$1" && shift 2 && exec "$@"'


def counted(folder, *command, series=1):
    """A worker that counts into ``folder``: what it could count, and its log."""
    env = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)}
    run = [*command, sys.executable, "-c", WORKER, str(series)]
    done = subprocess.run(run, env=env, capture_output=True, check=False, text=True)
    assert done.returncode == 0, (signal.Signals(-done.returncode) if done.returncode < 0 else "", done.stderr[-500:])
    return float(done.stdout), done.stderr


def mounting(folder, kib):
    return ["unshare", "-rm", "sh", "-c", FULL, "sh", str(folder), str(kib)]


def can_mount(folder):
    if not shutil.which("unshare"):
        return False
    return subprocess.run([*mounting(folder, 4), "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("kib", "series", "least"),
    [
        (8, 1, 0),  # not even the first file finds room
        (72, 1, 0),  # one kind of count does
        (260, 1, 2),  # all do, and one of them not for all series
        (1000, 600, 2),
    ],
)
def test_a_full_folder_ends_no_worker(tmp_path, kib, series, least):
    if not can_mount(tmp_path):
        pytest.skip("this user may not mount a small folder")
    found, log = counted(tmp_path, *mounting(tmp_path, kib), series=series)
    assert least <= found <= 2 * series
    full = found < 2 * series
    assert log.count("no room for metrics, so /metrics is incomplete") == (1 if full or kib < 260 else 0), log


@pytest.mark.parametrize("what", ["gone", "a file"])
def test_a_folder_that_cannot_be_written_ends_none_either(tmp_path, what):
    folder = tmp_path / "counts"
    if what == "a file":
        folder.write_bytes(b"")
    found, log = counted(folder)
    assert found == 0
    assert log.count("no room for metrics, so /metrics is incomplete") == 1


def test_with_room_all_is_counted_and_nothing_is_said(tmp_path):
    assert counted(tmp_path, series=300) == (600, "")


def test_a_file_has_all_the_room_that_it_maps(tmp_path):
    path = tmp_path / "counter_1.db"
    file = CountFile(str(path))
    for number in range(4000):
        file.read_value(f"key-{number}")
    status = path.stat()
    assert status.st_size > FILE_BYTES
    assert status.st_blocks * 512 >= status.st_size  # none of it is a hole
    file.close()


def test_a_file_without_room_is_not_left_for_readers(tmp_path, monkeypatch):
    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space"):
        CountFile(str(tmp_path / "counter_1.db"))
    assert list(tmp_path.iterdir()) == []
