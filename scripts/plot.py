#!/usr/bin/python3
"""Draws what the measuring commands found: PNG and SVG, one picture a question.

Takes any of these files and draws what they hold:
  tandem sweep --out PREFIX       PREFIX.json   speed-up by draft length, acceptance by position, time by stage
  tandem rows --json              > FILE        time of a pass by its rows, beside the limits
  tandem accept --json            > FILE        acceptance by position, calibration of confidence
  scripts/speed --json FILE                     speed by task, the worst prompt marked
Pictures are named PREFIX-speedup.png and so on. A file that lacks what a picture needs is named and costs that picture
only. Needs matplotlib (scripts/setup installs Debian's, which belongs to the system's Python).

example: scripts/plot.py --out pictures/qwen sweep.json rows.json accept.json speed.json
"""
import argparse
import json
import math
import pathlib
import statistics
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
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933"]  # told apart by all
MARKERS = "os^Dv<>P"
STAGES = {"prefill": "#bbbbbb", "draft": "#e69f00", "verify": "#0072b2", "sample": "#009e73", "rollback": "#cc79a7", "other": "#444444"}
MOST_BARS = 14


class Lacking(Exception):
    """A file holds nothing for one picture; the message says what it lacks."""


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


# --- from a sweep ---


def temperatures(sweep):
    return sorted({cell["temperature"] for cell in sweep["cells"]})


def series_name(cell, sweep):
    """What tells this line from the others: only what the sweep varied."""
    parts = [cell["kind"]]
    drafting = [other for other in sweep["cells"] if other["kind"] != "none"]
    if len({other["threshold"] for other in drafting}) > 1:
        parts.append(f"threshold {cell['threshold']:g}")
    if len({other["rule"] for other in drafting}) > 1:
        parts.append(cell["rule"])
    return ", ".join(parts)


def length_order(length):
    return math.inf if length == "auto" else length


def measured(cells):
    return [cell for cell in cells if cell["speedup"] is not None]


def draw_speedup(sweep):
    cells = measured(sweep["cells"])
    drafting = [cell for cell in cells if cell["kind"] != "none"]
    if not drafting:
        raise Lacking("no cell with a speed-up")
    lengths = sorted({cell["length"] for cell in cells}, key=length_order)
    series = sorted({series_name(cell, sweep) for cell in drafting})
    panels = temperatures(sweep)
    figure, axes = new_figure(f"Speed-up over plain decoding\n{pair_title(sweep['settings'])}", 4 + 3.6 * len(panels), 4.8, len(panels))
    for axis, temperature in zip(axes, panels):
        axis.axhline(1, color="#555555", linewidth=1, linestyle="--")
        for number, name in enumerate(series):
            points = [c for c in drafting if c["temperature"] == temperature and series_name(c, sweep) == name]
            draw_line(axis, points, lengths, number, len(series), name)
        draw_plain(axis, [c for c in cells if c["kind"] == "none" and c["temperature"] == temperature], lengths)
        axis.set_xticks(range(len(lengths)), [str(length) for length in lengths])
        axis.set_xlabel("draft length (tokens proposed a step)")
        axis.set_title(f"temperature {temperature:g}")
    lowest = min(cell["speedup_low"] or cell["speedup"] for cell in cells)
    axes[0].set_ylim(bottom=0.5 if lowest > 0.55 else 0)
    axes[0].set_ylabel(f"times plain ({100 * sweep['settings']['confidence']:g} % intervals)")
    legend_below(figure, axes)
    return figure


def draw_line(axis, points, lengths, number, of, name):
    """Fixed lengths are joined; auto stands alone. Lines are set apart a little so that intervals do not cover."""
    shift = 0.3 * ((number + 0.5) / of - 0.5)
    points = sorted(points, key=lambda cell: length_order(cell["length"]))
    places = [lengths.index(cell["length"]) + shift for cell in points]
    values = [cell["speedup"] for cell in points]
    errors = [[max(0, c["speedup"] - (c["speedup_low"] or c["speedup"])) for c in points],
              [max(0, (c["speedup_high"] or c["speedup"]) - c["speedup"]) for c in points]]
    colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
    axis.errorbar(places, values, yerr=errors, fmt=marker, color=colour, capsize=3, markersize=6, label=name)
    fixed = [(place, value) for place, value, cell in zip(places, values, points) if cell["length"] != "auto"]
    axis.plot(*zip(*fixed) if fixed else ([], []), color=colour, linewidth=1.2)


