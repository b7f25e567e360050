#!/usr/bin/env python3
"""Plait beside its peers, in one run: programs take turns for some rounds, one thread per rank.

    python3 tests/benchmarks/side_by_side.py --out DIR
    python3 tests/benchmarks/side_by_side.py --out DIR --rounds 7 \\
        --peer-command 'peer, 2 ranks=/path/to/peer_benchmark 2'

Builds what it needs, then in every round runs, in turn: torch.nn.GRU (models/gru/torch_gru_benchmark.py with the Python
that LibTorch came with), the serial GRU of Plait, the layer-parallel step on 1, 2 and 4 ranks at the published
settings, at the same with train_gru's coarse steps, and at the default ones, each peer command, and the start of train_gru up to its first batch. Collectives, sequences of
other lengths for the model of scaling and the curve of gradient error come once, at the end. peers.md says what a peer
command prints.

Written to DIR: report.md (tables for docs/benchmarks.md), samples.csv (every sample), runs.txt (all output; input of
tests/benchmarks:scaling), curve.csv and curve.svg.
"""

import argparse
import csv
import itertools
import os
import platform
import re
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
TARGETS = {
    "gru_benchmark": "//models/gru:gru_benchmark",
    "layer_parallel_step": "//tests/benchmarks:layer_parallel_step",
    "gradient_cost": "//tests/benchmarks:gradient_cost",
    "scaling": "//tests/benchmarks:scaling",
    "collectives_benchmark": "//comm/benchmarks:collectives_benchmark",
    "train_gru": "//tools:train_gru",
}
TORCH = "torch.nn.GRU"
START = "start to first batch"


def environment():
    return dict(
        os.environ,
        OMP_NUM_THREADS="1",
        OPENBLAS_NUM_THREADS="1",
        MKL_NUM_THREADS="1",
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        OMPI_MCA_rmaps_base_oversubscribe="1",
        OMPI_MCA_btl_base_warn_component_unused="0",
    )


def load():
    return os.getloadavg()[0]


class Session:
    """Runs commands and keeps what they print and the samples in it."""

    def __init__(self, args):
        self.args = args
        self.samples = []  # (round, name, unit, value, load before)
        self.round = 0
        self.log = open(os.path.join(args.out, "runs.txt"), "w", encoding="utf-8")

    def run(self, command, shell=False):
        shown = command if shell else " ".join(command)
        self.log.write(f"# round {self.round} load {load():.2f}: {shown}\n")
        done = subprocess.run(
            command, shell=shell, capture_output=True, text=True, env=environment(), cwd=ROOT,
            timeout=self.args.timeout, check=False,
        )
        self.log.write(done.stdout)
        self.log.flush()
        if done.returncode != 0:
            print(f"side_by_side: {shown}: exit code {done.returncode}: {done.stderr.strip()[-400:]}", file=sys.stderr)
        return done.stdout if done.returncode == 0 else ""

    def sample(self, name, unit, value):
        self.samples.append((self.round, name, unit, value, load()))
        print(f"  {name:58} {value:10.4f} {unit}", flush=True)

    def values(self, name, unit):
        return [value for _, n, u, value, _ in self.samples if (n, u) == (name, unit)]

    def names(self, unit):
        return list(dict.fromkeys(name for _, name, u, _, _ in self.samples if u == unit))


def entries(line):
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def lines(output, word):
    return [entries(line) for line in output.splitlines() if line.startswith(word + " ")]


