"""The trainers and meshes that faults strike, with the smallest settings that have several checkpoints, and their data."""
import os
import random

GPT = ["--n-layer=2", "--n-head=2", "--n-embd=16", "--block-size=8", "--global-batch-size=8", "--gradient-accumulation-steps=2",
       "--max-iters=24", "--eval-interval=12", "--eval-iters=2", "--sample-tokens=5", "--log-interval=1", "--dropout=0.1",
       "--no-trace", "--data=text.txt", "--checkpoint-interval=5", "--peak-flops=none"]
LLAMA = ["--n-layers=2", "--n-heads=2", "--n-kv-heads=2", "--dim=16", "--hidden=20", "--vocab-size=30", "--seq-length=8",
         "--global-batch-size=4", "--max-iters=24", "--checkpoint-interval=5", "--peak-flops=none"]
GRU = ["--percent-data=0.05", "--batch-size=20", "--hidden-size=6", "--log-interval=1", "--epochs=3", "--force-lp"]
CNN = ["--data=images", "--batch-size=8", "--test-batch-size=8", "--epochs=4", "--checkpoint-interval=5"]
VIT = ["--preset=cpu", "--patch-size=8", "--dim=16", "--depth=2", "--heads=2", "--head-dim=8", "--mlp-dim=24", "--dropout=0.1",
       "--augment=pad-crop", "--max-samples=64", "--batch-size=8", "--max-iters=20", "--checkpoint-interval=6"]
ODENET = ["--layers=8", "--samples=400", "--validation-samples=50", "--batch-size=50", "--epochs=4", "--checkpoint-interval=7"]
# Features of the frames are computed in the run's own folder.
VIDEO = ["--sequence-length=8", "--frame-size=32", "--hidden-size=8", "--lp-levels=2", "--lp-cfactor=2", "--synthetic-videos=10",
         "--synthetic-classes=2", "--batch-size=5", "--epochs=8", "--features-dir=features", "--checkpoint-interval=3", "--force-lp"]
MOE = ["--moe", "--moe-experts=4", "--moe-hidden=12", "--moe-gate=bias", "--moe-bias-rate=0.05"]

# Name: program, ranks, flags.
CASES = {
    "gpt": ("train_gpt", 1, GPT),
    "gpt-ddp": ("train_gpt", 2, [*GPT, "--strategy=ddp"]),
    "gpt-zero1": ("train_gpt", 2, [*GPT, "--strategy=zero1"]),
    "gpt-fsdp": ("train_gpt", 2, [*GPT, "--strategy=fsdp"]),
    "gpt-tp": ("train_gpt", 2, [*GPT, "--mesh=tp=2"]),
    "gpt-pp": ("train_gpt", 2, [*GPT, "--mesh=pp=2"]),
    "gpt-cp": ("train_gpt", 2, [*GPT, "--mesh=cp=2"]),
    "gpt-hsdp": ("train_gpt", 4, [*GPT, "--mesh=dp_replicate=2,dp_shard=2", "--strategy=fsdp"]),
    "gpt-lp": ("train_gpt", 2, [*GPT, "--n-layer=4", "--lp-cfactor=2", "--mesh=lp=2"]),
    "gpt-moe": ("train_gpt", 2, [*GPT, *MOE, "--mesh=dp_shard=2,ep=2", "--strategy=fsdp"]),
    "gpt-half": ("train_gpt", 2, [*GPT, "--strategy=zero1", "--dtype=float16"]),
    "gpt-pp-fsdp": ("train_gpt", 4, [*GPT, "--mesh=pp=2,dp_shard=2", "--strategy=fsdp"]),
    "llama": ("train_llama", 1, LLAMA),
    "llama-fsdp-tp": ("train_llama", 4, [*LLAMA, "--mesh=dp_shard=2,tp=2", "--strategy=fsdp"]),
    "gru": ("train_gru", 1, GRU),
    "gru-lp": ("train_gru", 2, GRU),
    "cnn": ("train_cnn", 1, CNN),
    "cnn-fsdp": ("train_cnn", 3, [*CNN, "--strategy=fsdp"]),
    "vit": ("train_vit", 1, VIT),
    "vit-zero1": ("train_vit", 2, [*VIT, "--strategy=zero1"]),
    "video": ("train_video", 1, VIDEO),
    "video-lp": ("train_video", 2, VIDEO),
    "odenet": ("train_odenet", 1, [*ODENET, "--nested", "--nested-levels=2", "--nested-epochs=2"]),
    "odenet-lp": ("train_odenet", 2, [*ODENET, "--mesh=lp=2"]),
}


def write_data(folder):
    """A text, and images in MNIST's files; the same every time."""
    numbers = random.Random(5)
    words = "to be or not that is the question whether nobler in mind suffer slings arrows".split()
    with open(os.path.join(folder, "text.txt"), "w", encoding="utf-8") as file:
        file.write("".join(numbers.choice(words) + numbers.choice("  \n.,") for _ in range(1000)))
    os.mkdir(os.path.join(folder, "images"))
    for name, samples in (("train", 50), ("t10k", 10)):
        for kind, head, size in (("images-idx3", [0x803, samples, 10, 10], 100), ("labels-idx1", [0x801, samples], 1)):
            content = bytes(numbers.randrange(256 if size > 1 else 10) for _ in range(samples * size))
            with open(os.path.join(folder, "images", f"{name}-{kind}-ubyte"), "wb") as file:
                file.write(b"".join(number.to_bytes(4, "big") for number in head) + content)


def command(case, programs, data, folder, timeout):
    """The command that is given again and again until the run is done."""
    program, ranks, flags = CASES[case]
    flags = [flag.replace("--data=", f"--data={data}/") for flag in flags]
    return [os.path.join(programs, program), *flags, f"--nproc={ranks}", f"--timeout={timeout}", "--no-plots",
            f"--checkpoint-dir={folder}/kept", "--resume=auto", f"--outputs={folder}/out", f"--history={folder}/history.h5"]
