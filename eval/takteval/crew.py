"""The processes of one measurement: started together, and all gone afterwards."""

import os
import signal
import subprocess
import time
from pathlib import Path


class Failed(Exception):
    """A measurement that gives no figures; the message says why."""


class Skipped(Exception):
    """A measurement that is impossible here, through no fault of Takt; the message says why."""


class Crew:
    """Starts programs, keeps what they say in `folder`, and ends all of them."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._members = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop(patience_s=1.0)

    def start(self, name, command, env):
        with open(self.folder / f"{name}.out", "wb") as out, open(self.folder / f"{name}.err", "wb") as err:
            # A session of its own: Ctrl-C is for us, and whatever it starts can be found.
            self._members[name] = subprocess.Popen(
                [str(part) for part in command], env=env, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out,
                stderr=err, start_new_session=True)

    def check(self):
        """Fails if a program has ended, with its last words."""
        for name, process in self._members.items():
            if process.poll() is not None:
                raise Failed(f"{name} ended with {process.returncode}: {self.last_words(name)}")

    def last_words(self, name):
        return (self.folder / f"{name}.err").read_text(errors="replace")[-400:].strip() or "it said nothing"

    def sleep(self, seconds):
        """Sleeps while everything runs."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.check()
            time.sleep(min(left, 0.2))
        self.check()

    def wait_for(self, what, found, patience_s=30.0):
        """Waits until `found()` is true, while everything runs."""
        until = time.monotonic() + patience_s
        while not found():
            self.check()
            if time.monotonic() > until:
                raise Failed(f"{what}: not within {patience_s:.0f} s")
            time.sleep(0.05)

    def pids(self):
        """Processes by name."""
        return {name: process.pid for name, process in self._members.items()}

    def cpu_s(self, name):
        """Processor time that a program has used so far."""
        fields = Path(f"/proc/{self._members[name].pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self, patience_s):
        """Asks all to end, and ends those that do not; the names of the latter."""
        running = {name: process for name, process in self._members.items() if process.poll() is None}
        for process in running.values():
            send(process, signal.SIGINT)
        until = time.monotonic() + patience_s
        killed = []
        for name, process in running.items():
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                killed.append(name)
                send(process, signal.SIGKILL)
        for name in killed:
            running[name].wait()
        self._members.clear()
        return killed

    def end(self, name, patience_s=2.0):
        """Ends one program, and waits for it."""
        process = self._members.pop(name)
        send(process, signal.SIGINT)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            send(process, signal.SIGKILL)
            process.wait()


def send(process, number):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


def run(command, env, timeout_s, folder=None, errors=False):
    """Runs a program to its end; its output, with `errors` also what it says on standard error, or `Failed`."""
    shown = Path(str(command[0])).name
    process = subprocess.Popen([str(part) for part in command], env=env, cwd=folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                               start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise Failed(f"{shown} did not end within {timeout_s:.0f} s") from None
    finally:
        if process.poll() is None:
            send(process, signal.SIGKILL)
            process.communicate()
    if process.returncode != 0:
        raise Failed(f"{shown} ended with {process.returncode}: {(err or out)[-400:].strip()}")
    return out + err if errors else out
