"""Steps that plan predicts beside steps that train_llama takes, mesh by mesh.

  bazel build //tools:plan //tools:train_llama
  python3 tests/benchmarks/plan_beside_steps.py --bin-dir bazel-bin

First `plan --calibrate` measures this machine on 2 ranks. Then each mesh is planned and run in turn, in rounds. A line per mesh: predicted
milliseconds per step, the median over the rounds of a run's median and least step, and predicted / measured.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

MODEL = ["--n-layers=8", "--dim=256", "--n-heads=16", "--n-kv-heads=8", "--hidden=720", "--vocab-size=8000",
         "--seq-length=128"]
# Ranks, mesh, further flags. 16 sequences in a step.
MESHES = [
    (1, "", ["--batch-size=16"]),
    (1, "", ["--batch-size=4", "--gradient-accumulation-steps=4"]),
    (2, "dp_replicate=2", ["--strategy=ddp", "--batch-size=8"]),
    (2, "dp_shard=2", ["--strategy=zero1", "--batch-size=8"]),
    (2, "dp_shard=2", ["--strategy=zero2", "--batch-size=8"]),
    (2, "dp_shard=2", ["--strategy=fsdp", "--batch-size=8"]),
    (2, "tp=2", ["--strategy=ddp", "--batch-size=16"]),
    (2, "tp=2", ["--strategy=ddp", "--batch-size=16", "--sequence-parallel"]),
    (2, "pp=2", ["--strategy=ddp", "--batch-size=4", "--gradient-accumulation-steps=4"]),
    (2, "pp=2", ["--strategy=ddp", "--batch-size=4", "--gradient-accumulation-steps=4", "--pipeline-schedule=zb-h1"]),
    (4, "dp_shard=4", ["--strategy=fsdp", "--batch-size=4"]),
    (4, "dp_shard=2,tp=2", ["--strategy=fsdp", "--batch-size=8"]),
    (4, "pp=2,tp=2", ["--strategy=ddp", "--batch-size=4", "--gradient-accumulation-steps=4"]),
    (4, "pp=4", ["--strategy=ddp", "--batch-size=2", "--gradient-accumulation-steps=8"]),
    (8, "pp=2,dp_shard=2,tp=2", ["--strategy=fsdp", "--batch-size=2", "--gradient-accumulation-steps=4"]),
]


def run(command, **kwargs):
    done = subprocess.run(command, capture_output=True, text=True, **kwargs)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def flags_of(mesh):
    ranks, axes, flags = mesh
    return MODEL + flags + [f"--nproc={ranks}"] + ([f"--mesh={axes}"] if axes else ["--strategy=ddp"])


def predicted_ms(args, cluster, mesh):
    flags = flags_of(mesh)
    if not mesh[1]:
        flags.append("--mesh=dp_replicate=1")
    out = run([f"{args.bin_dir}/tools/plan", "llama", f"--cluster={cluster}"] + flags)
    line = next(l for l in out.splitlines() if re.match(r" +1  ", l))
    return float(re.search(r" ([0-9.]+) +[0-9.,]+  ", line[80:]).group(1))


def measured_ms(args, mesh):
    with tempfile.TemporaryDirectory() as folder:
        out = run([f"{args.bin_dir}/tools/train_llama", f"--max-iters={args.steps}", f"--outputs={folder}", "--noplots"] +
                  flags_of(mesh))
    steps = [float(m) for m in re.findall(r"\bdt=([0-9.eE+-]+)", out)]
    if len(steps) <= args.left_out:
        sys.exit(f"no times of steps in the output of train_llama {flags_of(mesh)}:\n{out[-2000:]}")
    return [1e3 * s for s in steps[args.left_out:]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin-dir", default="bazel-bin")
    parser.add_argument("--cluster", default="", help="a cluster file, in place of calibration")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--left-out", type=int, default=2)
    args = parser.parse_args()
    args.bin_dir = os.path.abspath(args.bin_dir)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        cluster = args.cluster
        if not cluster:
            cluster = f"{folder}/machine.txt"
            print(run([f"{args.bin_dir}/tools/plan", "llama", f"--calibrate={cluster}", "--nproc=2", "--batch-size=8"] + MODEL))
        medians, least = [[] for _ in MESHES], [[] for _ in MESHES]
        for _ in range(args.rounds):
            for i, mesh in enumerate(MESHES):
                steps = measured_ms(args, mesh)
                medians[i].append(statistics.median(steps))
                least[i].append(min(steps))
        print("| mesh | predicted ms | measured ms (least step) | predicted / measured |\n|---|---|---|---|")
        for i, mesh in enumerate(MESHES):
            ms, median = predicted_ms(args, cluster, mesh), statistics.median(medians[i])
            name = " ".join([mesh[1] or "1 rank"] + mesh[2])
            print(f"| {name} | {ms:.1f} | {median:.1f} ({min(least[i]):.1f}) | {ms / median:.2f} |")
        print("load", os.getloadavg())


if __name__ == "__main__":
    main()
