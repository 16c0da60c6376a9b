"""The pages about what Takt costs, and about predictions."""

import json

from takteval import plots
from takteval.markdown import IN_PART, number, table
from takteval.overhead import MODES
from takteval.prediction import MARGIN_FACTOR, MARGIN_US, SCHEDULED
from takteval.scenes import SCENES

# Constants that are shown.
CONSTANTS = ("flush_ns", "draw_ns", "dispatch_upper_ns", "clear.pixel_ns.c", "clear.pixel_ns.cd", "upload.below_ns",
             "upload.above_ns", "copy.above_ns", "msaa.4")
# Above this share of its time a GPU is what a scene waits for.
GPU_BOUND_PERCENT = 95


def overhead(report):
    points = {name: point for name, point in report.results.of("overhead").items() if name != "overhead-bench"}
    if not points:
        return None
    rows, bound = [], []
    for name, point in points.items():
        figures = point.get("figures")
        scene = name.removeprefix("overhead-")
        if not figures:
            rows.append([scene, *["?"] * 5])
            continue
        share = figures["percent_of_native"]
        if (figures["gpu_busy"] or 0) >= GPU_BOUND_PERCENT:
            bound.append((share["scheduled"], scene))
        rows.append([scene, number(figures["fps"]["native"], 0), *(f"{share[mode]:.1f} %" for mode in MODES[1:]),
                     number(figures["gpu_busy"], 0, " %")])
    what, wanted = "scheduled alone", "≥ 97 % of the native frame rate in every GPU-bound scene"
    if bound:
        worst = min(bound)
        impossible = sum("natively" in point.get("skipped", "") for point in points.values())
        known = sum("figures" in point for point in points.values())
        whole = known + impossible > len(SCENES)
        report.verdict(what, wanted, f"{worst[0]:.1f} % at worst ({worst[1]}), {len(bound)} GPU-bound scenes; measured "
                       f"{known} scenes of {len(SCENES) + 1}, the other {impossible} cannot be set up natively",
                       False if worst[0] < 97 else True if whole else IN_PART, "" if whole else
                       "Of the other scenes glmark2 could not set up most with hooks there, and it is not known yet whether it can "
                       "without. What waits for each frame before it begins the next one pays for asking in each.")
    else:
        report.verdict(what, wanted, "no GPU-bound scene was measured", None)
    measured = {name: point["figures"] for name, point in points.items() if "figures" in point}
    series = {mode: [figures["percent_of_native"][mode] for figures in measured.values()] for mode in MODES[1:]}
    groups = [name.removeprefix("overhead-") for name in measured]
    chart = plots.bars("Frame rate, relative to native", groups, series, "%", line=(97, "97 %")) if measured else None
    return ["Each scene ran alone and for as long, natively, hooked, measured and scheduled, in rounds of turns; rates "
            "are means of rounds, without the start of each run. "
            "*GPU busy* is the share of time with work on the GPU while measured: a scene well below 100 % waits for "
            f"its processor, and what Takt adds there is processor time. From {GPU_BOUND_PERCENT} % on it counts as bound by the "
            "GPU. The app of our own ends each frame on the GPU before it begins the next one, so that no queue hides what asking "
            f"adds. EGL priorities are not among the modes: they make no difference to an app that runs alone. Each mode of a scene was measured for "
            f"{lengths(points.values(), len(MODES))}{resolution(points.values())}.",
            table(["figures", "commits"], [["rates", commits(report.results, points.values())]]), report.plot("overhead", chart),
            table(["scene", "native FPS", *MODES[1:], "GPU busy"], rows), *benches(report)]


def resolution(points):
    """What a frame per second more or less is of the slowest scene's rate: glmark2 tells whole ones."""
    rates = [point["figures"]["fps"]["native"] for point in points if point.get("figures")]
    return f"; a frame per second, which glmark2 rounds to, is {100 / min(rates):.1f} % of the slowest" if rates else ""


