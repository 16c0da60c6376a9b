"""glmark2's scenes, as it runs them by default, and how it is started."""

from takteval.crew import Failed

# Short names; the most different ones first, in case time runs out.
SCENES = {
    "build": "build:use-vbo=true",
    "texture": "texture:texture-filter=linear",
    "shading-phong": "shading:shading=phong",
    "refract": "refract",
    "terrain": "terrain",
    "jellyfish": "jellyfish",
    "desktop-blur": "desktop:blur-radius=5:effect=blur:passes=1:separable=true:windows=4",
    "buffer-map": "buffer:columns=200:interleave=false:update-dispersion=0.9:update-fraction=0.5:update-method=map",
    "ideas": "ideas:speed=duration",
    "pulsar": "pulsar:light=false:quads=5:texture=false",
    "bump-normals": "bump:bump-render=normals",
    "effect2d-blur": "effect2d:kernel=1,1,1,1,1;1,1,1,1,1;1,1,1,1,1;",
    "shadow": "shadow",
    "conditionals-5-5": "conditionals:fragment-steps=5:vertex-steps=5",
    "function-medium-5": "function:fragment-complexity=medium:fragment-steps=5",
    "loop-dynamic": "loop:fragment-loop=false:fragment-steps=5:vertex-steps=5",
    "build-arrays": "build:use-vbo=false",
    "texture-nearest": "texture:texture-filter=nearest",
    "texture-mipmap": "texture:texture-filter=mipmap",
    "shading-gouraud": "shading:shading=gouraud",
    "shading-blinn": "shading:shading=blinn-phong-inf",
    "shading-cel": "shading:shading=cel",
    "bump-high-poly": "bump:bump-render=high-poly",
    "bump-height": "bump:bump-render=height",
    "effect2d-edge": "effect2d:kernel=0,1,0;1,-4,1;0,1,0;",
    "desktop-shadow": "desktop:effect=shadow:windows=4",
    "buffer-subdata": "buffer:columns=200:interleave=false:update-dispersion=0.9:update-fraction=0.5"
                      ":update-method=subdata",
    "buffer-interleaved": "buffer:columns=200:interleave=true:update-dispersion=0.9:update-fraction=0.5"
                          ":update-method=map",
    "conditionals-0-5": "conditionals:fragment-steps=0:vertex-steps=5",
    "conditionals-5-0": "conditionals:fragment-steps=5:vertex-steps=0",
    "function-low-5": "function:fragment-complexity=low:fragment-steps=5",
    "loop-uniform": "loop:fragment-steps=5:fragment-uniform=true:vertex-steps=5",
    "loop-static": "loop:fragment-steps=5:fragment-uniform=false:vertex-steps=5",
}


def offscreen(machine, size, *more):
    """The beginning of a command whose windows become pbuffers under Takt."""
    return [machine.bin / "takt", "run", f"--offscreen={size}", *more]


class NoSetUp(Failed):
    """A scene that glmark2 cannot set up with this driver."""


def glmark2(machine, scene, seconds, size, warm_up_s=None):
    """A scene of glmark2 for some seconds; it gives one rate per scene, so a warm-up is the scene once before."""
    lengths = [seconds] if warm_up_s is None else [warm_up_s, seconds]
    return [machine.bin / "glmark2-es2", "--data-path", machine.bin.parent / "share/glmark2", "-s", size,
            *(part for length in lengths for part in ("-b", f"{SCENES[scene]}:duration={length:.2f}"))]


def check_set_up(out):
    """Fails if glmark2 says that it could not set up its scene, which is no error to it; with what it says of errors
    otherwise, which is what compilers of shaders have told it."""
    for line in out.splitlines():
        if any(words in line for words in ("Set up failed", "Unsupported")):
            errors = [other.strip() for other in out.splitlines() if "rror" in other and other != line]
            raise NoSetUp("; ".join([f"glmark2: {line.strip()[-200:]}", *errors[:5]]))


def rate(out):
    """The last frame rate in what glmark2 says."""
    for line in reversed(out.splitlines()):
        if line.startswith("[") and "FPS:" in line:
            return float(line.split("FPS:")[1].split()[0])
    check_set_up(out)
    raise Failed(f"glmark2 gave no frame rate: {out[-300:]}")
