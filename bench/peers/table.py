"""Figures and tables from the turns of a run.

A rate is tokens after the first / seconds from the first to the last, added up over prompts; seconds of a prompt are the
median of its repeats. A ratio compares two sides over the prompts that both answered. Its interval holds 95 % of what
resampled prompts give (pairs stay together), so it says how much the choice of prompts matters, not the machine.
"""
import csv
import json
import random
import statistics

RESAMPLES, SEED = 2000, 1


def decoded(turn):
    """Tokens after the first, or after those that a drafting engine gave together with it."""
    return len(turn["ids"]) - turn.get("first_tokens", 1)


class Answers:
    """The good turns of one side, by prompt; `errors` are the reasons of the others."""

    def __init__(self, records):
        last = {(record["key"], record["repeat"]): record for record in records}
        self.errors = sorted({record["error"] for record in last.values() if "error" in record})
        self.prompts = {}
        for (key, _), record in sorted(last.items()):
            if "error" not in record:
                self.prompts.setdefault(key, []).append(record)
        self.turns = [record for repeats in self.prompts.values() for record in repeats]

    def tokens(self, key):
        return decoded(self.prompts[key][0])

    def seconds(self, key):
        return statistics.median(record["decode_seconds"] for record in self.prompts[key])

    def timed(self):
        """Prompts whose answer is long enough to have a rate."""
        return [key for key in self.prompts if self.tokens(key) > 0 and self.seconds(key) > 0]

    def rate(self, keys):
        """Tokens a second while decoding, or None when no key was timed."""
        seconds = sum(self.seconds(key) for key in keys)
        return sum(self.tokens(key) for key in keys) / seconds if seconds else None

    def total(self, field):
        """Sum over the turns, or None when the engine does not tell it."""
        values = [record.get(field) for record in self.turns]
        return sum(values) if values and None not in values else None


def ratio(side, base):
    """{"ratio", "low", "high"} of two sides' rates over their common prompts, or None."""
    common = [key for key in side.timed() if key in base.timed()]
    if not common:
        return None
    dice = random.Random(SEED)
    drawn = [dice.choices(common, k=len(common)) for _ in range(RESAMPLES)]
    ratios = sorted(side.rate(keys) / base.rate(keys) for keys in drawn)
    return {"ratio": side.rate(common) / base.rate(common), "low": ratios[int(0.025 * RESAMPLES)],
            "high": ratios[int(0.975 * RESAMPLES) - 1]}


def same_texts(side, base):
    """(equal, compared): prompts of which every repeat gave the very ids of the other side's first answer."""
    common = [key for key in side.prompts if key in base.prompts]
    equal = [key for key in common if all(turn["ids"] == base.prompts[key][0]["ids"] for turn in side.prompts[key])]
    return len(equal), len(common)


def summarize(sides, turns, tasks, prompt_tokens):
    """One dictionary a side. `tasks` and `prompt_tokens` map a prompt's id to its task and its length."""
    answers = {side.name: Answers([turn for turn in turns if turn["side"] == side.name]) for side in sides}
    return [one_side(side, answers, tasks, prompt_tokens) for side in sides]


def one_side(side, answers, tasks, prompt_tokens):
    mine, plain, tandem = answers[side.name], answers.get(side.plain), answers.get("tandem-plain")
    drafts = side.plain != side.name
    prefill = sum(statistics.median(turn["ttft_seconds"] for turn in repeats) for repeats in mine.prompts.values())
    proposed, accepted, steps = (mine.total(field) if drafts else None for field in ("proposed", "accepted", "steps"))
    after_first = sum(decoded(turn) for turn in mine.turns)
    by_task = {task: mine.rate([key for key in mine.timed() if tasks[key] == task]) for task in dict.fromkeys(tasks.values())}
    return {
        "side": side.name, "about": side.about, "prompts": len(mine.prompts), "errors": mine.errors,
        "tokens_per_second": mine.rate(mine.timed()),
        "over_tandem_plain": ratio(mine, tandem) if tandem else None,
        "over_own_plain": ratio(mine, plain) if drafts and plain else None,
        "ttft_seconds": statistics.median(turn["ttft_seconds"] for turn in mine.turns) if mine.turns else None,
        "prefill_tokens_per_second": sum(prompt_tokens[key] for key in mine.prompts) / prefill if prefill else None,
        "accepted_of_proposed": accepted / proposed if proposed and accepted is not None else None,
        "tokens_per_step": after_first / steps if steps else None,
        "equal_to_own_plain": same_texts(mine, plain) if drafts and plain else None,
        "equal_to_tandem_plain": same_texts(mine, tandem) if tandem else None,
        "by_task": by_task,
    }


def number(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"


def interval(value):
    return "-" if value is None else f"{value['ratio']:.2f} ({value['low']:.2f}-{value['high']:.2f})"


def share(value):
    return "-" if value is None or not value[1] else f"{value[0]} of {value[1]}"


def markdown(head, rows):
    """A Markdown table; the first column is text, the others are figures."""
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def speed_tables(summary):
    """Markdown: a row a side, then tokens a second by task, then why a side has no figures."""
    head = ["side", "tokens/s", "over tandem plain", "over own plain", "TTFT s", "prefill tokens/s", "accepted of proposed",
            "tokens a step", "text = own plain", "text = tandem plain"]
    main = markdown(head, [[
        row["side"], number(row["tokens_per_second"], 1), interval(row["over_tandem_plain"]), interval(row["over_own_plain"]),
        number(row["ttft_seconds"], 2), number(row["prefill_tokens_per_second"], 0), number(row["accepted_of_proposed"], 2),
        number(row["tokens_per_step"], 2), share(row["equal_to_own_plain"]), share(row["equal_to_tandem_plain"])]
        for row in summary])
    tasks = list(summary[0]["by_task"])
    by_task = markdown(["tokens/s by task", *tasks],
                       [[row["side"], *(number(row["by_task"][task], 1) for task in tasks)] for row in summary])
    faults = [f"- {row['side']}: {error}" for row in summary for error in row["errors"]]
    return "\n\n".join([main, by_task] + (["Turns without an answer:\n\n" + "\n".join(faults)] if faults else []))


def rows_table(sides, turns, counts):
    """Markdown of T(rows): the median pass in ms and, behind it, the pass over that of one row; rows that failed say why."""
    lines, faults = [], []
    for side in sides:
        good = [turn["seconds"] for turn in turns if turn["side"] == side.name and "error" not in turn]
        faults += sorted({f"- {side.name}: {turn['error']}" for turn in turns if turn["side"] == side.name and "error" in turn})
        medians = [statistics.median(column) for column in zip(*good)] or [None] * len(counts)
        over = ["-" if median is None else f"{1e3 * median:.1f} ({median / medians[0]:.2f})" for median in medians]
        lines.append([side.name, *over])
    text = markdown(["ms a pass (over the first)", *(f"{count} rows" for count in counts)], lines)
    return text + ("\n\nTurns without an answer:\n\n" + "\n".join(faults) if faults else "")


def write_turns(path, turns, columns):
    """CSV with a line a turn; lists are left out, their length stands for the tokens."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        for turn in turns:
            writer.writerow({**turn, "tokens": len(turn["ids"]) if "ids" in turn else None})


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
