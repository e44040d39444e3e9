"""What the pictures of scripts/plot.py share: colours, sizes, points with intervals, legends, files."""
import pathlib
import sys

try:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
except ImportError:
    sys.exit("scripts/plot.py: matplotlib is missing; scripts/setup installs python3-matplotlib for /usr/bin/python3")

STYLE = {
    "figure.dpi": 110,
    "figure.constrained_layout.use": True,
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "tandem",  # the same input gives the same file
}
pyplot.rcParams.update(STYLE)
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933"]  # told apart by all
MARKERS = "os^Dv<>P"


def model_name(path):
    name = pathlib.PurePosixPath(path).name
    return name[: -len(".gguf")] if name.endswith(".gguf") else name


def pair_title(settings):
    """The models, short enough for one line each."""
    target = model_name(settings["target"]["path"])
    draft = settings.get("draft")
    return f"{target}\ndrafts by {model_name(draft['path'])}" if draft else target


def new_figure(title, width=7.2, height=4.4, columns=1):
    figure, axes = pyplot.subplots(1, columns, figsize=(width, height), sharey=True, squeeze=False)
    figure.suptitle(title, fontsize=12)
    return figure, list(axes[0])


def panels_figure(title, names, height):
    """One panel a temperature, side by side."""
    figure, axes = new_figure(title, 4 + 3.6 * len(names), height, len(names))
    for axis, temperature in zip(axes, names):
        axis.set_title(f"temperature {temperature:g}")
    return figure, axes


def legend_below(figure, axes, columns=3):
    """What all panels show, each once; below them, where it covers nothing."""
    entries = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels())}
    if len(entries) > 1:
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "ncol": min(columns, len(entries))}
        figure.legend(entries.values(), entries.keys(), fontsize=10, **place)


def draw_points(axis, number, places, values, intervals, line="", **options):
    """The points of one line with their intervals; an end that is None is the point itself."""
    below = [0 if low is None else max(0, value - low) for value, (low, _) in zip(values, intervals)]
    above = [0 if high is None else max(0, high - value) for value, (_, high) in zip(values, intervals)]
    look = {"color": COLOURS[number % len(COLOURS)], "fmt": MARKERS[number % len(MARKERS)] + line}
    style = {"capsize": 3, "markersize": 5, "linewidth": 1.2, **look, **options}
    axis.errorbar(places, values, yerr=[below, above], **style)


def apart(number, count, width):
    """Where a line's points stand beside the place they belong to, so that intervals do not cover each other."""
    return width * ((number + 0.5) / count - 0.5)


def save(figure, path):
    for ending, metadata in ((".png", {"Software": None}), (".svg", {"Date": None})):
        figure.savefig(f"{path}{ending}", bbox_inches="tight", metadata=metadata)
    pyplot.close(figure)
    print(f"{path}.png {path}.svg")
