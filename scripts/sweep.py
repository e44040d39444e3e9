#!/usr/bin/env python3
"""Runs `tandem sweep` over several configs, models or machines and puts the rows of all together in one CSV.

Every combination of a --config with the values of each --vary is a job: one `tandem sweep` with files of its own
(PREFIX-001.csv, .json, .jsonl, .yaml ...). What follows -- goes to each of them. PREFIX.csv holds the rows of all jobs
under the header of `tandem sweep`; its columns config, set, target and draft say which job a row is of.

Without --address the jobs run here, one after the other, and a second call goes on where the first one stopped.

With --address they run on the machines of a Ray cluster (https://docs.ray.io, `python3 -m pip install ray`), one at a
time on each, so that no job disturbs another; binary, configs, prompts and models must lie at the same paths
everywhere. A job that was done is kept; one that was cut short there begins anew. --every-machine runs each job on each
machine and labels its rows with the machine's address.

example: scripts/sweep.py --config configs/quickstart.yaml --prompts bench/prompts/speed.jsonl --out grid \\
             --vary draft.quantize=none,q4_0 --vary runtime.threads=1,2 -- --kinds model,hybrid --lengths auto,4
"""
import argparse
import collections
import csv
import ctypes
import dataclasses
import itertools
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CANCELLED = 130  # exit code of tandem after Ctrl-C


class UsageError(Exception):
    """Something the caller has to change; the message says what."""


@dataclasses.dataclass
class Job:
    """One `tandem sweep`."""

    name: str  # of its files, after the prefix
    command: list  # without --out and --resume
    machine: str = ""  # node id in the Ray cluster; empty: any

    def headline(self):
        return f"== {self.name}: {' '.join(self.command)}"


def arguments(argv):
    own, rest = (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "build/release/tandem"))
    parser.add_argument("--config", dest="configs", action="append", required=True, metavar="FILE", help="repeatable")
    parser.add_argument("--prompts", required=True, metavar="FILE")
    parser.add_argument("--vary", action="append", default=[], metavar="KEY=V1,V2", help="of a config key; repeatable")
    parser.add_argument("--out", required=True, metavar="PREFIX")
    parser.add_argument("--address", help="of a Ray cluster: auto, or host:port")
    parser.add_argument("--every-machine", action="store_true", help="with --address: each job on each machine")
    args = parser.parse_args(own)
    if args.every_machine and not args.address:
        parser.error("--every-machine needs --address")
    args.rest = rest
    return args


def axis(text):
    """The assignments that one --vary stands for."""
    key, equals, values = text.partition("=")
    if not key or not equals or not values:
        raise UsageError(f"--vary {text}: expected KEY=VALUE,VALUE")
    return [f"{key}={value}" for value in values.split(",")]


def jobs_of(args):
    """Every config with every combination of the varied values, the last one changing fastest."""
    jobs = []
    for config, *assignments in itertools.product(args.configs, *map(axis, args.vary)):
        command = [args.binary, "sweep", "--config", config, "--prompts", args.prompts]
        for assignment in assignments:
            command += ["--set", assignment]
        jobs.append(Job(f"{len(jobs) + 1:03}", command + args.rest))
    return jobs


def run_here(job, prefix):
    """Runs a job in the foreground, its table and progress on this terminal. Returns its exit code."""
    try:
        process = subprocess.Popen(job.command + ["--out", f"{prefix}-{job.name}", "--resume"])
    except OSError as error:
        raise UsageError(f"{job.command[0]}: cannot be run: {error.strerror}") from None
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # the job had it too: it ends by itself once its report is written


def end_with_parent():
    """Has the system end this process when the one that started it goes away (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def run_there(command):
    """On a machine of the cluster: exit code, what the job said, and its files by their endings."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command + ["--out", f"{folder}/job"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=end_with_parent,
            check=False,
        )
        files = {path.name[len("job") :]: path.read_bytes() for path in pathlib.Path(folder).iterdir()}
        return done.returncode, done.stdout.decode(errors="replace"), files


def require_listener(address):
    """Ray itself would try for minutes to reach a head node that is not there."""
    host, colon, port = address.rpartition(":")
    if address == "auto" or "://" in address:
        return
    if not colon or not port.isdigit():
        raise UsageError(f"--address {address}: expected auto or host:port")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise UsageError(f"--address {address}: no Ray cluster answers: {error}") from None


