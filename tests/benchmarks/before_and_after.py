#!/usr/bin/env python3
"""Every benchmark in two checkouts of this repository, in turn on an idle machine: does a change make anything slower?

    git worktree add ../before REVISION
    (cd ../before && ./bazelw setup && ./bazelw build TARGETS)        # --targets prints them
    ./bazelw build TARGETS
    python3 tests/benchmarks/before_and_after.py --before ../before [--rounds 3] [--only llama]

A round runs each program once in each checkout, alone, one thread a rank. Printed as Markdown, after every round: the median over
rounds of each figure, least and greatest, and the ratio of the medians. Programs that one of the checkouts lacks are left out, named.
"""
import argparse
import os
import re
import statistics
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENVIRONMENT = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", LC_ALL="C.UTF-8", OMPI_ALLOW_RUN_AS_ROOT="1",
                   OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")
MPI = ["mpirun", "-n", "2"]
STEPS = ["--steps=30"]
DIST = ["--train-iters=310", "--warmup=9", "--no-plots", "--outputs=out"]

# What a row is called, what starts it, the program, its flags, where its figures are (the median is taken) and their unit.
# The pattern's last group is the figure; a group before it is its name.
ROWS = [
    ("serial GRU", [], "models/gru/gru_benchmark", [], r"variant=(\S+) median=(\S+)", "s"),
    *((f"layer-parallel GRU, {setting}, {ranks} ranks", [], "tests/benchmarks/layer_parallel_step",
       [f"--setting={setting}", f"--nproc={ranks}", "--batches=8"], r"lp_step .* median=(\S+)", "s")
      for setting in ("published", "published-cycle", "default") for ranks in (1, 2)),
    *((f"GPT, {dtype}", [], "tests/benchmarks/gpt_step", [f"--dtype={dtype}", *STEPS], r"dt=(\S+)", "s")
      for dtype in ("float32", "bfloat16")),
    ("Llama, 1 rank", [], "tests/benchmarks/llama_step", STEPS, r"dt=(\S+)", "s"),
    *((f"Llama, {strategy}, 2 ranks", [], "tests/benchmarks/llama_step", ["--nproc=2", f"--strategy={strategy}", *STEPS],
       r"dt=(\S+)", "s") for strategy in ("ddp", "zero1", "zero2", "fsdp")),
    *((f"test_dist, {ranks} ranks", [], "tools/test_dist", [f"--nproc={ranks}", *DIST], r"\bdt=([\d.e-]+)", "s") for ranks in (1, 2)),
    ("collectives", MPI, "comm/benchmarks/collectives_benchmark", ["16"], r"(\S+ +(?:8|32768|1048576|16777216)) +\S+ +(\S+)", "us"),
    ("checkpoint", MPI, "parallel/checkpoint/checkpoint_benchmark", [".", "100", "5"], r"(\S[^\n]*?) +median +(\S+) ms", "ms"),
    ("history", [], "data/history/history_benchmark", [], r"(BM_\S+) +\S+ ns +(\S+) ns", "CPU ns"),
    ("rank history", MPI, "tools/rank_history/rank_history_benchmark", [], r"gather_every=(\S+) .*step, (\S+) of CPU", "CPU us"),
]


def measure(checkout, row):
    """The figures of one run by name, each the median of those that it printed."""
    name, start, program, flags, pattern, _ = row
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(checkout, "bazel-bin", program)
        out = subprocess.run([*start, path, *flags], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True, cwd=folder).stdout
    figures = {}
    for found in re.finditer(pattern, out):
        label = ", ".join([name, *(re.sub(r" +", " ", group) for group in found.groups()[:-1])])
        figures.setdefault(label, []).append(float(found.groups()[-1]))
    if not figures:
        raise SystemExit(f"{path}: no line matches {pattern}")
    return {label: statistics.median(values) for label, values in figures.items()}


def report(results, units, rounds):
    print(f"\nAfter {rounds} rounds:\n\n| what | before | after | ratio |\n|---|---|---|---|")
    for label, (before, after) in results.items():
        texts = [f"{statistics.median(side):.4g} ({min(side):.4g} to {max(side):.4g})" for side in (before, after)]
        ratio = statistics.median(after) / statistics.median(before)
        print(f"| {label}, {units[label]} | {texts[0]} | {texts[1]} | {ratio:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", help="the other checkout")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--targets", action="store_true", help="prints what to build, and ends")
    arguments = parser.parse_args()
    if arguments.targets:
        print(" ".join(sorted({"//" + ":".join(row[2].rsplit("/", 1)) for row in ROWS})))
        return
    checkouts = [os.path.abspath(arguments.before), ROOT]
    rows = []
    for row in ROWS:
        missing = [c for c in checkouts if not os.path.exists(os.path.join(c, "bazel-bin", row[2]))]
        if missing:
            print(f"{row[0]}: left out, {missing[0]} has no bazel-bin/{row[2]}")
        elif arguments.only in row[0]:
            rows.append(row)
    results, units = {}, {}
    for round_number in range(arguments.rounds):
        for row in rows:
            order = (0, 1) if round_number % 2 == 0 else (1, 0)
            for side in order:
                for label, value in measure(checkouts[side], row).items():
                    results.setdefault(label, ([], []))[side].append(value)
                    units[label] = row[5]
        report(results, units, round_number + 1)


if __name__ == "__main__":
    main()
