"""Two greedy answers to one prompt, the reference's and the device's: equal up to the first small logit margin?"""
import math

# Mean distance of log-probabilities from F32 that int8 kernels have on real models is 0.03-0.08 (README.md).
MEAN_NOISE_SHARE = 0.5  # of the margin


def compare_ids(reference, device, margin):
    """`reference`, `device`: JSON of `tandem generate` with sampling.logprobs. A dict with `passed` and, where the ids
    part, the place and the reference's margin there: the difference of logits is that of log-probabilities. `margin`:
    the largest that may decide otherwise. Logits are compared up to that place, where both have read the same text."""
    pairs = list(zip(reference["ids"], device["ids"]))
    parted = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
    if parted is None and len(reference["ids"]) != len(device["ids"]):
        parted = len(pairs)
    same = len(pairs) if parted is None else parted
    noise = [abs(a["logprob"] - b["logprob"]) for a, b in zip(reference["logprobs"][:same], device["logprobs"][:same])]
    found = {"tokens": len(reference["ids"]), "equal_tokens": same, "parted_at": parted, "margin": None,
             "largest_margin_allowed": margin, "noise_mean": sum(noise) / len(noise) if noise else None,
             "noise_max": max(noise) if noise else None}
    wrong = []
    if not reference["ids"]:
        wrong.append("the reference said nothing")
    if parted is not None:
        found["margin"] = margin_at(reference, device, parted)
        if found["margin"] is None:
            wrong.append(f"ids part at token {parted}, the device's is none of the reference's best")
        elif found["margin"] > margin:
            wrong.append(f"ids part at token {parted} with a margin of {found['margin']:.3g}, at most {margin:g} may")
    if any(not math.isfinite(x) for x in noise):
        wrong.append("a log-probability is no number")
    elif noise and found["noise_mean"] > MEAN_NOISE_SHARE * margin:
        wrong.append(f"log-probabilities differ by {found['noise_mean']:.3g} on average, at most {MEAN_NOISE_SHARE * margin:g} may")
    found["passed"] = not wrong
    found["reason"] = "; ".join(wrong) or None
    return found


def margin_at(reference, device, place):
    """By how much the reference prefers its token to the device's; None where it does not list that one, or where an
    answer has ended."""
    if place >= min(len(reference["ids"]), len(device["ids"])):
        return None
    chosen = reference["logprobs"][place]
    other = next((t for t in chosen["top"] if t["id"] == device["ids"][place]), None)
    return None if other is None else chosen["logprob"] - other["logprob"]
