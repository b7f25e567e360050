#!/usr/bin/env python3
"""Steps of test_dist beside PyTorch's DistributedDataParallel (gloo), in turn on an idle machine.

    bazel build //tools:test_dist
    python3 tests/benchmarks/test_dist_beside_ddp.py --test-dist bazel-bin/tools/test_dist --python PYTHON_WITH_TORCH [--rounds 5]

Each round runs test_dist on 1 and 2 ranks and the peer on 1 and 2, one thread a rank, each alone. Printed as Markdown: the median over
the rounds of each run's median step, the least and greatest of these, and the time from the command to the end of the first step.
"""
import argparse
import os
import re
import socket
import statistics
import subprocess
import tempfile
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
# Torch starts helper threads that would share the cores.
ENVIRONMENT = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", LC_ALL="C.UTF-8")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def peer(python, ranks, steps):
    port, script = free_port(), os.path.join(FOLDER, "ddp_step.py")
    processes = [subprocess.Popen([python, script, str(rank), str(ranks), str(port), str(steps)], env=ENVIRONMENT,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for rank in range(ranks)]
    text = [process.communicate()[0] for process in processes][0]
    return [float(re.search(rf"{key}=([\d.]+)", text).group(1)) for key in ("median", "first_step_after")]


def ours(program, ranks, steps):
    with tempfile.TemporaryDirectory() as folder:
        command = [program, f"--nproc={ranks}", f"--train-iters={steps + 10}", "--warmup=9", "--no-plots",
                   "--outputs=" + os.path.join(folder, "out")]
        out = subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True, cwd=folder).stdout
        begin = time.time()
        first = subprocess.Popen(command[:2] + ["--train-iters=1000000", "--no-plots", "--outputs=" + os.path.join(folder, "first")],
                                 env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, cwd=folder)
        next(line for line in first.stdout if "iter=1," in line)
        seconds_to_first = time.time() - begin
        first.terminate()
        first.communicate()
    return [statistics.median(float(text) for text in re.findall(r"\bdt=([\d.e-]+)", out)), seconds_to_first]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--test-dist", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300)
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.test_dist)
    runs = {}
    for _ in range(arguments.rounds):
        for ranks in (1, 2):
            runs.setdefault(("test_dist", ranks), []).append(ours(program, ranks, arguments.steps))
            runs.setdefault(("PyTorch DDP, gloo", ranks), []).append(peer(arguments.python, ranks, arguments.steps))
    print("| program | ranks | ms per step: median, least, greatest of rounds | s to the end of the first step |\n|---|---|---|---|")
    for (name, ranks), rows in runs.items():
        steps, firsts = zip(*rows)
        print(f"| {name} | {ranks} | {1e3 * statistics.median(steps):.2f}, {1e3 * min(steps):.2f}, {1e3 * max(steps):.2f} | "
              f"{statistics.median(firsts):.2f} |")
    median = {key: statistics.median(row[0] for row in rows) for key, rows in runs.items()}
    print(f"\n2 ranks over PyTorch's 2: {median['test_dist', 2] / median['PyTorch DDP, gloo', 2]:.2f}; "
          f"2 ranks over our own 1: {median['test_dist', 2] / median['test_dist', 1]:.2f}")


main()
