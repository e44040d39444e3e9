"""The engines and the settings of them that take turns, and the virtual environment that each engine runs in."""
import dataclasses
import os
import pathlib
import subprocess
import sys
import typing

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Engine:
    """One worker process. `requirements` names a file of requirements/, or is empty: then the runner's own Python serves."""
    script: str
    requirements: str = ""
    build_environment: typing.Mapping = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Side:
    """A setting of an engine: a row of the table. `plain` is the side of the same engine that drafts nothing."""
    name: str
    engine: str
    setting: str
    plain: str
    about: str
    rows: bool = False  # also takes part in T(rows)


ENGINES = {
    "tandem": Engine("serve_tandem.py"),
    "llama.cpp": Engine("serve_llama_cpp.py", "llama_cpp", {"CMAKE_ARGS": "-DGGML_NATIVE=ON -DMTMD_BUILD=OFF"}),
    "ik_llama.cpp": Engine("serve_ik_llama.py", "ik_llama"),
    "OpenVINO": Engine("serve_openvino.py", "openvino"),
    "transformers": Engine("serve_transformers.py", "transformers"),
}

SIDES = {side.name: side for side in (
    Side("tandem-plain", "tandem", "plain", "tandem-plain", "draft.kind none", rows=True),
    Side("tandem-drafts", "tandem", "drafts", "tandem-plain", "the config's drafts"),
    Side("llama.cpp-plain", "llama.cpp", "plain", "llama.cpp-plain", "llama-cpp-python", rows=True),
    Side("llama.cpp-lookup2", "llama.cpp", "lookup2", "llama.cpp-plain",
         "LlamaPromptLookupDecoding of 2 tokens, what the package advises on a CPU"),
    Side("llama.cpp-lookup10", "llama.cpp", "lookup10", "llama.cpp-plain",
         "LlamaPromptLookupDecoding of 10 tokens, the package's default"),
    Side("ik-plain", "ik_llama.cpp", "plain", "ik-plain", "ik-llama-cpp-python", rows=True),
    Side("ik-repack", "ik_llama.cpp", "repack", "ik-repack", "weights repacked at load, as -rtr does", rows=True),
    Side("openvino-plain", "OpenVINO", "plain", "openvino-plain", "OpenVINO GenAI on the GGUF file"),
    Side("openvino-lookup", "OpenVINO", "lookup", "openvino-plain", "prompt lookup, 5 tokens after a match of up to 3"),
    Side("openvino-draft", "OpenVINO", "draft", "openvino-plain", "draft model, 3 tokens"),
    Side("transformers-plain", "transformers", "plain", "transformers-plain", "F32 weights made from the GGUF file"),
    Side("transformers-assisted", "transformers", "assisted", "transformers-plain", "assisted generation with the draft"),
)}


class InstallError(Exception):
    """An engine's packages could not be installed; the text is the installer's last line."""


def python_of(engine, root, say):
    """Python of the engine's environment under `root`, which is made or brought up to the pinned versions first."""
    if not engine.requirements:
        return sys.executable
    requirements = HERE / "requirements" / f"{engine.requirements}.txt"
    place = root / engine.requirements
    python, stamp = place / "bin/python", place / "installed.txt"
    if stamp.is_file() and stamp.read_text() == requirements.read_text():
        return str(python)
    say(f"installing {', '.join(requirements.read_text().split())}")
    commands = [] if python.exists() else [[sys.executable, "-m", "venv", str(place)]]
    commands.append([str(python), "-m", "pip", "install", "--quiet", "-r", str(requirements)])
    for command in commands:
        done = subprocess.run(command, env={**os.environ, **engine.build_environment}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise InstallError(done.stdout.strip().split("\n")[-1] or f"{command[0]} ended with {done.returncode}")
    stamp.write_text(requirements.read_text())
    return str(python)


def command_of(engine, root, say, arguments=()):
    """Command line of the engine's worker."""
    return [python_of(engine, root, say), "-B", str(HERE / "workers" / engine.script), *arguments]