def lengths(points, parts=1):
    """For how long points were measured."""
    found = sorted({round(point["seconds"] / parts, 1) for point in points if "figures" in point and point["seconds"]})
    return " to ".join(f"{seconds:g}" for seconds in ([found[0], found[-1]] if len(found) > 1 else found)) + " s"


def commits(results, points):
    """With which code points were measured."""
    found = sorted({results.commit(point) for point in points if "figures" in point})
    return f"`{'`, `'.join(found)}`"


def benches(report):
    figures = (report.results.figures("overhead-bench") or {}).get("bench")
    if not figures:
        return []
    return ["## Decisions and grants", "```json\n" + short(figures) + "\n```"]


def short(value, depth=0):
    """JSON that people read: numbers rounded, small objects on one line."""
    if isinstance(value, dict):
        pad = "  " * (depth + 1)
        inside = [f'{pad}"{key}": {short(each, depth + 1)}' for key, each in value.items()]
        return "{\n" + ",\n".join(inside) + "\n" + "  " * depth + "}"
    if isinstance(value, list):
        return "[" + ", ".join(" ".join(short(each, depth).split()) for each in value) + "]"
    return f"{value:.4g}" if isinstance(value, float) else f'"{value}"' if isinstance(value, str) else str(value)


def prediction(report):
    preparing = [f"prediction-{name}" for name in ("profile", "seen", "programs", "train")]
    points = {name: point for name, point in report.results.of("prediction").items() if name not in preparing}
    if not points:
        return None
    measured = {name.removeprefix("prediction-"): point["figures"] for name, point in points.items()
                if point.get("figures", {}).get("models")}
    models = sorted({model for figures in measured.values() for model in figures["models"]})
    rows = []
    for name, point in points.items():
        name = name.removeprefix("prediction-")
        cells = [steady(measured.get(name), model) for model in models]
        scheduled = measured.get(name, {}).get("models", {}).get(SCHEDULED, {}).get("steady", {}).get("above_upper")
        rows.append([name, measured.get(name, {}).get("groups", "?"), number(scheduled and 100 * scheduled, 2, " %"), *cells])
    summary = [[model, *means(measured, model)] for model in models]
    judge(report, measured, models)
    return ["Draw groups only. *First* is the first frame, before anything was learned; *steady* begins with the "
            f"{report.results.prepared('prediction').get('steady_from_frame', 60)}th frame. Errors are relative to "
            "measured times; means are of scenes; only the verdict's share of groups above the upper estimate counts all groups alike. Columns without adaption leave out everything learned on the way. *Reserved* is what a daemon "
            f"makes of the upper estimate: {MARGIN_FACTOR:g} × (estimate + {MARGIN_US:g} µs). Scenes ran alone and unscheduled, so that modes make no difference. "
            f"Each scene was measured for {lengths(points.values())}.",
            table(["figures", "commits"], [["errors", commits(report.results, points.values())]]), "## Models",
            table(["model", "first frame", "steady, mean of scenes", "steady, worst scene", "without adaption",
                   "took longer than predicted", "than the upper estimate", "than reserved"], summary),
            "## Scenes: mean relative error, steady", table(["scene", "groups", f"above the upper estimate of {SCHEDULED}", *models], rows), *calibration(report)]


def calibration(report):
    """What the GPU's clock and constants are, and how well models of shaders fit, as far as that was kept."""
    profile = kept(report, "prediction-profile", "profile.json")
    train = kept(report, "prediction-train", "train.json")
    parts = []
    if profile:
        shown = [each for each in profile["constants"] if each["key"] in CONSTANTS]
        parts += ["## Clock and constants", f"`takt profile` measures by {profile['source']}. It compares them with a fence: "
                  "where both differ for long work, it uses fences.",
                  table(["figures", "commits"], [["constants", commits(report.results, [report.results.points["prediction-profile"]])]]),
                  table(["constant", "value", "R²", "median error", "how"],
                        [[f"`{each['key']}`", number(each["value"], 3), number((each["fit"] or {}).get("r_squared"), 3),
                          number(100 * each["fit"]["error_p50"], 1, " %") if each["fit"] else "", each["note"] or ""]
                         for each in shown])]
    if train:
        parts += ["## Models of shaders", f"`takt train --quick` generated {train['shaders']} shaders and measured them one by one; it also fitted each "
                  "model without a part of them, and predicted that part. The models matter only for the first frame "
                  "of a program without a profile: from then on, measurements correct them.",
                  table(["figures", "commits"], [["models", commits(report.results, [report.results.points["prediction-train"]])]]),
                  table(["model", "shaders", "R²", "R², unseen", "median error, unseen"],
                        [[each["model"], each["runs"], number(each["r_squared"], 3), number(each["cross_r_squared"], 3),
                          number(100 * each["cross_error_p50"], 1, " %")] for each in train["models"]])]
    return parts