def build(args):
    """Paths of the programs, built first unless they are given."""
    folder = args.bin_dir
    if not folder:
        bazel = args.bazel.split()
        subprocess.run([*bazel, "build", *TARGETS.values()], cwd=ROOT, check=True)
        folder = subprocess.run(
            [*bazel, "info", "bazel-bin"], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.strip()
    return {name: os.path.join(folder, *label[2:].split(":")) for name, label in TARGETS.items()}


def torch_python(args):
    if args.torch_python:
        return args.torch_python
    with open(os.path.join(ROOT, ".bazelrc.local"), encoding="utf-8") as file:
        folder = re.search(r"^# libtorch (.*)$", file.read(), re.M).group(1)
    return os.path.join(folder, "bin", "python")


def serial_round(session, programs, python):
    repeats = str(session.args.batches)
    for line in lines(
        session.run([python, os.path.join(ROOT, "models/gru/torch_gru_benchmark.py"), "--repeats", repeats]), "gru_step"
    ):
        session.sample(TORCH, "s/batch", float(line["median"]))
    for line in lines(session.run([programs["gru_benchmark"], repeats]), "gru_step"):
        session.sample(f"Plait serial, {line['variant']}", "s/batch", float(line["median"]))


def parallel_round(session, programs):
    args = session.args
    for setting in ("published", "published-cycle", "default"):
        for ranks in (1, 2, 4):
            output = session.run([
                programs["layer_parallel_step"], f"--setting={setting}", f"--nproc={ranks}",
                f"--batches={args.batches}", f"--windows={args.windows}", "--serial" if ranks == 1 else "--noserial",
            ])
            name = f"Plait layer-parallel, {setting} settings, {ranks} rank" + ("s" if ranks > 1 else "")
            for line in lines(output, "lp_step"):
                session.sample(name, "s/batch", float(line["median"]))
                session.sample(name, "overhead %", 100 * float(line["overhead"]))
                session.sample(name, "overhead without messages %", 100 * float(line["overhead_without_messages"]))
            for line in lines(output, "lp_inference"):
                session.sample(name, "s/test", float(line["seconds"]))


def peers_round(session):
    for peer in session.args.peer_command:
        name, command = peer.split("=", 1)
        output = session.run(command, shell=True)
        found = [float(value) for value in re.findall(session.args.peer_pattern, output)]
        for index, value in enumerate(found):
            session.sample(name if len(found) == 1 else f"{name} [{index + 1}]", "s/batch", value)
        if not found:
            print(f"side_by_side: {name}: no line matches {session.args.peer_pattern}", file=sys.stderr)


def start_round(session, programs):
    """Seconds from the command to train_gru's first progress line, which follows its first batch."""
    for ranks in (1, 2):
        command = [programs["train_gru"], f"--nproc={ranks}", "--force-lp", "--log-interval=1", "--epochs=1"]
        begin = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              env=environment(), cwd=ROOT) as child:
            for line in child.stdout:
                if re.search(session.args.first_batch_pattern, line):
                    session.sample(f"{START}, {ranks} rank" + ("s" if ranks > 1 else ""), "s",
                                   time.perf_counter() - begin)
                    break
            else:
                print("side_by_side: train_gru ended before its first batch", file=sys.stderr)
            child.terminate()
            for _ in child.stdout:
                pass


def scaling_runs(session, programs):
    """Other lengths, for the model to predict; 128 steps again, for it to be calibrated at the same time."""
    for _ in range(3):
        for setting, steps, ranks in itertools.product(("published", "default"), (64, 128, 256, 512), (1, 2)):
            session.run([
                programs["layer_parallel_step"], f"--setting={setting}", f"--sequence-length={steps}",
                f"--nproc={ranks}", f"--batches={max(session.args.batches // 3, 1)}",
            ])


def machine():
    model = platform.processor()
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"^model name\s*:\s*(.*)$", file.read(), re.M)
    return f"{found.group(1) if found else model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"


def table(session, unit, base_name):
    base = session.values(base_name, unit) if base_name else []
    head = f"| program | median | min | max | ratio to {base_name} |" if base else "| program | median | min | max |"
    text = [f"**{unit}**", "", head, "|" + "---|" * (head.count("|") - 1)]
    for name in session.names(unit):
        values = session.values(name, unit)
        row = f"| {name} | {statistics.median(values):.4f} | {min(values):.4f} | {max(values):.4f} |"
        if base:
            row += f" {statistics.median(values) / statistics.median(base):.3f} |"
        text.append(row)
    return "\n".join(text) + "\n"


