"""Steps that plan predicts beside steps that the trainers take, mesh by mesh.

  bazel build //tools:plan //tools:train_gpt //tools:train_llama //tools:train_vit
  python3 tests/benchmarks/plan_beside_steps.py --bin-dir bazel-bin --models=llama,gpt,vit --rounds=1

For each model `plan --calibrate` first measures this machine on 2 ranks with that model's products. Then each mesh is planned and run in
turn, in rounds. A line per mesh: predicted milliseconds per step, the median over the rounds of a run's median and
least step, and predicted / measured. One round of all models takes two minutes on two cores.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

# Flags of the model, and meshes: ranks, mesh, further flags.
MODELS = {
    "llama": (["--n-layers=8", "--dim=256", "--n-heads=16", "--n-kv-heads=8", "--hidden=720", "--vocab-size=8000", "--seq-length=128",
               "--eval-interval=0"], [
        (1, "", ["--batch-size=16"]),
        (1, "", ["--batch-size=4", "--gradient-accumulation-steps=4"]),
        (1, "", ["--batch-size=16", "--dtype=bfloat16"]),
        (2, "dp_replicate=2", ["--strategy=ddp", "--batch-size=8"]),
        (2, "dp_shard=2", ["--strategy=zero1", "--batch-size=8"]),
        (2, "dp_shard=2", ["--strategy=zero2", "--batch-size=8"]),
        (2, "dp_shard=2", ["--strategy=fsdp", "--batch-size=8"]),
        (2, "dp_shard=2", ["--strategy=fsdp", "--batch-size=8", "--dtype=bfloat16"]),
        (2, "cp=2", ["--strategy=ddp", "--batch-size=16"]),
        (2, "cp=2", ["--strategy=ddp", "--batch-size=16", "--context-attention=ulysses"]),
        (2, "tp=2", ["--strategy=ddp", "--batch-size=16"]),
        (2, "tp=2", ["--strategy=ddp", "--batch-size=16", "--sequence-parallel"]),
        (2, "pp=2", ["--strategy=ddp", "--batch-size=4", "--gradient-accumulation-steps=4"]),
        (2, "pp=2", ["--strategy=ddp", "--batch-size=4", "--gradient-accumulation-steps=4", "--pipeline-schedule=zb-h1"]),
        (4, "dp_shard=4", ["--strategy=fsdp", "--batch-size=4"]),
        (4, "dp_replicate=2,dp_shard=2", ["--strategy=fsdp", "--batch-size=4"]),
        (4, "dp_shard=2,tp=2", ["--strategy=fsdp", "--batch-size=8"]),
        (4, "pp=2,tp=2", ["--strategy=ddp", "--batch-size=4", "--gradient-accumulation-steps=4"]),
        (4, "pp=4", ["--strategy=ddp", "--batch-size=2", "--gradient-accumulation-steps=8"]),
        (8, "pp=2,dp_shard=2,tp=2", ["--strategy=fsdp", "--batch-size=2", "--gradient-accumulation-steps=4"]),
    ]),
    "gpt": (["--n-layer=6", "--n-embd=256", "--n-head=8", "--block-size=128", "--dropout=0", "--eval-interval=0",
             "--log-interval=1"], [
        (1, "", ["--batch-size=16"]),
        (2, "dp_shard=2", ["--strategy=zero1", "--batch-size=8"]),
        (2, "tp=2", ["--strategy=ddp", "--batch-size=16", "--sequence-parallel"]),
        (2, "cp=2", ["--strategy=fsdp", "--batch-size=16"]),
        (2, "pp=2", ["--strategy=ddp", "--batch-size=4", "--gradient-accumulation-steps=4"]),
    ]),
    "vit": (["--preset=cpu"], [
        (1, "", ["--batch-size=32"]),
        (2, "dp_shard=2", ["--strategy=fsdp", "--batch-size=16"]),
        (2, "tp=2", ["--strategy=ddp", "--batch-size=32", "--sequence-parallel"]),
        (2, "cp=2", ["--strategy=ddp", "--batch-size=32"]),
        (2, "pp=2", ["--strategy=ddp", "--batch-size=8", "--gradient-accumulation-steps=4"]),
    ]),
}


def run(command, **kwargs):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", **kwargs)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def flags_of(model, mesh):
    ranks, axes, flags = mesh
    return MODELS[model][0] + flags + [f"--nproc={ranks}"] + ([f"--mesh={axes}"] if axes else ["--strategy=ddp"])


def vocabulary(args, model):
    """The flag that tells plan how many characters the text of train_gpt has."""
    if model != "gpt":
        return []
    out = trained(args, model, (1, "", ["--batch-size=1"]), steps=1)
    return ["--vocab-size=" + re.search(r"^vocab size: ([0-9,]+)", out, re.MULTILINE).group(1).replace(",", "")]


def predicted_ms(args, model, cluster, mesh, more):
    flags = flags_of(model, mesh) + more
    if not mesh[1]:
        flags.append("--mesh=dp_replicate=1")
    out = run([f"{args.bin_dir}/tools/plan", model, f"--cluster={cluster}"] + flags)
    line = next(l for l in out.splitlines() if re.match(r" +1  ", l))
    return float(re.search(r" ([0-9.]+) +[0-9.,]+  ", line[80:]).group(1))


def trained(args, model, mesh, steps):
    with tempfile.TemporaryDirectory() as folder:
        return run([f"{args.bin_dir}/tools/train_{model}", f"--max-iters={steps}", f"--outputs={folder}", "--noplots"] + flags_of(model, mesh))


def measured_ms(args, model, mesh):
    out = trained(args, model, mesh, args.steps)
    steps = [float(m) for m in re.findall(r"\bdt=([0-9.eE+-]+)", out)]
    if len(steps) <= args.left_out:
        sys.exit(f"no times of steps in the output of train_{model} {flags_of(model, mesh)}:\n{out[-2000:]}")
    return [1e3 * s for s in steps[args.left_out:]]


def compare(args, model, folder):
    meshes = [m for m in MODELS[model][1] if args.only in " ".join([m[1]] + m[2])]
    cluster, more = args.cluster, vocabulary(args, model)
    if not cluster:
        cluster = f"{folder}/{model}.txt"
        print(run([f"{args.bin_dir}/tools/plan", model, f"--calibrate={cluster}", "--nproc=2", "--batch-size=8"] + MODELS[model][0] + more))
    medians, least = [[] for _ in meshes], [[] for _ in meshes]
    for _ in range(args.rounds):
        for i, mesh in enumerate(meshes):
            steps = measured_ms(args, model, mesh)
            medians[i].append(statistics.median(steps))
            least[i].append(min(steps))
    rows = []
    for i, mesh in enumerate(meshes):
        ms, median = predicted_ms(args, model, cluster, mesh, more), statistics.median(medians[i])
        name = " ".join([model, mesh[1] or "1 rank"] + mesh[2])
        rows.append(f"| {name} | {ms:.1f} | {median:.1f} ({min(least[i]):.1f}) | {ms / median:.2f} |")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin-dir", default="bazel-bin")
    parser.add_argument("--models", default="llama,gpt,vit")
    parser.add_argument("--only", default="", help="meshes in whose line this text is")
    parser.add_argument("--cluster", default="", help="a cluster file, in place of calibration")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--left-out", type=int, default=2)
    args = parser.parse_args()
    args.bin_dir = os.path.abspath(args.bin_dir)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    begin = time.time()
    with tempfile.TemporaryDirectory() as folder:
        for model in args.models.split(","):
            rows = compare(args, model, folder)
            print("| mesh | predicted ms | measured ms (least step) | predicted / measured |\n|---|---|---|---|")
            print("\n".join(rows), flush=True)
    print(f"{time.time() - begin:.0f} s, load", os.getloadavg())


if __name__ == "__main__":
    main()