def draw_plain(axis, cells, lengths):
    for cell in cells:
        place = lengths.index(cell["length"])
        low, high = cell["speedup_low"] or cell["speedup"], cell["speedup_high"] or cell["speedup"]
        axis.errorbar([place], [cell["speedup"]], yerr=[[cell["speedup"] - low], [high - cell["speedup"]]], fmt="x",
                      color="#555555", capsize=3, label="plain against itself: noise")


def legend_below(figure, axes, columns=3):
    """What all panels show, each once; below them, where it covers nothing."""
    entries = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels())}
    if len(entries) > 1:
        figure.legend(entries.values(), entries.keys(), loc="upper center", bbox_to_anchor=(0.5, 0), fontsize=10,
                      ncol=min(columns, len(entries)))


def longest_cells(cells, sweep):
    """Of each line the cell of the longest fixed length: it alone says something of every position."""
    chosen = {}
    for cell in cells:
        name = series_name(cell, sweep)
        best = chosen.get(name)
        if best is None or (cell["length"] != "auto" and (best["length"] == "auto" or cell["length"] > best["length"])):
            chosen[name] = cell
    return chosen


def draw_acceptance(sweep):
    cells = [cell for cell in sweep["cells"] if cell["kind"] != "none" and cell["drafted"]["tested"]]
    if not cells:
        raise Lacking("no cell whose drafts were tested")
    series = sorted({series_name(cell, sweep) for cell in cells})
    panels = temperatures(sweep)
    figure, axes = new_figure(f"Acceptance by position in the draft\n{pair_title(sweep['settings'])}", 4 + 3.6 * len(panels), 4.6, len(panels))
    for axis, temperature in zip(axes, panels):
        for name, cell in sorted(longest_cells([c for c in cells if c["temperature"] == temperature], sweep).items()):
            run, number = cell["drafted"], series.index(name)
            points = [(place, accepted, tested) for place, (accepted, tested)
                      in enumerate(zip(run["accepted_by_position"], run["tested_by_position"]), 1) if tested]
            places = [place + 0.4 * ((number + 0.5) / len(series) - 0.5) for place, _, _ in points]
            errors = list(zip(*(binomial_error(accepted, tested) for _, accepted, tested in points)))
            axis.errorbar(places, [accepted / tested for _, accepted, tested in points], yerr=errors, capsize=2, linewidth=1.2,
                          fmt=f"{MARKERS[number % len(MARKERS)]}-", markersize=5, elinewidth=0.8,
                          color=COLOURS[number % len(COLOURS)], label=f"{name}, length {cell['length']}")
        finish_acceptance(axis)
        axis.set_title(f"temperature {temperature:g}")
    axes[0].set_ylabel("accepted of tested there (95 % intervals)")
    legend_below(figure, axes, 2)
    return figure


def finish_acceptance(axis):
    axis.set_ylim(0, 1.03)
    axis.set_xlabel("position in the draft")
    axis.xaxis.get_major_locator().set_params(integer=True)


def binomial_error(accepted, tested):
    """Distances to the ends of Wilson's 95 % interval."""
    z, rate = 1.96, accepted / tested
    middle = (rate + z * z / (2 * tested)) / (1 + z * z / tested)
    half = z * math.sqrt(rate * (1 - rate) / tested + z * z / (4 * tested * tested)) / (1 + z * z / tested)
    return max(0, rate - (middle - half)), max(0, middle + half - rate)


def draw_stages(sweep):
    """In units of the plain runs next to each drafted one: the machine may have been faster for one cell than another."""
    cells = [cell for cell in measured(sweep["cells"]) if cell["kind"] != "none"]
    if not cells:
        raise Lacking("no cell with a speed-up")
    temperature = temperatures(sweep)[0]
    cells = sorted((c for c in cells if c["temperature"] == temperature), key=lambda cell: -cell["speedup"])[:MOST_BARS]
    bars = [("plain", cells[0]["plain"], cells[0]["plain"])]
    bars += [(f"{series_name(cell, sweep)}, length {cell['length']}", cell["drafted"], cell["plain"]) for cell in cells]
    figure, (axis,) = new_figure(f"Where the time goes, temperature {temperature:g}\n{pair_title(sweep['settings'])}", 8.2,
                                 1.9 + 0.36 * len(bars))
    left = [0.0] * len(bars)
    for stage, colour in STAGES.items():
        widths = [run["seconds"][stage] / run["tokens"] / (plain["seconds"]["wall"] / plain["tokens"]) for _, run, plain in bars]
        if max(widths) > 0.005:
            axis.barh(range(len(bars)), widths, left=left, color=colour, label=stage, height=0.7)
        left = [a + b for a, b in zip(left, widths)]
    axis.axvline(1, color="#555555", linewidth=1, linestyle="--")
    axis.set_yticks(range(len(bars)), [name for name, _, _ in bars])
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    axis.set_xlabel("time of a token, prompt included (plain = 1)")
    legend_below(figure, [axis], 6)
    return figure


