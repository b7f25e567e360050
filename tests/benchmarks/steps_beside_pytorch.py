#!/usr/bin/env python3
"""Training steps beside PyTorch's, in turn on an idle machine: nanoGPT's setting for processors, the 33.6 M Llama-like
model, and passes of ViT-S without an optimizer; and beside TorchBraid's, layer-parallel steps of its MNIST network.

    bazel build //tests/benchmarks:{gpt,llama,vit,odenet}_step
    python3 tests/benchmarks/steps_beside_pytorch.py --bin-dir bazel-bin --python PYTHON_WITH_TORCH [--rounds 5] [--only gpt]
    ... --only odenet --braid-python PYTHON_WITH_TORCHBRAID

In every round each program runs once, alone, one thread a rank, with the same sizes, blocks and optimizer (gpt: clipping to 1).
Printed as Markdown, after every round: per program the median over the rounds of each run's median step, least and greatest
of these, and processor time of rank 0; then ratios. A run's first steps, which allocate and compile, do not count. FILE of
--out gets every line that a program prints. Without --braid-python TorchBraid's programs are left out. First of all the programs of
this network must have the same losses in a few steps with so many iterations that the solvers are exact. Of each is printed the
loss of its last step, the evaluations of a batch, and how far its gradient is from the exact one.
"""
import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
# Torch starts helper threads that would share the cores.
ENVIRONMENT = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", LC_ALL="C.UTF-8",
                   OMPI_MCA_btl_base_warn_component_unused="0")
