"""An engine for the tests of bench/peers: it answers at once with ids that follow from the prompt.

The setting "broken" cannot be loaded, "mute" dies at its first answer, "other" drafts a text that is not the plain one.
"""
import json
import sys

for line in sys.stdin:
    request = json.loads(line)
    setting = request["setting"]
    reply = {"ok": True}
    if setting == "broken":
        reply = {"ok": False, "error": "ValueError: no such quantisation"}
    elif request["op"] == "load":
        reply["versions"] = {"fake": "1.0"}
    elif setting == "mute":
        print("out of fake memory", file=sys.stderr)
        sys.exit(7)
    else:
        ids = request["ids"] + [7 if setting == "other" else 8] * (request["max_tokens"] - len(request["ids"]))
        reply.update(ids=ids, ttft_seconds=0.5, decode_seconds=0.1 * (len(ids) - 1), steps=2, proposed=8, accepted=4)
    print(json.dumps(reply), flush=True)