# --- from tandem rows ---


def draw_rows(found):
    points = found["rows"]
    if not points:
        raise Lacking("no rows were measured")
    counts = [point["rows"] for point in points]
    times = [1e3 * point["seconds_median"] for point in points]
    limits = [1e3 * point["seconds_median"] / point["over_limit"] for point in points]
    title = f"Time of a pass by its rows\n{model_name(found['model'])}, {found['backend']}, {found['threads']} threads"
    figure, (axis,) = new_figure(title)
    logarithmic = max(counts) > 16 * min(counts)
    axis.plot(counts, times, "o-", color=COLOURS[0], label="measured (median)")
    axis.plot(counts, limits, "--", color=COLOURS[1], label="limit: memory, or multiplies")
    if logarithmic:
        axis.set_xscale("log", base=2)
        axis.set_yscale("log", base=2)
        axis.yaxis.set_major_formatter("{x:g}")
    else:
        axis.set_ylim(bottom=0)
    for count, time in zip(counts, times):
        axis.annotate(f"{time / times[0]:.2f}x", (count, time), textcoords="offset points", xytext=(0, 7), ha="center", fontsize=9)
    axis.set_xticks(counts, [str(count) for count in counts])
    axis.minorticks_off()
    axis.margins(y=0.12)
    axis.set_xlabel("rows (tokens checked in one pass)")
    axis.set_ylabel("ms")
    axis.legend(loc="upper left")
    return figure


# --- from tandem accept ---


def draw_positions(found):
    groups = [group for group in found["temperatures"] if group["positions"]]
    if not groups:
        raise Lacking("no position whose drafts were tested")
    figure, (axis,) = new_figure(f"Acceptance by position in the draft\n{pair_title(found['settings'])}")
    for number, group in enumerate(groups):
        points = [point for point in group["positions"] if point["tested"]]
        for key, line in (("conditional", "-"), ("unconditional", ":")):
            places = [point["position"] for point in points]
            rates = [point[key] for point in points]
            ends = [point[f"{key}_interval"] for point in points]
            errors = [[max(0, rate - low) for rate, (low, _) in zip(rates, ends)],
                      [max(0, high - rate) for rate, (_, high) in zip(rates, ends)]]
            meaning = "once it is reached" if key == "conditional" else "of all drafts there"
            axis.errorbar(places, rates, yerr=errors, fmt=f"{MARKERS[number % len(MARKERS)]}{line}", capsize=3, markersize=5,
                          color=COLOURS[number % len(COLOURS)], label=f"T {group['temperature']:g}, {meaning}")
    finish_acceptance(axis)
    axis.set_ylabel("accepted (95 % intervals)")
    legend_below(figure, [axis], 2)
    return figure


def draw_calibration(found):
    groups = found["temperatures"]
    panels = [(group["temperature"], source) for group in groups for source in group["sources"] if source["bins"]]
    if not panels:
        raise Lacking("no bins of confidence")
    figure, (axis,) = new_figure(f"Confidence of drafts against their acceptance\n{pair_title(found['settings'])}", 6.4, 5.6)
    axis.plot([0, 1], [0, 1], "--", color="#555555", linewidth=1, label="as sure as right")
    for number, (temperature, source) in enumerate(panels):
        bins = source["bins"]
        x, y = [b["mean_confidence"] for b in bins], [b["acceptance_rate"] for b in bins]
        errors = [[max(0, b["acceptance_rate"] - b["acceptance_interval"][0]) for b in bins],
                  [max(0, b["acceptance_interval"][1] - b["acceptance_rate"]) for b in bins]]
        axis.errorbar(x, y, yerr=errors, fmt=f"{MARKERS[number % len(MARKERS)]}-", color=COLOURS[number % len(COLOURS)], capsize=3,
                      linewidth=1, label=f"{source['source']} drafts, T {temperature:g}")
    axis.set_xlim(0, 1.02)
    axis.set_ylim(0, 1.02)
    axis.set_aspect("equal")
    axis.set_xlabel("mean confidence of the bin")
    axis.set_ylabel("accepted of tested (95 % intervals)")
    legend_below(figure, [axis], 2)
    return figure


# --- from scripts/speed ---