def connect(address):
    try:
        import ray  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise UsageError("--address needs the ray package, not installed here: python3 -m pip install ray") from None
    require_listener(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # the package raises many kinds
        raise UsageError(f"--address {address}: no Ray cluster answers: {error}") from None
    return ray


def machines_of(ray):
    """Node id to (address, processors) of every machine that is up."""
    return {
        node["NodeID"]: (node["NodeManagerAddress"], node["Resources"].get("CPU", 0))
        for node in ray.nodes()
        if node["Alive"]
    }


def for_every_machine(jobs, machines):
    return [
        Job(f"{job.name}-{place:02}", job.command + ["--label", address], node)
        for job in jobs
        for place, (node, (address, _)) in enumerate(sorted(machines.items()), 1)
    ]


def submit(ray, job, node, processors):
    """All processors of the machine: nothing else of the cluster runs there meanwhile."""
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node_id=node, soft=False)
    return ray.remote(num_cpus=processors, max_retries=0, scheduling_strategy=strategy)(run_there).remote(job.command)


def collect(prefix, job, answer):
    code, said, files = answer
    for ending, content in files.items():
        pathlib.Path(f"{prefix}-{job.name}{ending}").write_bytes(content)
    print(f"{job.headline()}\n{said}", flush=True)
    if code == 0:
        done_file(job, prefix).write_text(f"{job.headline()}\n{said}", encoding="utf-8")
    return code


def done_file(job, prefix):
    """Holds what a job said on the cluster, once it is done."""
    return pathlib.Path(f"{prefix}-{job.name}.txt")


def is_done(job, prefix):
    path = done_file(job, prefix)
    return path.exists() and path.read_text(encoding="utf-8").split("\n", 1)[0] == job.headline()


def run_on_cluster(ray, jobs, machines, prefix):
    """Each machine takes the next job that it may run as soon as it is free. Returns the exit codes by job name."""
    import ray.util.scheduling_strategies  # pylint: disable=import-outside-toplevel,unused-import

    waiting = collections.deque(jobs)
    running, codes = {}, {}
    while waiting or running:
        for node in set(machines) - {node for _, node in running.values()}:
            job = next((job for job in waiting if job.machine in ("", node)), None)
            if job is not None:
                waiting.remove(job)
                running[submit(ray, job, node, machines[node][1])] = (job, node)
        (finished, *_), _ = ray.wait(list(running))
        job, node = running.pop(finished)
        try:
            codes[job.name] = collect(prefix, job, ray.get(finished))
        except ray.exceptions.RayError as error:
            print(f"scripts/sweep.py: job {job.name} was lost: {error}", file=sys.stderr)
            codes[job.name] = 1
    return codes


def on_cluster(args, jobs):
    ray = connect(args.address)
    try:
        machines = machines_of(ray)
        if args.every_machine:
            jobs[:] = for_every_machine(jobs, machines)
        return run_on_cluster(ray, [job for job in jobs if not is_done(job, args.out)], machines, args.out)
    finally:
        ray.shutdown()


def here(args, jobs):
    codes = {}
    for job in jobs:
        print(job.headline(), flush=True)
        codes[job.name] = run_here(job, args.out)
        if codes[job.name] == CANCELLED:
            break
    return codes


def merge(prefix, jobs):
    """Writes PREFIX.csv from those of the jobs that have one; returns the number of rows."""
    header, rows = None, []
    for job in jobs:
        path = pathlib.Path(f"{prefix}-{job.name}.csv")
        if not path.exists():
            continue
        with open(path, encoding="utf-8", newline="") as file:
            first, *others = csv.reader(file)
        if header is not None and first != header:
            raise UsageError(f"{path}: its columns are not those of the jobs before; did another version make it?")
        header = first
        rows += others
    if header is None:
        return 0
    with open(f"{prefix}.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return len(rows)


def main(argv):
    try:
        args = arguments(argv)
        jobs = jobs_of(args)
        codes = on_cluster(args, jobs) if args.address else here(args, jobs)
        rows = merge(args.out, jobs)
    except (UsageError, OSError) as error:
        print(f"scripts/sweep.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return CANCELLED
    if rows:
        print(f"{args.out}.csv: {rows} rows")
    failed = [f"{name} ({code})" for name, code in codes.items() if code not in (0, CANCELLED)]
    if failed:
        print(f"scripts/sweep.py: jobs that failed, with their exit codes: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else CANCELLED if CANCELLED in codes.values() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
