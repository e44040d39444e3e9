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

import plot_style
from plot_style import COLOURS, apart, draw_points, legend_below, new_figure, pair_title, panels_figure

STAGES = {
    "prefill": "#bbbbbb",
    "draft": "#e69f00",
    "verify": "#0072b2",
    "sample": "#009e73",
    "rollback": "#cc79a7",
    "other": "#444444",
}
MOST_BARS = 14


class Lacking(Exception):
    """A file holds nothing for one picture; the message says what it lacks."""


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


def all_series(cells, sweep):
    return sorted({series_name(cell, sweep) for cell in cells})


def length_order(length):
    return math.inf if length == "auto" else length


def drafting_cells(sweep):
    return [cell for cell in sweep["cells"] if cell["kind"] != "none" and cell["speedup"] is not None]


def draw_speedup(sweep):
    drafting = drafting_cells(sweep)
    if not drafting:
        raise Lacking("no cell with a speed-up")
    plain = [cell for cell in sweep["cells"] if cell["kind"] == "none" and cell["speedup"] is not None]
    lengths = sorted({cell["length"] for cell in drafting + plain}, key=length_order)
    title = f"Speed-up over plain decoding\n{pair_title(sweep['settings'])}"
    figure, axes = panels_figure(title, temperatures(sweep), 4.8)
    series = all_series(drafting, sweep)
    for axis, temperature in zip(axes, temperatures(sweep)):
        axis.axhline(1, color="#555555", linewidth=1, linestyle="--")
        for number, name in enumerate(series):
            points = [c for c in drafting if c["temperature"] == temperature and series_name(c, sweep) == name]
            draw_lengths(axis, number, points, lengths, apart(number, len(series), 0.3), name)
        for cell in plain:
            if cell["temperature"] == temperature:
                ends = [(cell["speedup_low"], cell["speedup_high"])]
                look = {"fmt": "x", "color": "#555555", "label": "plain against itself: noise"}
                draw_points(axis, 0, [lengths.index(cell["length"])], [cell["speedup"]], ends, **look)
        axis.set_xticks(range(len(lengths)), [str(length) for length in lengths])
        axis.set_xlabel("draft length (tokens proposed a step)")
    lowest = min(cell["speedup_low"] or cell["speedup"] for cell in drafting + plain)
    highest = max(cell["speedup_high"] or cell["speedup"] for cell in drafting + plain)
    axes[0].set_ylim(0.5 if lowest > 0.55 else 0, 1.05 * highest)
    axes[0].set_ylabel(f"times plain ({100 * sweep['settings']['confidence']:g} % intervals)")
    legend_below(figure, axes)
    return figure


def draw_lengths(axis, number, points, lengths, shift, name):
    """Fixed lengths are joined; auto stands alone."""
    points = sorted(points, key=lambda cell: length_order(cell["length"]))
    places = [lengths.index(cell["length"]) + shift for cell in points]
    values = [cell["speedup"] for cell in points]
    ends = [(cell["speedup_low"], cell["speedup_high"]) for cell in points]
    draw_points(axis, number, places, values, ends, label=name, markersize=6)
    fixed = [(place, value) for place, value, cell in zip(places, values, points) if cell["length"] != "auto"]
    if fixed:
        axis.plot(*zip(*fixed), color=COLOURS[number % len(COLOURS)], linewidth=1.2)


def longest_cells(cells, sweep):
    """Of each line the cell of the longest fixed length: it alone says something of every position."""
    chosen = {}
    for cell in cells:
        best = chosen.setdefault(series_name(cell, sweep), cell)
        if cell["length"] != "auto" and (best["length"] == "auto" or cell["length"] > best["length"]):
            chosen[series_name(cell, sweep)] = cell
    return chosen


