"""Processors that do not halt while something is measured (see native/awake.c)."""

import contextlib
import subprocess
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "native" / "awake"


@contextlib.contextmanager
def awake():
    """Wakes all processors of this machine often enough, behind everything else."""
    try:
        waking = subprocess.Popen([PROGRAM], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    except OSError as error:
        raise SystemExit(f"eval: {PROGRAM}: {error.strerror}; --awake works from the bundle (make eval-bundle)") from None
    with waking:
        try:
            if not waking.stdout.readline():
                raise SystemExit(f"eval: {PROGRAM} ended with {waking.wait()}, so processors cannot be kept awake")
            yield
            if waking.poll() is not None:
                raise SystemExit(f"eval: {PROGRAM} ended with {waking.returncode} on the way: processors were not kept awake")
        finally:
            waking.kill()