def prompt_ratio(runs):
    return statistics.median(r["tpot_seconds"] for r in runs["plain"]) / statistics.median(r["tpot_seconds"] for r in runs["drafted"])


def total_ratio(prompts):
    """As scripts/speed prints it: all tokens of a side over the time that they took."""
    def rate(side):
        tokens = sum(runs[side][0]["generated_tokens"] for runs in prompts)
        return tokens / sum(statistics.median(r["tpot_seconds"] for r in runs[side]) * runs[side][0]["generated_tokens"] for runs in prompts)

    return rate("drafted") / rate("plain")


def draw_tasks(found):
    prompts = [runs for rows in found.values() for runs in rows]
    if not prompts:
        raise Lacking("no runs")
    names = [*found, "all"]
    ratios = [total_ratio(rows) for rows in found.values()] + [total_ratio(prompts)]
    settings = prompts[0]["drafted"][0]["settings"]
    figure, (axis,) = new_figure(f"Speed with drafts, by task\n{pair_title(settings)}", 7.6, 4.6)
    colours = [COLOURS[0]] * len(found) + [COLOURS[1]]
    axis.bar(names, ratios, color=colours, width=0.65)
    axis.axhline(1, color="#555555", linewidth=1, linestyle="--")
    for place, rows in enumerate([*found.values(), prompts]):
        if place < len(found):
            axis.plot([place] * len(rows), [prompt_ratio(runs) for runs in rows], "o", markersize=4, color="white", markeredgecolor="black")
        axis.annotate(f"{ratios[place]:.2f}", (place, 0.08), ha="center", color="white", fontsize=11, fontweight="bold")
    worst, place, task = min((prompt_ratio(runs), place, task) for place, (task, rows) in enumerate(found.items()) for runs in rows)
    top = max(prompt_ratio(runs) for runs in prompts)
    axis.annotate(f"worst prompt: {worst:.2f}", (place, worst), xytext=(place, 1.12 * top), ha="center",
                  arrowprops={"arrowstyle": "->", "color": COLOURS[1]}, color=COLOURS[1])
    axis.set_ylim(0, 1.22 * top)
    axis.set_ylabel("times plain (dots: single prompts)")
    axis.grid(axis="x", visible=False)
    return figure


# --- files ---

KINDS = {
    "sweep": (lambda d: "cells" in d and "pairs" in d, {"speedup": draw_speedup, "acceptance": draw_acceptance, "stages": draw_stages}),
    "rows": (lambda d: "rows" in d and "weight_bytes_per_pass" in d, {"rows": draw_rows}),
    "accept": (lambda d: "temperatures" in d and "results" in d, {"positions": draw_positions, "calibration": draw_calibration}),
    "speed": (lambda d: all(isinstance(v, list) and v and "drafted" in v[0] for v in d.values()), {"tasks": draw_tasks}),
}


def kind_of(data):
    return next((kind for kind, (fits, _) in KINDS.items() if isinstance(data, dict) and data and fits(data)), None)


def save(figure, path):
    for ending, metadata in ((".png", {"Software": None}), (".svg", {"Date": None})):
        figure.savefig(f"{path}{ending}", bbox_inches="tight", metadata=metadata)
    pyplot.close(figure)
    print(f"{path}.png {path}.svg")


def draw_file(name, prefix):
    """Every picture that this file holds. Returns how many were drawn."""
    with open(name, encoding="utf-8") as file:
        data = json.load(file)
    kind = kind_of(data)
    if kind is None:
        raise ValueError(f"is no output of {', '.join(KINDS)}")
    drawn = 0
    for picture, draw in KINDS[kind][1].items():
        try:
            save(draw(data), f"{prefix}-{picture}")
            drawn += 1
        except Lacking as lacking:
            print(f"scripts/plot.py: {name}: no picture {picture}: {lacking}", file=sys.stderr)
        except (KeyError, TypeError, IndexError) as error:
            print(f"scripts/plot.py: {name}: no picture {picture}: {kind} output without {error}", file=sys.stderr)
    return drawn


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="JSON of tandem sweep, rows, accept or scripts/speed")
    parser.add_argument("--out", default="plot", metavar="PREFIX", help="of the pictures' names (default: plot)")
    args = parser.parse_args(argv)
    pathlib.Path(args.out).parent.mkdir(parents=True, exist_ok=True)
    pyplot.rcParams.update(STYLE)
    drawn = 0
    for name in args.files:
        try:
            drawn += draw_file(name, args.out)
        except (OSError, ValueError) as error:
            print(f"scripts/plot.py: {name}: {error}", file=sys.stderr)
            return 2
    return 0 if drawn else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
