#!/usr/bin/env python3
"""Strong and weak scaling of train_odenet's four problems: measured, and predicted for more layers and ranks.

    bazel build //tests/benchmarks:odenet_step //tests/benchmarks:scaling
    python3 tests/benchmarks/depth_scaling.py --bin-dir bazel-bin --out DIR --data mnist=DIR --data fashion=DIR \
        --data indian_pines=DIR

Three parts, all by default (--only):
  biases  of gradients with many solvers, 8 to 1024 layers, on few samples behind some steps of Adam: the same figures on any
          machine, busy or not; DIR/biases.txt
  runs    64 layers on 1, 2 and 4 ranks (strong scaling), 16 layers per rank (weak scaling), and serially: on an idle
          machine, one thread per rank, problem after problem in rounds; DIR/runs.txt
  tables  what scaling says to both: DIR/scaling.txt, and plots under DIR/svgs
Image problems without --data take a synthetic stand-in, Indian Pines a synthetic cube; Peaks is generated.
"""

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import time

PROBLEMS = ("peaks", "indian_pines", "mnist", "fashion")
SETTINGS = (["--levels=2", "--cfactor=4", "--fwd_iters=3", "--bwd_iters=2"],
            ["--levels=3", "--cfactor=4", "--fwd_iters=2", "--bwd_iters=1"])
LAYERS = (8, 16, 32, 64, 128, 256, 512, 1024)
STRONG_LAYERS, LAYERS_PER_RANK = 64, 16
# Batches of a run: about as long for every problem.
BATCHES = {"peaks": 60, "indian_pines": 40, "mnist": 4, "fashion": 4}
# Samples that biases are taken of.
BIAS_SAMPLES = {"peaks": 64, "indian_pines": 64, "mnist": 2, "fashion": 2}


def environment():
    own = dict(os.environ, OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    own["OMPI_MCA_rmaps_base_oversubscribe"] = "1"
    return own


def run(args, program, *flags):
    command = [os.path.join(args.bin_dir, "tests", "benchmarks", program), *flags]
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"depth_scaling: {' '.join(command)} ended with {done.returncode}")
    return done.stdout


def step(args, problem, layers, *flags):
    data = [f"--data={args.folders[problem]}"] if problem in args.folders else []
    return run(args, "odenet_step", f"--problem={problem}", f"--layers={layers}", *data, *flags)


def biases(args):
    with open(os.path.join(args.out, "biases.txt"), "w", encoding="utf-8") as file:
        for problem, layers in itertools.product(args.problems, LAYERS):
            file.write(step(args, problem, layers, "--levels=2", "--cfactor=2", "--biases", "--enough_bias=0.1",
                            f"--batch_size={BIAS_SAMPLES[problem]}", f"--train_steps={args.train_steps}"))
            file.flush()


def runs(args):
    shapes = [(STRONG_LAYERS, 1), (STRONG_LAYERS, 2), (STRONG_LAYERS, 4),
              *((LAYERS_PER_RANK * ranks, ranks) for ranks in (1, 2))]
    shapes.append((2 * LAYERS_PER_RANK, 1))
    with open(os.path.join(args.out, "runs.txt"), "w", encoding="utf-8") as file:
        for number in range(args.rounds):
            print(f"round {number + 1} of {args.rounds}, load {os.getloadavg()[0]:.2f}", flush=True)
            file.write(f"# round {number + 1}, load {os.getloadavg()[0]:.2f}\n")
            for problem, setting, (layers, ranks) in itertools.product(args.problems, SETTINGS, shapes):
                batches = max(2, round(BATCHES[problem] * args.length))
                file.write(step(args, problem, layers, *setting, f"--nproc={ranks}", f"--batches={batches}"))
                file.flush()


def tables(args):
    log = os.path.join(args.out, "log.txt")
    with open(log, "w", encoding="utf-8") as file:
        for name in ("runs.txt", "biases.txt"):
            with open(os.path.join(args.out, name), encoding="utf-8") as part:
                shutil.copyfileobj(part, file)
    text = run(args, "scaling", f"--log={log}", f"--calibrate={LAYERS_PER_RANK},{STRONG_LAYERS}", "--settings=", "--most_ranks=1024",
               "--steps=" + ",".join(map(str, LAYERS)), "--plots=" + args.out)
    with open(os.path.join(args.out, "scaling.txt"), "w", encoding="utf-8") as file:
        file.write(text)
    print(text)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin-dir", required=True, help="folder of built programs (bazel-bin)")
    parser.add_argument("--out", required=True, help="folder for the results")
    parser.add_argument("--data", action="append", default=[], metavar="PROBLEM=FOLDER")
    parser.add_argument("--only", choices=("biases", "runs", "tables"))
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=PROBLEMS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--length", type=float, default=1, help="of a run: 0.2 for a trial")
    parser.add_argument("--train-steps", type=int, default=20, help="of Adam, before the biases")
    args = parser.parse_args()
    args.out = os.path.abspath(args.out)
    args.folders = {name: os.path.abspath(folder) for name, folder in (part.split("=", 1) for part in args.data)}
    return args


def main():
    args = arguments()
    os.makedirs(args.out, exist_ok=True)
    for part in (biases, runs, tables):
        if args.only in (None, part.__name__):
            begin = time.perf_counter()
            part(args)
            print(f"{part.__name__}: {time.perf_counter() - begin:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
