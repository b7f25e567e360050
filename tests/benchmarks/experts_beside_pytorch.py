#!/usr/bin/env python3
"""Experts' MLPs beside eager PyTorch, in turn on one core: forward and backward passes of 2048 tokens to 2 experts each.

    bazel build //tests/benchmarks:moe_experts
    OMP_NUM_THREADS=1 taskset -c 1 PYTHON_WITH_TORCH tests/benchmarks/experts_beside_pytorch.py --program bazel-bin/tests/benchmarks/moe_experts

In every round moe_experts runs its programs once at each setting, then PyTorch runs at the same: width 256, hidden 1024, uniform groups of
rows and Zipf's (1 / (e + 1)), the same rows in the same order. Printed as Markdown: medians over the rounds with the least and the greatest
in milliseconds, then ratios. Both keep freed memory, as Plait's programs do, unless --return-memory leaves PyTorch the allocator's defaults.

    loop           a list of weights for each expert, rows gathered by index_select, results added by index_add
    unbind         the same over weight.unbind(0) of stacked weights
    grouped_mm     torch._grouped_mm over stacked weights, without biases, which it does not take
"""
import argparse
import collections
import ctypes
import re
import statistics
import subprocess
import sys
import time

import torch
from torch.nn import functional

WIDTH, HIDDEN, TOKENS, PER_TOKEN = 256, 1024, 2048, 2
ROWS = TOKENS * PER_TOKEN
SETTINGS = [(dtype, experts, sizes) for dtype in ("float32", "bfloat16") for experts in (8, 32, 64) for sizes in ("uniform", "zipf")]


def offsets_of(experts, sizes):
    shares = [1 / (e + 1) if sizes == "zipf" else 1.0 for e in range(experts)]
    total, so_far, offsets = sum(shares), 0.0, [0]
    for share in shares:
        so_far += share
        offsets.append(int(ROWS * (so_far / total) + 0.5))
    return offsets


class Layer:
    def __init__(self, dtype, experts, sizes):
        self.offsets = offsets_of(experts, sizes)
        self.ends = torch.tensor(self.offsets[1:], dtype=torch.int32)
        # Experts have the same weights: drawing so many numbers would take longer than what is timed.
        random = lambda *shape: (torch.randn(shape[-2:]) * 0.1).to(getattr(torch, dtype)).expand(shape).clone(
            memory_format=torch.contiguous_format).requires_grad_()
        self.weights = {"w1": random(experts, HIDDEN, WIDTH), "b1": random(experts, HIDDEN), "w2": random(experts, WIDTH, HIDDEN), "b2": random(experts, WIDTH)}
        self.apart = {name: [weight[e].detach().clone().requires_grad_() for e in range(experts)] for name, weight in self.weights.items()}
        self.tokens = random(TOKENS, WIDTH)
        self.token = torch.arange(ROWS) * 1237 % ROWS // PER_TOKEN
        self.shares, self.gradient = random(ROWS, 1).detach(), random(TOKENS, WIDTH).detach()

    def combine(self, rows):
        return torch.zeros_like(self.tokens).index_add(0, self.token, rows * self.shares)

    def by_expert(self, w):
        rows = self.tokens.index_select(0, self.token)
        outputs = [functional.linear(functional.gelu(functional.linear(x, w["w1"][e], w["b1"][e])), w["w2"][e], w["b2"][e])
                   for e, x in enumerate(rows.split([b - a for a, b in zip(self.offsets, self.offsets[1:])])) if len(x)]
        return self.combine(torch.cat(outputs))

    def loop(self):
        self.by_expert(self.apart).backward(self.gradient)

    def unbind(self):
        self.by_expert({name: weight.unbind(0) for name, weight in self.weights.items()}).backward(self.gradient)

    def grouped_mm(self):
        rows = self.tokens.index_select(0, self.token)
        hidden = functional.gelu(torch._grouped_mm(rows, self.weights["w1"].transpose(1, 2), offs=self.ends))
        self.combine(torch._grouped_mm(hidden, self.weights["w2"].transpose(1, 2), offs=self.ends)).backward(self.gradient)

    def milliseconds(self, name):
        for tensor in [self.tokens, *self.weights.values(), *sum(self.apart.values(), [])]:
            tensor.grad = None
        begin = time.perf_counter()
        getattr(self, name)()
        return 1000 * (time.perf_counter() - begin)


def keep_freed_memory():
    libc = ctypes.CDLL("libc.so.6")
    libc.mallopt(-4, 0)  # M_MMAP_MAX
    libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def run_rounds(program, rounds, samples):
    command = [program, f"--rounds={rounds}", "--wait"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as plait:
        for _ in range(rounds):
            plait.stdin.write("\n")
            plait.stdin.flush()
            for line in iter(plait.stdout.readline, "moe_experts round-ends\n"):
                found = re.fullmatch(r"moe_experts program=(\S+) dtype=(\S+) experts=(\d+) sizes=(\S+) ms=(\S+)\n", line)
                if not found:
                    sys.exit(f"{program} printed {line!r}")
                samples[found[2], int(found[3]), found[4]][found[1]].append(float(found[5]))
            for setting in SETTINGS:
                layer = Layer(*setting)
                for name in ("loop", "unbind", "grouped_mm"):
                    layer.milliseconds(name)
                    samples[setting]["PyTorch " + name].append(layer.milliseconds(name))


def print_tables(samples):
    names = list(samples[SETTINGS[0]])
    medians = {setting: {name: statistics.median(times) for name, times in of.items()} for setting, of in samples.items()}
    print("| setting | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for setting in SETTINGS:
        cells = [f"{medians[setting][n]:.1f} ({min(samples[setting][n]):.1f} to {max(samples[setting][n]):.1f})" for n in names]
        print(f"| {setting[0]}, {setting[1]} {setting[2]} | " + " | ".join(cells) + " |")
    print("\n| setting | speed of the faster dense pair | of its products alone | time of the best eager PyTorch |\n|---|---|---|---|")
    for setting in SETTINGS:
        m = medians[setting]
        dense, products = min(m["dense"], m["dense-libtorch"]), min(m["products"], m["products-libtorch"])
        eager = min(time for name, time in m.items() if name.startswith("PyTorch"))
        print(f"| {setting[0]}, {setting[1]} {setting[2]} | {dense / m['experts']:.2f} | {products / m['experts']:.2f} | "
              f"{m['experts-and-rows'] / eager:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="moe_experts")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--return-memory", action="store_true", help="PyTorch with the allocator's defaults")
    args = parser.parse_args()
    if not args.return_memory:
        keep_freed_memory()
    torch.set_num_threads(1)
    samples = collections.defaultdict(lambda: collections.defaultdict(list))
    run_rounds(args.program, args.rounds, samples)
    print_tables(samples)


main()
