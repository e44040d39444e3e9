"""The stages of scripts/gpu_check: lists of steps, each a name and a function of its deadline."""
import json
import os
import pathlib
import re
import sys
from typing import NamedTuple

from gpu_compare import compare
from gpu_journal import Cut, Failed, Skipped

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGETS = ("tandem", "kernels_gpu_test", "model_gpu_model_test", "engine_gpu_lossless_test", "make_synthetic_model",
           "compare_logits")
# Whole tiny models; ctest runs them with the unit tests, as they take the emulation too where it is built.
MODEL_TESTS = {"model_gpu_model_test": "tests/model", "engine_gpu_lossless_test": "tests/engine"}
SHARDS = 12          # of the kernel tests under a sanitizer
# Under a sanitizer: calls that tests make fail on purpose are no faults, and the largest sizes take too long.
SANITIZER_OPTIONS = {"memcheck": ["--report-api-errors", "no"], "racecheck": []}
SANITIZER_LEAVES_OUT = "*MatmulOfTheMatricesOfTheModels*"
PROMPT = "Write a function that returns the n-th prime number. Explain every line of it, then test it."
ATTEMPTS_ALONE = 20  # failed tests that are run again by themselves: a fault may break those behind it


class Scale(NamedTuple):
    """Where the stages run their models, and how much of them."""
    backend: str
    shapes: tuple        # of the synthetic models: target, then draft
    tokens: int          # of the answers whose ids are compared
    rows: str            # row counts of the passes that are timed
    repeats: int         # of each of them
    deep: int            # cached tokens under which attention is measured; 0: it is not
    answer_tokens: int   # of the answers that are timed
    left_out: tuple = () # stages that cannot be run there


DEVICE = Scale("cuda", ("1.5b", "0.5b"), 32, "1,2,4,8,16,32,64,512", 9, 4096, 128)
# Without a GPU: the emulation takes a second for what a device does in a millisecond.
REHEARSALS = {"cpu": DEVICE._replace(backend="cpu", shapes=("tiny",), left_out=("build", "conformance", "memcheck", "racecheck")),
              "cuda-simt": Scale("cuda-simt", ("tiny",), 8, "1,16", 1, 0, 8, ("build", "memcheck", "racecheck"))}