def block(output):
    return "```\n" + output.rstrip() + "\n```\n"


def report(session, collectives, scaling, curve):
    args = session.args
    loads = {}
    for number, _, _, _, before in session.samples:
        loads.setdefault(number, before)
    parts = [
        "# Side by side\n",
        f"{machine()}. {time.strftime('%Y-%m-%d %H:%M')}, {args.rounds} rounds, {args.batches} batches each, one thread "
        f"per rank; batch 100, hidden 100 x 2 layers, 128 steps, 9 inputs, float32. A sample is a program's median over "
        "its batches; below, median, min and max over the rounds. Load before each round: "
        + ", ".join(f"{value:.2f}" for value in loads.values()) + ".\n",
        table(session, "s/batch", TORCH),
        f"Inference: {args.windows} windows.\n",
        table(session, "s/test", None),
        "Time outside Phi, its adjoint and the weight gradients, of forward + backward:\n",
        table(session, "overhead %", None),
        table(session, "overhead without messages %", None),
        "From the command to the first batch of train_gru, data prepared:\n",
        table(session, "s", None),
        "## Collectives against plain MPI, 2 ranks\n",
        block(collectives),
        "## Model of scaling\n",
        scaling,
        "## Gradient error against cost\n",
        block(curve),
    ]
    with open(os.path.join(args.out, "report.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(parts))


def write_samples(session):
    with open(os.path.join(session.args.out, "samples.csv"), "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["round", "program", "unit", "value", "load"])
        writer.writerows(session.samples)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="folder for the results")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=20, help="measured batches of a program in a round")
    parser.add_argument("--windows", type=int, default=2947, help="sequences of the parallel inference")
    parser.add_argument("--peer-command", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--peer-pattern", default=r"s/batch median ([0-9.eE+-]+)", help="finds seconds in its output")
    parser.add_argument("--first-batch-pattern", default=r"Train Epoch", help="train_gru's first progress line")
    parser.add_argument("--bazel", default=os.path.join(ROOT, "bazelw"))
    parser.add_argument("--bin-dir", help="folder of built programs (bazel-bin); nothing is built")
    parser.add_argument("--torch-python", help="a Python with torch; by default the one of LibTorch's set-up")
    parser.add_argument("--largest-megabytes", type=int, default=256, help="of the collectives")
    parser.add_argument("--curve-repeats", type=int, default=3, help="0: no curve of gradient error")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds that one command may take")
    args = parser.parse_args()
    for peer in args.peer_command:
        if "=" not in peer:
            parser.error(f"--peer-command {peer}: expected NAME=COMMAND")
    args.out = os.path.abspath(args.out)
    return args


def main():
    args = arguments()
    os.makedirs(args.out, exist_ok=True)
    programs, python = build(args), torch_python(args)
    session = Session(args)
    for session.round in range(1, args.rounds + 1):
        print(f"round {session.round} of {args.rounds}, load {load():.2f}", flush=True)
        serial_round(session, programs, python)
        parallel_round(session, programs)
        peers_round(session)
        start_round(session, programs)
        write_samples(session)
    scaling_runs(session, programs)
    collectives = session.run(["mpirun", "-n", "2", "--bind-to", "none", programs["collectives_benchmark"],
                               str(args.largest_megabytes)])
    scaling = session.run([programs["scaling"], "--log=" + os.path.join(args.out, "runs.txt")])
    curve = ""
    if args.curve_repeats > 0:
        curve = session.run([programs["gradient_cost"], f"--repeats={args.curve_repeats}",
                             "--out=" + os.path.join(args.out, "curve.csv"),
                             "--plot=" + os.path.join(args.out, "curve.svg")])
    report(session, collectives, scaling, curve)
    print("written: " + os.path.join(args.out, "report.md"))


if __name__ == "__main__":
    main()
