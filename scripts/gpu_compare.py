"""Does a backend say what the reference says? Its logits along the reference's greedy answer, and the ids of its own."""
import math

# What no error of the backend's logits may exceed, in largest errors of the CPU's kernels on the same rows: those are
# held to bounds derived from their operands by the unit tests, and round as coarsely as the backend's or more (one scale
# for 32 inputs of a product, or for 256). Of two noises of one size, the largest of N values exceeds twice the largest of
# N of the other with a probability of about N^-3: with normal tails exp(-x^2 / 2), which is 1/N at the one, is N^-4 at
# the other.
TIMES_YARDSTICK = 2


def compare(rows, ids):
    """`rows`: JSON of compare_logits; `ids`: of the backend's own greedy answer to the same prompt. A dict with `passed`,
    `reason` and the figures behind them. Errors, and margins of the reference's best over its second, are in logits."""
    places = [{key: math.inf if value is None else value for key, value in place.items()} for place in rows["places"]]
    yardstick, error = (max(place[key] for place in places) for key in ("yardstick_error", "backend_error"))
    bound = TIMES_YARDSTICK * yardstick
    same = next((i for i, place in enumerate(places) if i >= len(ids) or ids[i] != place["id"]), len(places))
    reasons = [*faults_of_logits(places, bound), *faults_of_ids(places, ids, same, 2 * bound)]
    return {"passed": not reasons, "reason": "; ".join(reasons) or None, "yardstick": rows["yardstick"],
            "yardstick_error": number(yardstick), "backend_error": number(error), "bound": number(bound),
            "prefill_chunk": rows["prefill_chunk"], "tokens": len(places), "equal_tokens": same,
            "margin_where_parted": number(places[same]["margin"]) if same < len(places) else None,
            "tokens_with_wide_margins": sum(place["margin"] > 2 * bound for place in places)}


def faults_of_logits(places, bound):
    if not math.isfinite(bound):
        return ["a logit of the CPU is no number"]
    wrong = next(((i, place["backend_error"]) for i, place in enumerate(places) if place["backend_error"] > bound), None)
    if wrong is None:
        return []
    if not math.isfinite(wrong[1]):
        return [f"a logit that chooses token {wrong[0]} is no number"]
    return [f"a logit that chooses token {wrong[0]} is {wrong[1]:.3g} from the reference's, at most {bound:.3g} is allowed"]


def faults_of_ids(places, ids, same, widest):
    """`same`: how many ids are the reference's. Up to the next, the backend has read what its logits here were taken
    behind, so it chooses by them; and where the margin is above `widest` = twice the bound, as the reference does."""
    for i, place in enumerate(places[:same + 1]):
        if i >= len(ids):
            return [f"the answer ends before token {i}"]
        if ids[i] != place["backend_id"]:
            return [f"token {i} is {ids[i]}, but its logits choose {place['backend_id']}"]
    if same < len(places) and places[same]["margin"] > widest:
        return [f"ids part at token {same}, where the margin is {places[same]['margin']:.3g}, above {widest:.3g}"]
    return []


def number(value):
    return value if math.isfinite(value) else None
