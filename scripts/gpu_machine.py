"""What scripts/gpu_check needs of a machine: a device, tools and libraries, each missing one by name."""
import os
import pathlib
import shutil
import subprocess

LEAST_CAPABILITY = 8.0
# The packages of scripts/setup that the build needs, each with a header that it brings.
HEADERS = {"libyaml-cpp-dev": "yaml-cpp/yaml.h", "libsentencepiece-dev": "sentencepiece_processor.h",
           "nlohmann-json3-dev": "nlohmann/json.hpp", "libcli11-dev": "CLI/CLI.hpp", "libfmt-dev": "fmt/format.h",
           "libpcre2-dev": "pcre2.h", "libssl-dev": "openssl/evp.h", "libedit-dev": "histedit.h",
           "libgtest-dev": "gtest/gtest.h", "libgmock-dev": "gmock/gmock.h"}
CUDA_BIN = ("/usr/local/cuda/bin",)


class NoDevice(Exception):
    """There is no GPU that can be used, with the reason."""


def find_device():
    """The first device that nvidia-smi lists (of CUDA_VISIBLE_DEVICES, where that is set). Throws NoDevice."""
    if not shutil.which("nvidia-smi"):
        raise NoDevice("nvidia-smi is not on the PATH")
    fields = ("name", "uuid", "compute_cap", "driver_version", "memory.total")
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0]
    if visible:
        command += ["-i", visible]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise NoDevice(f"nvidia-smi: {fault}") from None
    rows = [line.split(", ") for line in done.stdout.splitlines() if line.strip()]
    if done.returncode != 0 or not rows or len(rows[0]) != len(fields):
        words = (done.stdout + done.stderr).strip().splitlines()
        raise NoDevice(words[-1] if words else f"nvidia-smi ended with {done.returncode} and lists nothing")
    device = dict(zip(("name", "uuid", "capability", "driver", "memory_mib"), rows[0]))
    if float(device["capability"]) < LEAST_CAPABILITY:
        raise NoDevice(f"{device['name']} has compute capability {device['capability']}, expected {LEAST_CAPABILITY} or more")
    return device


def find_tool(name):
    """Its path: on the PATH, or where the CUDA toolkit puts it."""
    roots = [os.path.join(os.environ[key], "bin") for key in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(key)]
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join([*roots, *CUDA_BIN]))


def include_folders():
    """Of what lies in a place of its own, which CMAKE_PREFIX_PATH names."""
    prefixes = os.environ.get("CMAKE_PREFIX_PATH", "").replace(os.pathsep, ";").split(";")
    return [str(pathlib.Path(prefix) / "include") for prefix in prefixes if prefix]


def missing_packages(compiler):
    """Packages whose headers the compiler does not find, the paths of CMAKE_PREFIX_PATH included."""
    source = "".join(f"#if __has_include(<{header}>)\nhas {name}\n#endif\n" for name, header in HEADERS.items())
    command = [compiler, "-E", "-P", "-x", "c++", *[f"-I{folder}" for folder in include_folders()], "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    found = {line.removeprefix("has ").replace(" ", "") for line in done.stdout.splitlines() if line.startswith("has ")}
    return [name for name in HEADERS if name not in found]


def find_tools():
    """Paths of the tools by name, `ninja` being make where that is all there is, and a list of what is missing.
    compute-sanitizer may be missing: None then."""
    names = {"nvcc": "nvcc (CUDA toolkit)", "cmake": "cmake", "ctest": "ctest (cmake)", "pkg-config": "pkg-config"}
    tools = {name: find_tool(name) for name in names}
    tools["c++"] = shutil.which(os.environ.get("CXX") or "g++") or shutil.which("c++")
    tools["ninja"] = shutil.which("ninja") or shutil.which("make")
    missing = [text for name, text in names.items() if not tools[name]]
    missing += [] if tools["c++"] else ["g++"]
    missing += [] if tools["ninja"] else ["ninja-build (or make)"]
    if tools["c++"]:
        missing += missing_packages(tools["c++"])
    tools["compute-sanitizer"] = find_tool("compute-sanitizer")
    return tools, missing