# Both sides have the same blocks on the first stage.
PIPELINE = ["--batch-size=16", "--micro-batches=8"]
# Name, model, Plait or PyTorch, ranks, flags.
PROGRAMS = [
    ("gpt float32, Plait", "gpt", "plait", 1, []),
    ("gpt bfloat16, Plait", "gpt", "plait", 1, ["--dtype=bfloat16"]),
    ("gpt float32, PyTorch eager", "gpt", "torch", 1, []),
    ("gpt float32, PyTorch eager, fused AdamW", "gpt", "torch", 1, ["--fused"]),
    ("gpt float32, torch.compile", "gpt", "torch", 1, ["--compile"]),
    ("llama, Plait, 1 rank", "llama", "plait", 1, []),
    ("llama, PyTorch, 1 rank", "llama", "torch", 1, []),
    ("llama, Plait ddp", "llama", "plait", 2, ["--strategy=ddp"]),
    ("llama, Plait zero1", "llama", "plait", 2, ["--strategy=zero1"]),
    ("llama, Plait zero2", "llama", "plait", 2, ["--strategy=zero2"]),
    ("llama, Plait fsdp", "llama", "plait", 2, ["--strategy=fsdp"]),
    ("llama, Plait fsdp, kept after forward", "llama", "plait", 2, ["--strategy=fsdp", "--no-reshard-after-forward"]),
    ("llama, Plait tp", "llama", "plait", 2, ["--tp=2"]),
    ("llama, Plait tp, sequence parallel", "llama", "plait", 2, ["--tp=2", "--sequence-parallel"]),
    ("llama, PyTorch DTensor tp", "llama", "torch", 2, ["--strategy=tp"]),
    ("stages, Plait 1f1b", "llama", "plait", 2, ["--pp=2", *PIPELINE]),
    ("stages, Plait zb-h1", "llama", "plait", 2, ["--pp=2", *PIPELINE, "--pipeline-schedule=zb-h1"]),
    ("stages, PyTorch Schedule1F1B", "llama", "torch", 2, ["--strategy=pp", *PIPELINE]),
    ("llama, PyTorch DDP", "llama", "torch", 2, ["--strategy=ddp"]),
    ("llama, PyTorch ZeroRedundancyOptimizer", "llama", "torch", 2, ["--strategy=zero1"]),
    ("llama, PyTorch FSDP2", "llama", "torch", 2, ["--strategy=fsdp-keep-root"]),
    ("llama, PyTorch FSDP2, root dropped too", "llama", "torch", 2, ["--strategy=fsdp"]),
    ("odenet, Plait, 1 rank", "odenet", "plait", 1, []),
    ("odenet, TorchBraid, 1 rank", "odenet", "braid", 1, []),
    ("odenet, Plait, 2 ranks", "odenet", "plait", 2, []),
    ("odenet, TorchBraid, 2 ranks", "odenet", "braid", 2, []),
    ("odenet, Plait, 1 rank, 3 forward", "odenet", "plait", 1, ["--fwd-iters=3"]),
    ("odenet, Plait, 2 ranks, 3 forward", "odenet", "plait", 2, ["--fwd-iters=3"]),
    ("odenet, Plait, serial", "odenet", "plait", 1, ["--serial"]),
    ("odenet, PyTorch, serial", "odenet", "torch", 1, ["--serial"]),
    ("vit float32, Plait", "vit", "plait", 1, []),
    ("vit bfloat16, Plait", "vit", "plait", 1, ["--dtype=bfloat16"]),
    ("vit float32, PyTorch eager", "vit", "torch", 1, []),
    ("vit float32, torch.compile", "vit", "torch", 1, ["--compile"]),
    ("vit bfloat16, PyTorch eager", "vit", "torch", 1, ["--dtype=bfloat16"]),
]
RATIOS = [
    ("gpt float32, Plait", "gpt float32, PyTorch eager"),
    ("gpt float32, Plait", "gpt float32, torch.compile"),
    ("gpt bfloat16, Plait", "gpt float32, PyTorch eager"),
    ("llama, Plait, 1 rank", "llama, PyTorch, 1 rank"),
    ("llama, Plait ddp", "llama, PyTorch DDP"),
    ("llama, Plait zero1", "llama, PyTorch ZeroRedundancyOptimizer"),
    ("llama, Plait fsdp", "llama, PyTorch FSDP2"),
    ("llama, Plait fsdp", "llama, PyTorch FSDP2, root dropped too"),
    ("llama, Plait tp", "llama, PyTorch DTensor tp"),
    ("llama, Plait tp, sequence parallel", "llama, PyTorch DTensor tp"),
    ("stages, Plait 1f1b", "stages, PyTorch Schedule1F1B"),
    ("stages, Plait zb-h1", "stages, PyTorch Schedule1F1B"),
    ("odenet, Plait, 1 rank", "odenet, TorchBraid, 1 rank"),
    ("odenet, Plait, 2 ranks", "odenet, TorchBraid, 2 ranks"),
    ("odenet, Plait, 1 rank, 3 forward", "odenet, TorchBraid, 1 rank"),
    ("odenet, Plait, 2 ranks, 3 forward", "odenet, TorchBraid, 2 ranks"),
    ("odenet, Plait, serial", "odenet, PyTorch, serial"),
    ("odenet, Plait, 2 ranks", "odenet, PyTorch, serial"),
    ("odenet, Plait, 2 ranks", "odenet, Plait, serial"),
    ("vit float32, Plait", "vit float32, PyTorch eager"),
    ("vit float32, Plait", "vit float32, torch.compile"),
    ("vit bfloat16, Plait", "vit float32, PyTorch eager"),
]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def plait(args, model, ranks, flags):
    program = os.path.join(args.bin_dir, "tests/benchmarks", model + "_step")
    ranks_flag = [] if model == "vit" else [f"--nproc={ranks}"]
    return subprocess.run([program, *ranks_flag, *flags], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def braid(args, _, ranks, flags):
    command = ["mpirun", "--bind-to", "none", "-n", str(ranks), args.braid_python, os.path.join(FOLDER, "peer_odenet.py"),
               "--init=" + args.odenet_initial, *flags]
    return subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True).stdout


def torch(args, model, ranks, flags):
    if model in ("vit", "odenet"):
        init = ["--init=" + args.odenet_initial] if model == "odenet" else []
        return subprocess.run([args.python, os.path.join(FOLDER, f"peer_{model}.py"), *init, *flags], env=ENVIRONMENT,
                              stdout=subprocess.PIPE, text=True, check=True).stdout
    command = [args.python, os.path.join(FOLDER, "peer_step.py"), "--model=" + model, f"--ranks={ranks}",
               f"--port={free_port()}", *flags]
    processes = [subprocess.Popen([*command, f"--rank={rank}"], env=ENVIRONMENT, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True) for rank in range(ranks)]
    texts = [process.communicate()[0] for process in processes]
    if any(process.returncode != 0 for process in processes):
        raise SystemExit(f"failed: {' '.join(command)}; run it by hand to see why")
    return texts[0]


# Of the check; with an iteration for each C-point, and one, nothing is left to correct.
EXACT = ["--steps=3", "--learning-rate=0.1", "--fwd-iters=9", "--bwd-iters=9"]
# Of a loss. The longest sum is that of the closing layer, 2,352 products: its rounding in float32 is near sqrt(2352) 2^-24
# = 3e-6 of the sum of their magnitudes. Steps longer by 1 % change the last loss by 2e-4 of it, one image less by 8e-4.
TOLERANCE = 1e-5

