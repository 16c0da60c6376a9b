"""Where things are, what programs need in their environment, and what machine this is."""

import copy
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPS = ("takt-speedometer", "takt-tachometer", "takt-map", "takt-menu", "takt-scene", "takt-flood")
NVIDIA_LIBRARIES = ("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib")


class Machine:
    """A GPU and the programs for it, in the bundle that this file lies in."""

    def __init__(self, device, extra_env, daemon_config=""):
        self.device = device
        self.daemon_config = daemon_config
        self.bin, self.lib = ROOT / "bin", ROOT / "lib"
        if not (self.bin / "takt").exists():
            print(f"eval: {self.bin}/takt is missing: make eval-bundle makes out/eval-bundle, to run this from",
                  file=sys.stderr)
            raise SystemExit(2)
        # Short, because the path of a socket must be.
        self.work = Path(tempfile.mkdtemp(prefix="takt-"))
        self.data = self.work / "data"
        self.extra_env = extra_env
        self.screen = None
        # Constants and models of an earlier run on this GPU, if the bundle carries them.
        if (ROOT / "store").exists():
            shutil.copytree(ROOT / "store", self.data)

    def without_store(self):
        """The same machine as Takt finds it that was just installed: nothing is known of its GPU."""
        other = copy.copy(self)
        other.data = self.work / "new-data"
        return other

    def close(self):
        shutil.rmtree(self.work, ignore_errors=True)

    def env(self, *, native_windows=False, size="800x600"):
        """Environment of a program; with `native_windows` its windows are pbuffers without Takt."""
        libraries = [self.lib, *NVIDIA_LIBRARIES]
        env = {
            "PATH": f"{self.bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.work),
            "XDG_RUNTIME_DIR": str(self.work),
            "XDG_DATA_HOME": str(self.data),
            "XDG_CACHE_HOME": str(self.work / "cache"),
            "__EGL_VENDOR_LIBRARY_DIRS": str(ROOT / "vendor" / self.device),
        }
        if self.device == "mesa":
            env.update(LIBGL_ALWAYS_SOFTWARE="1", LP_NUM_THREADS="1")
        if self.screen:
            env["DISPLAY"] = self.screen.display
        if native_windows:
            libraries.insert(0, ROOT / "native")
            env.update(PBUFFER_SIZE=size, LD_PRELOAD=str(ROOT / "native/libEGL.so"))
        env["LD_LIBRARY_PATH"] = ":".join(map(str, libraries))
        env.update(self.extra_env)
        return env

    def can_record(self):
        """Whether this takt can keep the daemon's log; a bundle may be older than the scripts."""
        return "--record" in said([str(self.bin / "takt"), "serve", "--help"], self.env())

    def facts(self):
        """What a reader must know to judge the figures."""
        facts = {
            "device": self.device,
            "commit": read(ROOT / "COMMIT"),
            "kernel": platform.release(),
            "system": read("/etc/os-release", "PRETTY_NAME="),
            "cpu": read("/proc/cpuinfo", "model name\t: "),
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
            "extra_env": self.extra_env,
            "real_time_rights": real_time(),
            "processor_stalls_ms": stalls_ms(),
            "nvidia_smi": said(["nvidia-smi", "--query-gpu=name,driver_version,clocks.gr,clocks.mem,temperature.gpu",
                                "--format=csv,noheader"], self.env()),
            "driver": read("/proc/driver/nvidia/version"),
        }
        probe = said([str(self.bin / "takt-flood"), "--platform", "device", "--iterations", "1", "--frames", "1",
                      "--json"], self.env())
        try:
            facts["renderer"] = json.loads(probe)["renderer"]
        except (ValueError, KeyError):
            facts["renderer"] = f"unknown: {probe}"
        return facts


def read(path, prefix=None):
    """A file's first line, or what follows `prefix` in its line."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    if prefix is None:
        return lines[0] if lines else None
    return next((line[len(prefix):].strip('"') for line in lines if line.startswith(prefix)), None)


def real_time():
    """Whether this user may have real-time priority."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        return True
    except OSError as error:
        return f"no: {error.strerror}"


def stalls_ms(seconds=0.5, least_ms=0.2):
    """How often and how long a program that never sleeps stands still, on the one processor it is on: no program can
    be faster than that. A virtual machine's processors stand still where its host has others to serve."""
    begin = before = time.monotonic_ns()
    gaps = []
    while before - begin < seconds * 1e9:
        now = time.monotonic_ns()
        if now - before > least_ms * 1e6:
            gaps.append(round((now - before) / 1e6, 2))
        before = now
    return {"count": len(gaps), "longest": max(gaps, default=0.0), "seconds": seconds}


def busy_stalls_ms(processors=8, seconds=3.0):
    """The same of several processors that are all busy: the longest of all."""
    code = f"from takteval.machine import stalls_ms; print(stalls_ms({seconds})['longest'])"
    env = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}
    busy = [subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True)
            for _ in range(max(1, min(processors, (os.cpu_count() or 2) // 2)))]
    try:
        # One that says nothing has failed, and nothing is known then.
        return max(float(process.communicate()[0] or math.inf) for process in busy)
    finally:
        for process in busy:
            process.kill()
            process.wait()


def said(command, env):
    """What a command prints, or why it does not."""
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=20)
        return (done.stdout or done.stderr).strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"failed: {error}"