def draw_acceptance(sweep):
    cells = [cell for cell in drafting_cells(sweep) if cell["drafted"]["tested"]]
    if not cells:
        raise Lacking("no cell whose drafts were tested")
    title = f"Acceptance by position in the draft\n{pair_title(sweep['settings'])}"
    figure, axes = panels_figure(title, temperatures(sweep), 4.6)
    series = all_series(cells, sweep)
    for axis, temperature in zip(axes, temperatures(sweep)):
        chosen = longest_cells([cell for cell in cells if cell["temperature"] == temperature], sweep)
        for name, cell in sorted(chosen.items()):
            number = series.index(name)
            run = cell["drafted"]
            counts = enumerate(zip(run["accepted_by_position"], run["tested_by_position"]), 1)
            points = [(place, accepted, tested) for place, (accepted, tested) in counts if tested]
            places = [place + apart(number, len(series), 0.4) for place, _, _ in points]
            rates = [accepted / tested for _, accepted, tested in points]
            ends = [wilson(accepted, tested) for _, accepted, tested in points]
            label = f"{name}, length {cell['length']}"
            draw_points(axis, number, places, rates, ends, "-", label=label, elinewidth=0.8)
        finish_acceptance(axis)
    axes[0].set_ylabel("accepted of tested there (95 % intervals)")
    legend_below(figure, axes, 2)
    return figure


def finish_acceptance(axis):
    axis.set_ylim(0, 1.03)
    axis.set_xlabel("position in the draft")
    axis.xaxis.get_major_locator().set_params(integer=True)


def wilson(accepted, tested):
    """The ends of Wilson's 95 % interval of a rate."""
    z, rate = 1.96, accepted / tested
    middle = (rate + z * z / (2 * tested)) / (1 + z * z / tested)
    half = z * math.sqrt(rate * (1 - rate) / tested + z * z / (4 * tested * tested)) / (1 + z * z / tested)
    return middle - half, middle + half


def draw_stages(sweep):
    """In units of the plain runs next to each drafted one: the machine may have been faster for one cell than another.

    The first temperature only; the fastest MOST_BARS cells.
    """
    temperature = temperatures(sweep)[0]
    cells = [cell for cell in drafting_cells(sweep) if cell["temperature"] == temperature]
    if not cells:
        raise Lacking("no cell with a speed-up")
    cells = sorted(cells, key=lambda cell: -cell["speedup"])[:MOST_BARS]
    bars = [("plain", cells[0]["plain"], cells[0]["plain"])]
    bars += [(f"{series_name(cell, sweep)}, length {cell['length']}", cell["drafted"], cell["plain"]) for cell in cells]
    title = f"Where the time goes, temperature {temperature:g}\n{pair_title(sweep['settings'])}"
    figure, (axis,) = new_figure(title, 8.2, 1.9 + 0.36 * len(bars))
    units = [plain["seconds"]["wall"] / plain["tokens"] * run["tokens"] for _, run, plain in bars]
    left = [0.0] * len(bars)
    for stage, colour in STAGES.items():
        widths = [run["seconds"][stage] / unit for (_, run, _), unit in zip(bars, units)]
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
    # A device that does not tell the peak of its memory has no limit to show.
    limits = [1e3 * point["seconds_median"] / point["over_limit"] for point in points if point["over_limit"]]
    machine = f"{found['backend']}, {found['threads']} threads"
    title = f"Time of a pass by its rows\n{plot_style.model_name(found['model'])}, {machine}"
    figure, (axis,) = new_figure(title)
    logarithmic = max(counts) > 16 * min(counts)
    axis.plot(counts, times, "o-", color=COLOURS[0], label="measured (median)")
    if limits:
        axis.plot(counts, limits, "--", color=COLOURS[1], label="limit: memory, or multiplies")
    if logarithmic:
        axis.set_xscale("log", base=2)
        axis.set_yscale("log", base=2)
        axis.yaxis.set_major_formatter("{x:g}")
    else:
        axis.set_ylim(bottom=0)
    for count, time in zip(counts, times):
        ground = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
        look = {"textcoords": "offset points", "xytext": (0, -16), "ha": "center", "fontsize": 9, "bbox": ground}
        axis.annotate(f"{time / times[0]:.2f}x", (count, time), **look)
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
    meanings = (("conditional", "-", "once it is reached"), ("unconditional", ":", "of all drafts there"))
    for number, group in enumerate(groups):
        points = [point for point in group["positions"] if point["tested"]]
        for key, line, meaning in meanings:
            shift = 0.12 if key == "unconditional" else 0
            places, rates = [point["position"] + shift for point in points], [point[key] for point in points]
            label = f"T {group['temperature']:g}, {meaning}"
            draw_points(axis, number, places, rates, [point[f"{key}_interval"] for point in points], line, label=label)
    finish_acceptance(axis)
    axis.set_ylabel("accepted (95 % intervals)")
    legend_below(figure, [axis], 2)
    return figure


