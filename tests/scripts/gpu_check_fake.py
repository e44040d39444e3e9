"""The outside tools of scripts/gpu_check, and the programs that its build makes: which one is told by the name that this
file is called by. $FAKE names a folder: `calls` gets a line a call, `plan.json` says what goes wrong."""

import json
import os
import pathlib
import shutil
import sys
import time

FOLDER = pathlib.Path(os.environ["FAKE"])
NAME, ARGUMENTS = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
PLAN = json.loads((FOLDER / "plan.json").read_text())
PROGRAMS = ("tandem", "tests/model/make_synthetic_model", "tests/kernels/gpu/kernels_gpu_test", "tests/model/model_gpu_model_test",
            "tests/engine/engine_gpu_lossless_test", "tests/engine/compare_logits")


def option(name):
    return ARGUMENTS[ARGUMENTS.index(name) + 1] if name in ARGUMENTS else None


def settings():
    pairs = [ARGUMENTS[i + 1].split("=", 1) for i, a in enumerate(ARGUMENTS) if a == "--set"]
    return dict(pairs)


def nvidia_smi():
    if "device" not in PLAN:
        print("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
        sys.exit(9)
    print(PLAN["device"])


def cmake():
    if "--build" not in ARGUMENTS:
        return
    build = pathlib.Path(option("--build"))
    for program in PROGRAMS:
        (build / program).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(__file__, build / program)


def ctest():
    print(json.dumps({"tests": [{"name": "A.B", "command": ["/b/kernels_gpu_test", "--gtest_filter=A.B"]}]}))


def gtest():
    failing, skipping = PLAN.get("failing", []), PLAN.get("skipping", [])
    chosen = next((a.split("=", 1)[1] for a in ARGUMENTS if a.startswith("--gtest_filter=")), None)
    names = [name for name in ("A.B", "A.C") if chosen in (None, name) or chosen.startswith("-")]
    tests = []
    for name in names:
        test = {"name": name.split(".")[1], "status": "RUN", "result": "SKIPPED" if name in skipping else "COMPLETED"}
        # "*": fails beside others only.
        if name in failing or (chosen != name and name + "*" in failing):
            test["failures"] = [{"failure": "no"}]
        tests.append(test)
    path = next(a.split(":", 1)[1] for a in ARGUMENTS if a.startswith("--gtest_output="))
    pathlib.Path(path).write_text(json.dumps({"testsuites": [{"name": "A", "testsuite": tests}]}))
    return 1 if any("failures" in test for test in tests) else 0


def sanitizer():
    program = next(i for i, argument in enumerate(ARGUMENTS) if argument.startswith("/"))
    os.execv(ARGUMENTS[program], ARGUMENTS[program:])


def answer():
    ids = PLAN.get("ids", [7, 8, 9])
    drafted = settings().get("draft.kind") != "none" and "draft.length" in settings()
    if drafted:
        ids = PLAN.get("drafted_ids", ids)
    return {"ids": ids, "tpot_seconds": 0.01 if drafted else 0.02,
            "ttft_seconds": 0.5, "generated_tokens": len(ids), "tested": 4, "accepted": 3, "steps": 2, "seconds": {"wall": 1.0},
            "settings": {"backend": PLAN.get("backend", "cuda")}}


def compare_logits():
    errors = PLAN.get("errors", [0.02, 0.02, 0.02])
    places = [{"id": i, "margin": margin, "backend_id": own, "backend_error": error, "yardstick_error": 0.03}
              for i, own, margin, error in zip((7, 8, 9), PLAN.get("ids", (7, 8, 9)), (1, 0.1, 1), errors)]
    print(json.dumps({"backend": option("--backend"), "yardstick": "cpu-avx2", "prefill_chunk": 64, "places": places}))


def tandem():
    if ARGUMENTS[0] == "rows":
        return print(json.dumps({"backend": PLAN.get("backend", "cuda"), "device_peak_bytes_per_second": 4.8e12,
                                 "graphs": os.environ.get("TANDEM_CUDA_GRAPHS", "on"), "rows": [{"rows": 1, "weight_bytes_per_second": 1e12}]}))
    found = answer()
    return print(json.dumps({"results": [found, found]} if "--prompts" in ARGUMENTS else found))


def main():
    key = f"{NAME} {ARGUMENTS[0] if ARGUMENTS else ''}".strip()
    with open(FOLDER / "calls", "a", encoding="utf-8") as file:
        file.write(" ".join([NAME, *ARGUMENTS]) + "\n")
    with open(FOLDER / "pids", "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    for start, seconds in PLAN.get("slow", {}).items():
        time.sleep(seconds if key.startswith(start) else 0)
    for start in PLAN.get("ends", []):
        if key.startswith(start):
            print("fault: the fake was told to fail", file=sys.stderr)
            return 7
    does = {"nvidia-smi": nvidia_smi, "cmake": cmake, "ctest": ctest, "compute-sanitizer": sanitizer, "tandem": tandem, "compare_logits": compare_logits,
            "make_synthetic_model": lambda: shutil.copy(__file__, ARGUMENTS[1]) and None}
    return (gtest if NAME.endswith("_test") else does.get(NAME, lambda: print(f"{NAME} 1.0")))()


if __name__ == "__main__":
    sys.exit(main())
