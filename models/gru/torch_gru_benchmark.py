"""Seconds of a training step of torch.nn.GRU, one thread, in gru_benchmark's line format.

    python torch_gru_benchmark.py [--repeats 20] [--beside path/to/gru_benchmark --rounds 5]

With --beside, runs this and the given binary in turn, `rounds` times, and prints the ratio of the medians.
"""

import argparse
import re
import statistics
import subprocess
import time

import torch


def seconds_per_step(repeats):
    torch.set_num_threads(1)
    gru = torch.nn.GRU(9, 100, 2, batch_first=True)
    head = torch.nn.Linear(100, 6)
    parameters = [*gru.parameters(), *head.parameters()]
    x = torch.randn(100, 128, 9)
    labels = torch.randint(6, (100,))
    seconds = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        for p in parameters:
            p.grad = None
        torch.nn.functional.cross_entropy(head(gru(x)[0][:, -1]), labels).backward()
        seconds.append(time.perf_counter() - start)
    return seconds[1:]


def show(program, variant, seconds):
    print(
        f"gru_step program={program} variant={variant} median={statistics.median(seconds):.4f} "
        f"min={min(seconds):.4f} max={max(seconds):.4f} repeats={len(seconds)}"
    )


def run_beside(binary, repeats, rounds):
    torch_medians = []
    medians = {}
    for _ in range(rounds):
        torch_medians.append(statistics.median(seconds_per_step(repeats)))
        out = subprocess.run([binary, str(repeats)], check=True, capture_output=True, text=True).stdout
        for variant, median in re.findall(r"variant=(\S+) median=(\S+)", out):
            medians.setdefault(variant, []).append(float(median))
    show("torch", "classic", torch_medians)
    for variant, values in medians.items():
        show("plait", variant, values)
        ratios = [value / base for value, base in zip(values, torch_medians)]
        print(f"ratio variant={variant} median={statistics.median(ratios):.3f} min={min(ratios):.3f} max={max(ratios):.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--beside")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if args.beside:
        run_beside(args.beside, args.repeats, args.rounds)
    else:
        show("torch", "classic", seconds_per_step(args.repeats))


if __name__ == "__main__":
    main()
