"""The results of a run: NAME.md to read, NAME.json and NAME.csv to go on with."""
import datetime

import table
from measure import QUIET_SHARE, TRIES

TURN_COLUMNS = ["kind", "repeat", "key", "side", "tokens", "ttft_seconds", "decode_seconds", "turn_seconds", "steps",
                "proposed", "tested", "accepted", "tries", "idle_cpu_seconds", "others_cpu_seconds", "error"]


def standing(turns, folders):
    """The turns that stand: the last of each place. Folders of this machine are left out of what engines said."""
    places = {}
    for turn in turns:
        error = turn.get("error")
        for folder in folders if error else ():
            error = error.replace(f"{folder}/", "")
        places[turn["key"], turn["repeat"], turn["side"]] = {**turn, "error": error} if error else turn
    return list(places.values())


def write(journal, sides, kind, base, folders):
    """Writes the results beside `base` and returns the tables as text and the sides that gave no answer at all. `kind`
    of the turns is "turn" or "rows"; `folders` are those that no text may name."""
    head, turns = journal.records[0], standing(journal.of(kind), folders)
    versions = {key: value for record in journal.of("loaded") for key, value in record["versions"].items()}
    asked = {record["key"]: record for record in journal.of("prompt")}
    if kind == "rows":
        text, summary = table.rows_table(sides, turns, head["rows"]), None
    else:
        summary = table.summarize(sides, turns, {key: record["task"] for key, record in asked.items()},
                                  {key: len(record["ids"]) for key, record in asked.items()})
        text = table.speed_tables(summary)
        table.write_turns(base.with_suffix(".csv"), turns, TURN_COLUMNS)
    circumstances = circumstances_of(turns)
    facts = "\n".join(f"- {fact}" for fact in facts_of(head, versions, circumstances))
    base.with_suffix(".md").write_text(f"# {base.name}\n\n{facts}\n\n{text}\n", encoding="utf-8")
    table.write_json(base.with_suffix(".json"), {"run": head, "versions": versions, "circumstances": circumstances,
                                                 "sides": summary, "rows": turns if kind == "rows" else None})
    answered = {turn["side"] for turn in turns if "error" not in turn}
    return text, [side.name for side in sides if side.name not in answered]


def circumstances_of(turns):
    """When the turns were taken, and how much else ran on the machine meanwhile."""
    timed = [turn for turn in turns if "error" not in turn]
    return {
        "date": datetime.datetime.fromtimestamp(turns[0]["time"], datetime.timezone.utc).date().isoformat(),
        "turns": len(timed),
        "idle_share": max((turn["idle_cpu_seconds"] / turn["turn_seconds"] for turn in timed), default=0),
        "disturbed": sum(turn["others_cpu_seconds"] > QUIET_SHARE * turn["turn_seconds"] for turn in timed),
    }


def facts_of(head, versions, circumstances):
    pages = "asked for on behalf of the other engines" if head["huge_pages"] else "as each engine asks for them"
    return [
        f"Date: {circumstances['date']}",
        f"Command: `{head['command']}`",
        f"Machine: {head['machine']}; {head['threads']} threads; huge pages {pages}",
        f"Models: {head['target']}, draft {head['draft']}; tandem at {head['tandem_commit']} with {head['config']}",
        "Versions: " + ", ".join(f"{name} {version}" for name, version in sorted(versions.items())),
        f"Waiting workers used at most {100 * circumstances['idle_share']:.1f} % of one core during another's turn",
        f"Turns during which something else on the machine used over {100 * QUIET_SHARE:.0f} % of a core, after up to "
        f"{TRIES} tries: {circumstances['disturbed']} of {circumstances['turns']}",
    ]
