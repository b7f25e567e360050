#!/usr/bin/env python3
"""What --lp-auto chooses beside both ways that it chooses from: seconds of a step, in turn, on an idle machine.

    bazel build //tools:train_gpt //tools:train_odenet //tools:train_gru
    PYTHON_WITH_H5PY tests/benchmarks/solver_choice.py --bin-dir bazel-bin --rounds 3

For each problem, rounds of three runs on --nproc ranks: serial propagation (--lp-levels=1), the solver of the flags, and --lp-auto with the same flags.
A line per problem: medians over the rounds of the median step behind the choice, the fastest and slowest round, and the ratio of --lp-auto to the faster
of the other two. Below it what --lp-auto said; a solver whose gradient is not within the limit is none that it may take, and then the ratio to serial
propagation counts.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

import h5py

SERIAL, FLAGS, AUTO = ["--lp-levels=1"], [], ["--lp-auto"]
WAYS = {"serial": SERIAL, "flags": FLAGS, "auto": AUTO}
# The program, its flags, and what its history calls the seconds of a step or an epoch.
TEXT = ["--mesh=lp={ranks}", "--n-head=4", "--n-embd=64", "--block-size=64", "--batch-size=4", "--max-iters=240", "--log-interval=1", "--eval-interval=0"]
PROBLEMS = {
    "gpt, 64 blocks": ("train_gpt", [*TEXT, "--n-layer=64"], "dt"),
    "gpt, 64 blocks, bias 0.5": ("train_gpt", [*TEXT, "--n-layer=64", "--lp-bias-limit=0.5", "--lp-bias-every=1000"], "dt"),
    "peaks, 256 layers": ("train_odenet", ["--problem=peaks", "--layers=256", "--epochs=9"], "dt"),
    "peaks, 256 layers, bias 0.5": ("train_odenet", ["--problem=peaks", "--layers=256", "--epochs=9", "--lp-bias-limit=0.5", "--lp-bias-every=1000"], "dt"),
    "gru, 128 steps": ("train_gru", ["--epochs=3"], "dt"),
}


def run(bin_dir, problem, way, ranks):
    program, flags, seconds_name = PROBLEMS[problem]
    with tempfile.TemporaryDirectory() as folder:
        command = [os.path.join(bin_dir, "tools", program), f"--nproc={ranks}", "--no-plots", f"--outputs={folder}",
                   *(flag.format(ranks=ranks) for flag in flags), *WAYS[way]]
        if way == "serial":  # no bias to control
            command = [word for word in command if not word.startswith("--lp-bias")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        with h5py.File(os.path.join(folder, "history.h5")) as file:
            seconds = file[seconds_name][:]
        said = re.findall(r"--lp-auto (?:chose|would).*", done.stdout)
        # The last third: behind the choice, and behind what the machine needs to warm up.
        return statistics.median(seconds[-(len(seconds) // 3):]), said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin-dir", required=True)
    parser.add_argument("--problems", default=";".join(PROBLEMS), help="with ; between them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nproc", type=int, default=2)
    args = parser.parse_args()
    print(f"{'problem':28s}" + "".join(f" {way:>26s}" for way in WAYS) + f" {'auto / faster':>14s} {'auto / serial':>14s}")
    for problem in args.problems.split(";"):
        seconds, lines = {way: [] for way in WAYS}, []
        for _ in range(args.rounds):
            for way in WAYS:
                step, said = run(args.bin_dir, problem, way, args.nproc)
                seconds[way].append(step)
                lines += said if way == "auto" else []
        median = {way: statistics.median(steps) for way, steps in seconds.items()}
        shown = "".join(f" {median[way]:9.4f} s ({min(s):.4f}-{max(s):.4f})" for way, s in seconds.items())
        faster = min(median["serial"], median["flags"])
        print(f"{problem:28s}{shown} {median['auto'] / faster:14.3f} {median['auto'] / median['serial']:14.3f}")
        for line in lines:
            print(f"    {line}", flush=True)


if __name__ == "__main__":
    main()
