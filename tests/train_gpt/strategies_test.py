"""The same losses, gradients and estimates on any ranks, strategies and meshes."""
import re

import runs

RUNS = [
    ["--nproc=2"],
    ["--nproc=3", "--strategy=zero1"],
    ["--nproc=2", "--strategy=zero2", "--reduce-each-micro-batch"],
    ["--nproc=2", "--strategy=fsdp"],
    ["--nproc=2", "--strategy=fsdp", "--no-reshard-after-forward", "--no-prefetch"],
    ["--nproc=4", "--strategy=fsdp", "--mesh=dp_replicate=2,dp_shard=2", "--activation-checkpointing=every-2"],
    ["--nproc=2", "--strategy=zero1", "--offload=."],
    ["--nproc=2", "--strategy=fsdp", "--offload=.", "--offload-params"],
]
# A double's spacing at 1 is 2.2e-16. Sums of different order over 224 tokens, 25,000 parameters and 8 steps: measured
# differences are below 1e-15; 1e-12 is what the project promises.
TOLERANCE = 1e-12


class StrategiesTest(runs.TrainTest):
    def test_double_precision(self):
        # Every step is clipped, each by another factor: by the norm of all gradients, not of a rank's.
        flags = ["--dtype=float64", "--sample-tokens=0", "--grad-clip=0.1"]
        self.train("--nproc=1", *flags, outputs="one")
        one = self.numbers("one")
        self.assertTrue(all(float.fromhex(norm) > 0.1 for norm in one["gradient_norm"]))
        for count, mesh in enumerate(RUNS):
            with self.subTest(mesh=mesh):
                self.train(*mesh, *flags, outputs=f"run{count}")
                other = self.numbers(f"run{count}")
                for name in one:
                    for step, (x, y) in enumerate(zip(one[name], other[name])):
                        self.assertEqual(x == "nan", y == "nan")
                        if x != "nan":
                            x, y = float.fromhex(x), float.fromhex(y)
                            self.assertLessEqual(abs(x - y), TOLERANCE * abs(x), f"{name} of step {step + 1}")

    def test_muon(self):
        """Steps of whole matrices, wherever their parts are; moments in checkpoints."""
        flags = ["--dtype=float64", "--sample-tokens=0", "--optimizer=muon", "--learning-rate=1e-2"]
        self.train("--nproc=1", *flags, outputs="one")
        for name, mesh in (("fsdp", ["--nproc=3", "--strategy=fsdp"]), ("pp", ["--nproc=2", "--mesh=pp=2"]),
                           ("hsdp", ["--nproc=4", "--strategy=zero2", "--mesh=dp_replicate=2,dp_shard=2"])):
            run = self.train(*mesh, *flags, "--checkpoint-dir=" + name, "--checkpoint-interval=3", "--keep-last=0", outputs=name + "_run")
            self.assertIn("using Muon for matrices of blocks, fused AdamW for the others", run.out)
            self.expect_same("one", name + "_run")
        self.train("--nproc=1", *flags, "--resume=fsdp/step-000000003", outputs="rest")
        self.expect_same("one", "rest", skip=3)
        self.train("--nproc=1", *flags[:2], "--learning-rate=1e-2", outputs="adamw")
        self.assertNotEqual(self.numbers("one")["loss"], self.numbers("adamw")["loss"])

    def test_bytes_of_a_step(self):
        """All-reduced, or reduce-scattered and all-gathered: 2 (N - 1) / N of 4 bytes per parameter, once for all micro-batches."""
        for strategy, axis in (("ddp", "dp_replicate"), ("zero1", "dp_shard"), ("zero2", "dp_shard")):
            for ranks in (2, 3):
                out = f"{strategy}{ranks}"
                run = self.train(f"--nproc={ranks}", "--strategy=" + strategy, "--sample-tokens=0", "--max-iters=3", outputs=out)
                decayed, others = (int(count.replace(",", "")) for count in re.findall(r"tensors: \d+, with ([\d,]+) parameters", run.out))
                # Each operation's bytes are rounded down.
                least = -16 + 2 * (ranks - 1) / ranks * 4 * (decayed + others)
                for sent in self.history(out)["comm_bytes_" + axis]:
                    self.assertGreaterEqual(float.fromhex(sent), least)
                    # Each of 15 parameters begins at 64 bytes, and each unit's part of a rank too.
                    self.assertLessEqual(float.fromhex(sent), least + 16 + 2 * 64 * (15 + 4 * ranks))

    def test_reruns_have_the_same_bits(self):
        flags = ["--nproc=2", "--strategy=fsdp", "--dropout=0.2"]
        self.train(*flags, outputs="first")
        self.train(*flags, outputs="second")
        self.assertEqual(self.numbers("first"), self.numbers("second"))
        self.train(*flags, "--seed=2", outputs="third")
        self.assertNotEqual(self.numbers("first")["loss"], self.numbers("third")["loss"])
        self.train("--nproc=2", "--strategy=fsdp", outputs="fourth")
        self.assertNotEqual(self.numbers("first")["loss"], self.numbers("fourth")["loss"])

    def test_activation_checkpoints_change_no_bit(self):
        flags = ["--nproc=2", "--strategy=fsdp", "--dropout=0.2"]
        self.train(*flags, outputs="plain")
        self.train(*flags, "--activation-checkpointing=full", outputs="checkpointed")
        self.assertEqual(self.numbers("plain"), self.numbers("checkpointed"))

    def test_narrow_types(self):
        self.train("--nproc=2", "--strategy=fsdp", outputs="float32")
        whole, norms = ([float.fromhex(x) for x in self.numbers("float32")[name]] for name in ("loss", "gradient_norm"))
        for dtype, spacing in (("bfloat16", 2.0**-8), ("float16", 2.0**-11)):
            self.train("--nproc=2", "--strategy=fsdp", "--dtype=" + dtype, outputs=dtype)
            narrow = [float.fromhex(x) for x in self.numbers(dtype)["loss"]]
            self.assertNotEqual(narrow, whole)
            for x, y in zip(whole, narrow):
                # Rounded at each of some ten stages of the pass, the parameters too; not their sum: they differ in sign.
                self.assertLess(abs(x - y), 10 * spacing * x)
            # Not those of a scaled loss.
            for x, y in zip(norms, (float.fromhex(norm) for norm in self.numbers(dtype)["gradient_norm"])):
                self.assertLess(abs(x - y), 30 * spacing * x)


if __name__ == "__main__":
    runs.main()
