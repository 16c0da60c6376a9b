"""Programs that print what they computed, natively and with their work cut into small pieces: both must print the same."""

import subprocess

# Far below what their draws and dispatches take.
SLICE_MS = 0.05
LONGEST_S = 40
# Random compute programs, and the first seed.
RANDOM = (1, 40)
PROGRAMS = {"compute": ["trap-compute"], "compute-random": ["trap-compute", *RANDOM], "slices": ["trap-slices"],
            "samples": ["trap-samples"]}
# Floods whose pictures are compared, as they draw all of one, and how much they do of what such a flood does.
PICTURES, PART = ("fragment", "many-draws", "render-to-texture"), 0.02
# Lines that are kept of programs that differ.
SHOWN = 5


def measure(machine, daemon, folder, kinds):
    """What each program printed natively and cut."""
    programs = {name: [machine.bin / command[0], *command[1:]] for name, command in PROGRAMS.items()}
    for kind in PICTURES:
        if iterations := kinds.get(kind, {}).get("iterations"):
            programs[f"flood-{kind}"] = picture(machine, kind, max(1, round(iterations * PART)))
    found = {}
    for name, command in programs.items():
        whole = printed(machine, folder, f"{name}-native", command)
        options = daemon.options(name, priority=10, max_slice_ms=SLICE_MS)
        found[name] = compared(whole, printed(machine, folder, f"{name}-cut", [*options, "--", *command]))
    return {"programs": found, "differ": [name for name, each in found.items() if not each["same"]]}


def picture(machine, kind, iterations):
    """A flood that tells what it drew."""
    return [machine.bin / "takt-flood", "--platform", "device", "--kind", kind, "--size", "160x96", "--iterations",
            iterations, "--fps", "0", "--frames", "3", "--validate"]


def printed(machine, folder, name, command):
    """How a program ended and what it said; kept in the folder."""
    try:
        done = subprocess.run([str(part) for part in command], env=machine.env(), cwd=folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", timeout=LONGEST_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"code": None, "out": [], "err": str(error)}
    (folder / f"{name}.out").write_text(done.stdout)
    (folder / f"{name}.err").write_text(done.stderr)
    # Statistics of time are none of what was computed.
    return {"code": done.returncode, "out": told(done.stdout), "err": done.stderr}


def told(out):
    """Lines about what was computed: of apps of ours those with a hash, of others all."""
    lines = out.splitlines()
    hashes = [line for line in lines if line.split()[:1] == ["hash"]]
    return hashes or lines


def compared(whole, cut):
    """Whether both are the same, where not, and what Takt says it cut."""
    apart = [[a, b] for a, b in zip(whole["out"], cut["out"]) if a != b]
    same = whole["code"] is not None and whole["code"] == cut["code"] and whole["out"] == cut["out"]
    slicing = next((line for line in cut["err"].splitlines() if line.startswith("takt: slicing: ")), None)
    codes = [whole["code"], cut["code"]]
    end = {} if same else {"codes": codes, "apart": apart[:SHOWN], "native_said": whole["err"][-400:],
                           "cut_said": cut["err"][-1000:]}
    return {"same": same, "lines": len(whole["out"]), "lines_apart": len(apart), "slicing": slicing} | end


def pieces(each):
    """Draws and dispatches that were cut, and their pieces."""
    words = (each["slicing"] or "").split()
    numbers = [int(word) for word in words if word.isdigit()]
    return tuple(numbers[:2]) if len(numbers) >= 2 else (0, 0)


def brief(figures):
    """The figures in one line."""
    uncut = [name for name, each in figures["programs"].items() if not pieces(each)[0]]
    return (f"{len(figures['programs']) - len(figures['differ'])} of {len(figures['programs'])} programs print the same"
            + (f"; not {', '.join(figures['differ'])}" if figures["differ"] else "")
            + (f"; nothing was cut of {', '.join(uncut)}" if uncut else ""))