def draw_calibration(found):
    groups = found["temperatures"]
    lines = [(group["temperature"], source) for group in groups for source in group["sources"] if source["bins"]]
    if not lines:
        raise Lacking("no bins of confidence")
    title = f"Confidence of drafts against their acceptance\n{pair_title(found['settings'])}"
    figure, (axis,) = new_figure(title, 6.4, 5.6)
    axis.plot([0, 1], [0, 1], "--", color="#555555", linewidth=1, label="as sure as right")
    for number, (temperature, source) in enumerate(lines):
        bins = source["bins"]
        confidences, rates = [b["mean_confidence"] for b in bins], [b["acceptance_rate"] for b in bins]
        label = f"{source['source']} drafts, T {temperature:g}"
        draw_points(axis, number, confidences, rates, [b["acceptance_interval"] for b in bins], "-", label=label)
    axis.set_xlim(0, 1.02)
    axis.set_ylim(0, 1.02)
    axis.set_aspect("equal")
    axis.set_xlabel("mean confidence of the bin")
    axis.set_ylabel("accepted of tested (95 % intervals)")
    legend_below(figure, [axis], 2)
    return figure


# --- from scripts/speed ---


def seconds_a_token(runs):
    return statistics.median(run["tpot_seconds"] for run in runs)


def prompt_ratio(runs):
    return seconds_a_token(runs["plain"]) / seconds_a_token(runs["drafted"])


def total_ratio(prompts):
    """As scripts/speed prints it: all tokens of a side over the time that they took."""

    def rate(side):
        tokens = [runs[side][0]["generated_tokens"] for runs in prompts]
        return sum(tokens) / sum(seconds_a_token(runs[side]) * count for runs, count in zip(prompts, tokens))

    return rate("drafted") / rate("plain")


def draw_tasks(found):
    prompts = [runs for rows in found.values() for runs in rows]
    if not prompts:
        raise Lacking("no runs")
    ratios = [*map(total_ratio, found.values()), total_ratio(prompts)]
    title = f"Speed with drafts, by task\n{pair_title(prompts[0]['drafted'][0]['settings'])}"
    figure, (axis,) = new_figure(title, 7.6, 4.6)
    axis.bar([*found, "all"], ratios, color=[COLOURS[0]] * len(found) + [COLOURS[1]], width=0.65)
    axis.axhline(1, color="#555555", linewidth=1, linestyle="--")
    for place, ratio in enumerate(ratios):
        axis.annotate(f"{ratio:.2f}", (place, 0.08), ha="center", color="white", fontweight="bold")
    dots = [(prompt_ratio(runs), place) for place, rows in enumerate(found.values()) for runs in rows]
    heights, places = zip(*dots)
    axis.plot(places, heights, "o", markersize=4, color="white", markeredgecolor="black", label="single prompts")
    worst, place = min(dots)
    look = {"markersize": 8, "color": COLOURS[1], "markeredgecolor": "black", "linestyle": "none"}
    axis.plot([place], [worst], "v", label=f"worst prompt: {worst:.2f}", **look)
    axis.legend(loc="upper right")
    axis.set_ylabel("times plain")
    axis.grid(axis="x", visible=False)
    return figure


# --- files ---

# What tells a file's kind, and its pictures.
KINDS = {
    "sweep": (
        lambda data: "cells" in data and "pairs" in data,
        {"speedup": draw_speedup, "acceptance": draw_acceptance, "stages": draw_stages},
    ),
    "rows": (lambda data: "rows" in data and "weight_bytes_per_pass" in data, {"rows": draw_rows}),
    "accept": (
        lambda data: "temperatures" in data and "results" in data,
        {"positions": draw_positions, "calibration": draw_calibration},
    ),
    "speed": (
        lambda data: all(isinstance(rows, list) and rows and "drafted" in rows[0] for rows in data.values()),
        {"tasks": draw_tasks},
    ),
}


def kind_of(data):
    return next((kind for kind, (fits, _) in KINDS.items() if isinstance(data, dict) and data and fits(data)), None)


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
            plot_style.save(draw(data), f"{prefix}-{picture}")
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
