"""Seconds of a training step of torch.nn.GRU, one thread, in gru_benchmark's line format.

    python torch_gru_benchmark.py [--repeats 20] [--beside path/to/gru_benchmark --rounds 5]

With --beside, alternates between this and the given binary, `rounds` times, and prints the ratios of their medians, in
wall time and in CPU time (the better measure on a shared machine).
"""

import argparse
import re
import statistics
import subprocess
import time

import torch


def measure(repeats):
    """Wall and thread seconds of each step after the first."""
    torch.set_num_threads(1)
    gru = torch.nn.GRU(9, 100, 2, batch_first=True)
    head = torch.nn.Linear(100, 6)
    parameters = [*gru.parameters(), *head.parameters()]
    x = torch.randn(100, 128, 9)
    labels = torch.randint(6, (100,))
    wall = []
    cpu = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        cpu_start = time.process_time()
        for p in parameters:
            p.grad = None
        torch.nn.functional.cross_entropy(head(gru(x)[0][:, -1]), labels).backward()
        cpu.append(time.process_time() - cpu_start)
        wall.append(time.perf_counter() - start)
    return wall[1:], cpu[1:]


def show(program, variant, wall, cpu):
    print(
        f"gru_step program={program} variant={variant} median={statistics.median(wall):.4f} "
        f"min={min(wall):.4f} max={max(wall):.4f} cpu_median={statistics.median(cpu):.4f} repeats={len(wall)}"
    )


def show_ratio(kind, variant, values, base):
    ratios = [value / other for value, other in zip(values, base)]
    print(
        f"ratio time={kind} variant={variant} median={statistics.median(ratios):.3f} "
        f"min={min(ratios):.3f} max={max(ratios):.3f}"
    )


def run_beside(binary, repeats, rounds):
    torch_wall, torch_cpu = [], []
    variants = {}
    for _ in range(rounds):
        wall, cpu = measure(repeats)
        torch_wall.append(statistics.median(wall))
        torch_cpu.append(statistics.median(cpu))
        out = subprocess.run([binary, str(repeats)], check=True, capture_output=True, text=True).stdout
        for variant, median, cpu in re.findall(r"variant=(\S+) median=(\S+) .*cpu_median=(\S+)", out):
            seconds = variants.setdefault(variant, ([], []))
            seconds[0].append(float(median))
            seconds[1].append(float(cpu))
    show("torch", "classic", torch_wall, torch_cpu)
    for variant, (wall, cpu) in variants.items():
        show("plait", variant, wall, cpu)
        show_ratio("wall", variant, wall, torch_wall)
        show_ratio("cpu", variant, cpu, torch_cpu)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--beside")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if args.beside:
        run_beside(args.beside, args.repeats, args.rounds)
    else:
        show("torch", "classic", *measure(args.repeats))


if __name__ == "__main__":
    main()
