"""Processors that do not halt while something is measured (see native/awake.c)."""

import contextlib
import subprocess
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "native" / "awake"


@contextlib.contextmanager
def awake():
    """Wakes all processors of this machine often enough, behind everything else."""
    with subprocess.Popen([PROGRAM], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as spinning:
        try:
            if not spinning.stdout.readline():
                raise SystemExit(f"eval: {PROGRAM} ended with {spinning.wait()}, so processors cannot be kept awake")
            yield
        finally:
            spinning.kill()