RUN = {"plait": plait, "torch": torch, "braid": braid}


def check_losses(args, log, programs):
    """Ends the program if two of them, with the same values and exact solvers, do not have the same losses."""
    first, largest = None, 0
    for name, model, which, ranks, flags in programs:
        print("exact: " + name, file=sys.stderr, flush=True)
        out = RUN[which](args, model, ranks, [*flags, *EXACT])
        log.write(f"# {name}, exact\n{out}")
        losses = [float(loss) for loss in re.findall(r"loss=(\S+)", out)]
        first = first or losses
        if len(losses) != 3:
            raise SystemExit(f"{name}: expected 3 losses, has {losses}")
        largest = max([largest, *(abs(a - b) / abs(b) for a, b in zip(losses, first))])
        if not largest <= TOLERANCE:
            raise SystemExit(f"{name}: losses {losses}, but {programs[0][0]} has {first}: these are different computations")
    print(f"exact solvers: losses of {len(programs)} programs in 3 steps differ by at most {largest:.1e}; {first[-1]:.6f} at the end")


def measure(args, log, results, name, model, which, ranks, flags):
    steps = {"gpt": args.gpt_steps, "llama": args.llama_steps, "vit": args.vit_steps, "odenet": args.odenet_steps}[model]
    flags = [*flags, f"--steps={steps}"]
    out = RUN[which](args, model, ranks, flags)
    log.write(f"# {name}, load {os.getloadavg()[0]:.2f}\n{out}")
    log.flush()
    found = [(1e3 * float(dt), 1e3 * float(cpu)) for dt, cpu in re.findall(r"dt=(\S+) cpu=(\S+)", out)][args.left_out:]
    if model == "odenet":
        results[name] = re.findall(r"loss=(\S+)", out)[-1:] + re.findall(r"forward=.*", out)
    return statistics.median(dt for dt, _ in found), statistics.median(cpu for _, cpu in found)


def report(runs, results, rounds):
    print(f"\nAfter {rounds} rounds:\n\n| program | ms per step: median, least, greatest of rounds | CPU ms per step |\n|---|---|---|")
    median = {}
    for name, rows in runs.items():
        steps, processors = zip(*rows)
        median[name] = statistics.median(steps)
        print(f"| {name} | {median[name]:.1f}, {min(steps):.1f}, {max(steps):.1f} | {statistics.median(processors):.1f} |")
    for name, (loss, *work) in results.items():
        print(f"{name}: last loss {loss} {' '.join(work)}")
    print("\n| ratio of medians | wall | CPU |\n|---|---|---|")
    for mine, other in RATIOS:
        if mine in runs and other in runs:
            processors = [statistics.median(cpu for _, cpu in runs[name]) for name in (mine, other)]
            print(f"| {mine} over {other} | {median[mine] / median[other]:.2f} | {processors[0] / processors[1]:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin-dir", required=True)
    parser.add_argument("--python", required=True, help="with torch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gpt-steps", type=int, default=120)
    parser.add_argument("--llama-steps", type=int, default=20)
    parser.add_argument("--vit-steps", type=int, default=10)
    parser.add_argument("--odenet-steps", type=int, default=30)
    parser.add_argument("--braid-python", default="", help="with torch and TorchBraid")
    parser.add_argument("--left-out", type=int, default=5, help="first steps of a run")
    parser.add_argument("--only", default="", help="programs whose name begins so")
    parser.add_argument("--out", default=os.devnull)
    args = parser.parse_args()
    args.bin_dir = os.path.abspath(args.bin_dir)
    chosen = [program for program in PROGRAMS
              if program[0].startswith(args.only) and (program[2] != "braid" or args.braid_python)]
    odenets = [program for program in chosen if program[1] == "odenet"]
    runs, results = {}, {}
    with open(args.out, "w", encoding="utf-8") as log, tempfile.TemporaryDirectory() as folder:
        args.odenet_initial = os.path.join(folder, "odenet.safetensors")
        if odenets:
            plait(args, "odenet", 1, ["--steps=0", "--write-initial=" + args.odenet_initial])
            check_losses(args, log, [program for program in odenets if "--fwd-iters=3" not in program[4]])
        for count in range(args.rounds):
            for name, *program in chosen:
                print(f"round {count + 1}: {name}", file=sys.stderr, flush=True)
                runs.setdefault(name, []).append(measure(args, log, results, name, *program))
            report(runs, results, count + 1)


main()