def kept(report, point, name):
    """A file that a point has left, if it is there."""
    path = report.results.points.get(point, {}).get("raw")
    return json.loads((path / name).read_text()) if path and (path / name).exists() else None


def steady(figures, model):
    found = (figures or {}).get("models", {}).get(model)
    return "?" if not found or found["steady"]["mape"] is None else f"{100 * found['steady']['mape']:.2f} %"


def means(measured, model):
    """Of all scenes that were steady for a while."""
    found = [figures["models"][model] for figures in measured.values() if model in figures["models"]]
    mean = lambda values: number(100 * sum(values) / len(values), 2, " %") if values else "?"
    of = lambda phase, key: [each[phase][key] for each in found if each[phase].get(key) is not None]
    mapes = of("steady", "mape")
    return [mean(of("first", "mape")), mean(mapes), number(100 * max(mapes), 2, " %") if mapes else "?",
            mean(of("steady", "raw_mape")), mean(of("steady", "under")), mean(of("steady", "above_upper")),
            mean(of("steady", "above_reserved"))]


def judge(report, measured, models):
    """The model that schedules counts: its mean error over scenes, and the share of all groups above its estimate."""
    what, wanted = "prediction with adaption, steady scenes", "MAPE ≤ 2 %, upper estimate exceeded by ≤ 0.5 % of groups"
    steady = {scene: figures["models"][SCHEDULED]["steady"] for scene, figures in measured.items()
              if SCHEDULED in figures["models"] and figures["models"][SCHEDULED]["steady"]["mape"] is not None}
    if not steady:
        return report.verdict(what, wanted, "?", None)
    mape = sum(each["mape"] for each in steady.values()) / len(steady)
    groups = sum(each["groups"] for each in steady.values())
    above = lambda key: sum(each[key] * each["groups"] for each in steady.values() if each[key] is not None) / groups
    far = [scene for scene, each in steady.items() if each["mape"] > 0.02]
    over = [scene for scene, each in steady.items() if (each["above_upper"] or 0) > 0.005]
    exceeded = " (more than 0.5 % in " + ", ".join(f"{scene} {100 * steady[scene]['above_upper']:.2f} %" for scene in over) + ")" if over else ""
    beyond = "; above 2 %: " + ", ".join(f"{scene} {100 * steady[scene]['mape']:.1f} %" for scene in far) if far else ""

    def best(scene):
        errors = {model: figures["steady"]["mape"] for model, figures in measured[scene]["models"].items()
                  if figures["steady"]["mape"] is not None}
        model = min(errors, key=errors.get)
        return f"{scene} {100 * errors[model]:.1f} % ({model})"

    return report.verdict(
        what, wanted, f"{100 * mape:.2f} % in the mean of {len(steady)} scenes{beyond}; exceeded by "
        f"{100 * above('above_upper'):.2f} % of {groups} groups of steady frames{exceeded}, by {100 * above('above_reserved'):.2f} % with the daemon's "
        f"margins ({SCHEDULED}, which schedules)", mape <= 0.02 and above("above_upper") <= 0.005,
        "" if not far else f"The best there: {', '.join(map(best, far))}. What of these scenes is seen changes from frame to frame, and with it "
        "what groups of one kind cost; kinds by what is seen would tell them apart.")
