"""The same batches give the same network, whatever the ranks, the mesh and the strategy."""
import os
import subprocess

import runs

# Sums of some hundred terms in another order: 100 eps of a gradient, in each of 12 steps. AdamW divides by the root
# of its second moment, so that this counts as much relative to a gradient near zero: a thousand times more where it is a
# thousandth of the others. 12 * 100 * 1000 * 2^-53 = 1.3e-10, times the learning rate over the parameters' size, 1e-3 / 0.1.
TOLERANCE = 1e-11


class RanksTest(runs.CnnTest):
    def compare(self, *flags, ranks, name, both=("--dtype=float64",)):
        # With dropout. 24 samples in a step; the last one of an epoch has 10.
        run, model = self.model(*both, *flags, f"--batch-size={24 // ranks}", ranks=ranks, name=name)
        if not hasattr(self, "one"):
            self.one_run, self.one = self.model(*both, "--batch-size=24", ranks=1, name="one")
        self.assertLess(self.difference(self.one, model), TOLERANCE, flags)
        for a, b in zip(self.one_run.epochs(), run.epochs(), strict=True):
            self.assertEqual({**a, "dt": 0}, {**b, "dt": 0})

    def test_strategies(self):
        for strategy in ("ddp", "zero1", "zero2", "fsdp"):
            self.compare("--strategy=" + strategy, ranks=2, name=strategy)

    def test_ranks_without_samples(self):
        # 27 = 24 + 3: in the second step, and in the test's second pass, one of four ranks has none.
        few = ["--dtype=float64", "--max-samples=27"]
        run, model = self.model(*few, "--batch-size=6", "--test-batch-size=6", ranks=4, name="four")
        _, single = self.model(*few, "--batch-size=24", "--test-batch-size=24", ranks=1, name="one")
        self.assertLess(self.difference(single, model), TOLERANCE)
        for epoch in run.epochs():
            correct = float(epoch["test_acc"]) * 27 / 100
            self.assertAlmostEqual(correct, round(correct), delta=1e-4)

    def test_micro_batches(self):
        # Micro-batches have masks of their own.
        self.compare("--gradient-accumulation-steps=3", "--global-batch-size=8", ranks=2, name="micro",
                     both=("--dtype=float64", "--dropout1=0", "--dropout2=0"))

    def test_ranks_with_different_flags_are_told(self):
        one = [runs.PROGRAM, "--data=" + self.images, "--no-plots", "--outputs=" + self.path("out")]
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "1", *one, ":", "-n", "1", *one, "--seed=5"]
        process = subprocess.run(command, capture_output=True, text=True, env=self.environment(), cwd=self.folder, timeout=100)
        self.assertNotEqual(process.returncode, 0)
        errors = runs.Run(process.returncode, process.stdout, process.stderr).errors_of_ranks()
        self.assertIn("train_cnn: ranks were started with different flags: --seed=1 on rank 0 and --seed=5 on rank 1; start all "
                      "ranks with the same command line", [error.strip() for error in errors])
        self.assertNotIn("epoch=", process.stdout)

    def test_hybrid_mesh(self):
        self.compare("--mesh=dp_replicate=2,dp_shard=2", ranks=4, name="hybrid")

    def test_reproducible(self):
        # Of float32, with dropout, unequal leaves in the last step of an epoch, and test batches of unequal shares.
        same = ["--reproducible", "--global-batch-size=24", "--test-batch-size=7"]
        one_run, one = self.model(*same, ranks=1, name="one")
        for name, *mesh in (("sharded", "--strategy=fsdp", "--mesh=dp_replicate=2,dp_shard=2"), ("replicated", "--strategy=ddp")):
            with self.subTest(name):
                run, model = self.model(*same, *mesh, ranks=4, name=name)
                self.assert_same_bits(one, model)
                for a, b in zip(one_run.epochs(), run.epochs(), strict=True):
                    self.assertEqual({**a, "dt": 0}, {**b, "dt": 0})
        _, plain = self.model(*same, "--no-reproducible", ranks=4, name="plain")
        self.assertGreater(self.difference(one, plain), 0)

    def test_activation_checkpoints_have_the_same_bits(self):
        _, plain = self.model(name="plain")
        for policy in ("full", "conv2,fc1"):
            _, model = self.model("--activation-checkpointing=" + policy, name=policy)
            self.assert_same_bits(plain, model)

    def test_offloaded_moments_have_the_same_bits(self):
        for strategy in ("ddp", "zero1", "fsdp"):
            run, plain = self.model("--strategy=" + strategy, name=strategy)
            offloaded_run, offloaded = self.model("--strategy=" + strategy, "--offload=" + self.shared,
                                                  name=strategy + "_offloaded")
            self.assert_same_bits(plain, offloaded)
            self.assertNotIn("MB in a file", run.out)
            self.assertIn("MB in a file", offloaded_run.out)
        self.assertEqual(os.listdir(self.shared), ["images"])  # nothing is left behind

    def test_offloaded_parameters_have_the_same_bits(self):
        for dtype in ("float32", "bfloat16"):
            flags = ["--strategy=fsdp", "--dtype=" + dtype]
            run, plain = self.model(*flags, name=dtype)
            offloaded_run, offloaded = self.model(*flags, "--offload=" + self.shared, "--offload-params",
                                                  name=dtype + "_offloaded")
            self.assert_same_bits(plain, offloaded)
            self.assertNotIn("MB in a file", run.out)
            self.assertIn("MB in a file", offloaded_run.out)

    def test_reruns_have_the_same_bits(self):
        for dtype in ("float32", "bfloat16"):
            _, first = self.model("--dtype=" + dtype, name=dtype)
            _, second = self.model("--dtype=" + dtype, name=dtype + "_again")
            self.assert_same_bits(first, second)


if __name__ == "__main__":
    runs.main()
