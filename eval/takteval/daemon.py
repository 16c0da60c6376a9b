"""`takt serve` for one measurement."""

import json
import math
import time

from takteval.crew import Failed, run

# Its first start on a GPU measures that for 10 s at most.
START_S = 15.0
# What a daemon that records leaves behind.
LOG = "daemon.jsonl"


class Daemon:
    """A daemon in a crew; apps ask it through `options`."""

    def __init__(self, machine, crew, *, record=False, **settings):
        self._machine = machine
        self.socket = machine.work / "s"
        self.socket.unlink(missing_ok=True)
        file = crew.folder / "takt.toml"
        file.write_text(configuration(settings, machine.daemon_config))
        command = [machine.bin / "takt", "serve", "--config", file, "--socket", self.socket]
        if record:
            command += ["--record", crew.folder / LOG]
        crew.start("daemon", command, machine.env())
        until = time.monotonic() + START_S
        while not self.socket.exists():
            crew.check()
            if time.monotonic() > until:
                raise Failed("the daemon does not listen")
            time.sleep(0.01)

    def options(self, name, **terms):
        """The beginning of a command that is to be scheduled."""
        given = [(f"--{key.replace('_', '-')}", value) for key, value in terms.items() if value is not None]
        return [self._machine.bin / "takt", "run", "--verbose", "--name", name, "--schedule", "--socket", self.socket,
                *(str(part) for pair in given for part in pair)]

    def list(self):
        """What the daemon says about its apps and itself; or why it does not, which costs no point."""
        try:
            out = run([self._machine.bin / "takt", "list", "--json", "-", "--socket", self.socket],
                      self._machine.env(), 10)
            return json.loads(out)
        except Failed as failure:
            return {"apps": [], "error": str(failure)}


def toml(value):
    """A value, or a table on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return "inf" if value == math.inf else json.dumps(value)


def configuration(settings, more):
    """A configuration; lines in `more` outrank settings."""
    named = {line.split("=")[0].strip() for line in more.splitlines()}
    lines = [f"{key} = {toml(value)}" for key, value in settings.items() if value is not None and key not in named]
    return "\n".join([*lines, more, ""])