class Stages:
    """What every stage knows: the runner, the tools, the build folder, the user's models if any, and the scale."""

    def __init__(self, runner, tools, build, work, models, scale):
        self.runner, self.tools, self.build, self.work = runner, tools, pathlib.Path(build), pathlib.Path(work)
        self.models, self.scale = models, scale
        # Cost tables of these models stay out of the user's.
        self.env = {"XDG_CACHE_HOME": str(self.work / "cache")}

    def command(self, log, arguments, deadline, env=None, **more):
        return self.runner.command(log, arguments, deadline, {**self.env, **(env or {})}, **more)

    def json_of(self, log, arguments, deadline, env=None):
        text = self.command(log, arguments, deadline, env)
        try:
            return json.loads(text)
        except ValueError as fault:
            raise Failed(f"{pathlib.Path(arguments[0]).name} printed no JSON: {fault}", {"output_tail": text[-500:]}) from None

    def tandem(self, log, arguments, deadline, env=None):
        return self.json_of(log, [self.build / "tandem", *arguments], deadline, env)

    def require_backend(self, name):
        """Figures of another backend would say nothing."""
        backend = self.scale.backend
        if name != backend and not (backend == "cpu" and name.startswith("cpu-")):
            raise Failed(f"expected backend {backend}, it ran on {name}")

    # --- build ---

    def build_steps(self, capability):
        return [("configure", lambda deadline: self.configure(capability, deadline)), ("compile", self.compile)]

    def built(self):
        return all(path.exists() for path in [self.build / "tandem", self.generator(), self.comparer(), *self.test_programs().values()])

    def configure(self, capability, deadline):
        arguments = [self.tools["cmake"], "-S", ROOT, "-B", self.build, "-DCMAKE_BUILD_TYPE=Release", "-DTANDEM_CUDA=ON",
                     "-DTANDEM_SIMT=OFF", "-DTANDEM_BUILD_BENCH=OFF", f"-DCMAKE_CUDA_COMPILER={self.tools['nvcc']}",
                     f"-DCMAKE_CUDA_ARCHITECTURES={capability.replace('.', '')}-real"]
        if not (self.build / "CMakeCache.txt").exists():
            arguments += ["-G", "Ninja" if pathlib.Path(self.tools["ninja"]).name == "ninja" else "Unix Makefiles"]
        self.command("configure", arguments, deadline)

    def compile(self, deadline):
        self.command("compile", [self.tools["cmake"], "--build", self.build, "-j", os.cpu_count() or 2, "--target", *TARGETS],
                     deadline)

    # --- conformance ---

    def test_programs(self):
        return {"kernels_gpu_test": self.build / "tests/kernels/gpu/kernels_gpu_test",
                **{name: self.build / folder / name for name, folder in MODEL_TESTS.items()}}

    def conformance_steps(self):
        programs = [(name, lambda deadline, n=name, p=path: self.tests(n, p, deadline)) for name, path in self.test_programs().items()]
        if self.scale.backend != "cuda":
            return [(name, work) for name, work in programs if name in MODEL_TESTS]  # they take the emulation too
        return [("ctest -L gpu lists", self.labelled), *programs]

    def labelled(self, deadline):
        """That the label names the one program below. A process for each of its tests, as ctest starts them, would
        spend the time on making contexts of the device."""
        text = self.command("ctest", [self.tools["ctest"], "--test-dir", self.build, "-L", "gpu", "--show-only=json-v1"], deadline)
        tests = json.loads(text)["tests"]
        programs = sorted({pathlib.Path(test["command"][0]).name for test in tests if test.get("command")})
        if programs != ["kernels_gpu_test"]:
            raise Failed(f"expected the programs kernels_gpu_test behind the label gpu, got {programs}")
        return {"tests": len(tests)}

    def tests(self, name, program, deadline):
        try:
            found = self.gtest(name, program, self.own_tests(), deadline)
        except Failed as fault:
            raise self.alone(name, program, fault, deadline) from None
        if found["tests"] == 0 or found["skipped"]:
            raise Failed(f"{found['tests']} tests, of which {len(found['skipped'])} were skipped: expected all to run on the device",
                         found)
        return found

    def own_tests(self):
        """A rehearsal's build may hold the backend of a device too, whose tests have nothing to run on."""
        if self.scale.backend == "cuda":
            return []
        return [f"--gtest_filter=*/{self.scale.backend.replace('-', '_')}*"]

    def gtest(self, log, program, choice, deadline):
        """Runs a GoogleTest program. Counts and names; throws Failed with them where a test failed."""
        report = self.work / f"{log.replace(' ', '-')}.json"
        report.unlink(missing_ok=True)
        try:
            self.command(log, [program, "--gtest_brief=1", f"--gtest_output=json:{report}", *choice], deadline)
        except Failed as fault:
            data = {**(fault.data or {}), **(read_gtest(report) if report.exists() else {"failed": []})}
            count = f"{len(data['failed'])} tests failed" if data["failed"] else "no test is to blame by its own report"
            raise Failed(f"{fault}: {count}", data) from None
        return read_gtest(report)

    def alone(self, name, program, fault, deadline):
        """Which failed tests fail by themselves as well: after a fault on the device every later call fails too."""
        passed = []
        for test in fault.data["failed"][:ATTEMPTS_ALONE]:
            try:
                self.gtest(f"{name} alone", program, [f"--gtest_filter={test}"], deadline)
                passed.append(test)
            except Failed:
                continue
            except Cut:
                break
        return Failed(str(fault), {**fault.data, "pass_alone": passed})

    # --- models ---

    def generator(self):
        return self.build / "tests/model/make_synthetic_model"

    def comparer(self):
        return self.build / "tests/engine/compare_logits"

    def synthetic(self, shape):
        return self.work / f"synthetic-{shape}.gguf"

    def model_steps(self):
        return [(shape, lambda deadline, s=shape: self.make_model(s, deadline)) for shape in self.scale.shapes]

    def make_model(self, shape, deadline):
        path = self.synthetic(shape)
        fresh = path.with_suffix(".part")
        self.command(f"model {shape}", [self.generator(), shape, fresh], deadline)
        fresh.rename(path)
        return {"bytes": path.stat().st_size}

    # --- ids ---

    def id_steps(self):
        if self.models:
            return [(f"{pathlib.Path(m).name}, {os.path.getsize(m)} bytes", lambda deadline, m=m: self.ids(m, deadline))
                    for m in self.models]
        return [(f"synthetic {s}", lambda deadline, s=s: self.ids(self.synthetic(s), deadline)) for s in self.scale.shapes[::-1]]

    def config(self, name, target, tokens, draft=None):
        path = self.work / f"{name}.yaml"
        drafts = f"draft: {{kind: model, model: {json.dumps(str(draft))}}}" if draft else "draft: {kind: none}"
        path.write_text(f"target: {{model: {json.dumps(str(target))}, context: 1024}}\n{drafts}\n"
                        f"runtime: {{backend: {self.scale.backend}}}\nsampling: {{temperature: 0}}\nprompt: {{chat: false}}\n"
                        f"stop: {{max_tokens: {tokens}}}\n", encoding="utf-8")
        return path

    def ids(self, model, deadline):
        self.require_file(model)
        model = pathlib.Path(model).resolve()
        rows = self.json_of("ids logits", [self.comparer(), "--model", model, "--backend", self.scale.backend,
                                           "--prompt", PROMPT, "--tokens", self.scale.tokens], deadline)
        self.require_backend(rows["backend"])
        # Passes over the prompt as those behind the logits, so that the answer is chosen by the very same ones.
        answer = self.tandem("ids answer", ["generate", "--config", self.config("ids", model, self.scale.tokens), "--set",
                                            f"runtime.prefill_chunk={rows['prefill_chunk']}", "--prompt", PROMPT, "--json", "--quiet"],
                             deadline)
        self.require_backend(answer["settings"]["backend"])
        found = compare(rows, answer["ids"])
        if not found["passed"]:
            raise Failed(found["reason"], found)
        return found

    def require_file(self, model):
        if not pathlib.Path(model).exists():
            raise Skipped(f"{pathlib.Path(model).name} was not made")

    # --- memcheck, racecheck ---

    def sanitizer_steps(self, tool):
        if not self.tools.get("compute-sanitizer"):
            return [(tool, lambda deadline: self.no_sanitizer())]
        return [(f"shard {i} of {SHARDS}", lambda deadline, i=i: self.sanitize(tool, i, deadline)) for i in range(SHARDS)]

    @staticmethod
    def no_sanitizer():
        raise Skipped("compute-sanitizer is missing (it comes with the CUDA toolkit)")

    def sanitize(self, tool, shard, deadline):
        prefix = [self.tools["compute-sanitizer"], "--tool", tool, "--error-exitcode", "9", *SANITIZER_OPTIONS[tool]]
        env = {"GTEST_TOTAL_SHARDS": str(SHARDS), "GTEST_SHARD_INDEX": str(shard)}
        log = f"{tool} {shard}"
        report = self.work / f"{tool}.json"
        report.unlink(missing_ok=True)
        text = self.command(log, [*prefix, self.test_programs()["kernels_gpu_test"], "--gtest_brief=1",
                                  f"--gtest_filter=-{SANITIZER_LEAVES_OUT}", f"--gtest_output=json:{report}"], deadline, env)
        summary = re.findall(r"^========= (.*(?:SUMMARY).*)$", text, re.MULTILINE)
        return {"tests": read_gtest(report)["tests"], "left_out": SANITIZER_LEAVES_OUT, "summary": summary[-1] if summary else None}

    # --- rows ---

    def row_steps(self):
        shapes, backend = self.scale.shapes, self.scale.backend
        steps = [(s, lambda deadline, s=s: self.rows(s, self.scale.rows, {}, deadline)) for s in shapes]
        if backend != "cpu":
            graphs = {"TANDEM_CUDA_GRAPHS": "off"}
            steps.append((f"{shapes[0]} without graphs", lambda deadline: self.rows(shapes[0], "1,16", graphs, deadline)))
        return steps

    def rows(self, shape, counts, env, deadline):
        model = self.synthetic(shape)
        self.require_file(model)
        attention = [] if env or not self.scale.deep else ["--attention-at", self.scale.deep]
        found = self.tandem(f"rows {shape} {'plain' if env else ''}", ["rows", "--model", model.resolve(), "--backend", self.scale.backend,
                            "--rows", counts, "--repeats", self.scale.repeats, *attention, "--json"], deadline, env)
        self.require_backend(found["backend"])
        return found

    # --- generate ---

    def generate_steps(self):
        return [(f"drafts of length {length}", lambda deadline, n=length: self.generate(n, deadline)) for length in ("auto", "2", "6")]

    def generate(self, length, deadline):
        target, draft = self.synthetic(self.scale.shapes[0]), self.synthetic(self.scale.shapes[-1])
        self.require_file(target)
        self.require_file(draft)
        prompts = self.work / "prompts.jsonl"
        rows = [{"id": f"p{i}", "task": "synthetic", "prompt": f"{i}: {PROMPT}", "max_tokens": self.scale.answer_tokens} for i in range(2)]
        prompts.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        out = self.work / f"speed-{length}.json"
        config = self.config("generate", target.resolve(), self.scale.answer_tokens, draft.resolve())
        self.command(f"generate {length}", [sys.executable, ROOT / "scripts/speed", "--binary", self.build / "tandem", "--config", config,
                     "--prompts", prompts, "--set", f"draft.length={length}", "--json", out], deadline)
        return self.speeds(json.loads(out.read_text(encoding="utf-8")))

    def speeds(self, by_task):
        """Figures of scripts/speed's runs. Throws Failed where a drafted text is not the plain one."""
        pairs = [(runs["plain"][0], runs["drafted"][0]) for results in by_task.values() for runs in results]
        for run in sum(map(list, pairs), []):
            self.require_backend(run["settings"]["backend"])
            if run["tpot_seconds"] is None:
                raise Failed("an answer ended with its first token: nothing was timed")
        seconds = {side: sum(p[i]["tpot_seconds"] * (p[i]["generated_tokens"] - 1) for p in pairs) for i, side in enumerate(("plain", "drafted"))}
        tokens = sum(p[0]["generated_tokens"] - 1 for p in pairs)
        tested, accepted = (sum(p[1][key] for p in pairs) for key in ("tested", "accepted"))
        found = {"answers": len(pairs), "plain_tokens_per_second": tokens / seconds["plain"],
                 "drafted_tokens_per_second": tokens / seconds["drafted"], "over_plain": seconds["plain"] / seconds["drafted"],
                 "tested": tested, "accepted": accepted, "steps": sum(p[1]["steps"] for p in pairs),
                 "ttft_seconds": [p[1]["ttft_seconds"] for p in pairs], "stages": [p[1]["seconds"] for p in pairs]}
        differing = sum(plain["ids"] != drafted["ids"] for plain, drafted in pairs)
        if differing:
            raise Failed(f"{differing} of {len(pairs)} drafted texts are not the plain ones", found)
        return found


def read_gtest(path):
    """How many tests a GoogleTest report has, and which failed or were skipped."""
    report = json.loads(path.read_text(encoding="utf-8"))
    tests = [(f"{suite['name']}.{test['name']}", test) for suite in report["testsuites"] for test in suite["testsuite"]
             if test["status"] == "RUN"]
    return {"tests": len(tests), "failed": [name for name, test in tests if test.get("failures")],
            "skipped": [name for name, test in tests if test.get("result") == "SKIPPED"]}
