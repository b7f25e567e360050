"""The same batches give the same network, whatever the ranks, the mesh and the strategy."""
import runs

# As in tests/train_cnn/ranks_test.py: sums of some hundred terms in another order, 100 eps of a gradient, in each of 6
# steps; AdamW enlarges that up to a thousandfold relative to gradients near zero; 6 * 100 * 1000 * 2^-53 = 7e-11, times
# the learning rate over the parameters' size, 2e-3 / 0.02.
TOLERANCE = 7e-12


class RanksTest(runs.VitTest):
    def compare(self, *flags, ranks, name):
        # 24 samples in a step; the last one of an epoch has 22.
        same = ["--dtype=float64", "--augment=pad-crop", "--epochs=2"]
        run, model = self.model(*same, *flags, f"--batch-size={24 // ranks}", ranks=ranks, name=name)
        if not hasattr(self, "one"):
            self.one_run, self.one = self.model(*same, "--batch-size=24", ranks=1, name="one")
        self.assertLess(self.difference(self.one, model), TOLERANCE, flags)
        self.assertEqual(run.losses(), self.one_run.losses())
        self.assertEqual(run.tests(), self.one_run.tests())

    def test_strategies(self):
        for strategy in ("ddp", "zero1", "zero2", "fsdp"):
            self.compare("--strategy=" + strategy, ranks=2, name=strategy)

    def test_meshes(self):
        self.compare("--strategy=fsdp", "--mesh=dp_replicate=2,dp_shard=2", ranks=4, name="hybrid")

    def test_micro_batches_and_activation_checkpoints(self):
        self.compare("--gradient-accumulation-steps=3", "--global-batch-size=8", "--activation-checkpointing=full", ranks=2,
                     name="micro")

    def test_reproducible(self):
        # Of float32, with dropout, unequal leaves in the last step, and test batches that 4 ranks cannot share equally.
        same = ["--reproducible", "--global-batch-size=24", "--dropout=0.1", "--augment=pad-crop", "--epochs=2", "--test-batch-size=7"]
        one_run, one = self.model(*same, ranks=1, name="one")
        for name, *mesh in (("sharded", "--strategy=fsdp", "--mesh=dp_replicate=2,dp_shard=2"),
                            ("stages", "--strategy=zero1", "--mesh=pp=2,dp_shard=2")):
            with self.subTest(name):
                run, model = self.model(*same, *mesh, ranks=4, name=name)
                self.assert_same_bits(one, model)
                self.assertEqual(run.losses(), one_run.losses())
                self.assertEqual(run.tests(), one_run.tests())
        _, plain = self.model(*same, "--no-reproducible", ranks=4, name="plain")
        self.assertGreater(self.difference(one, plain), 0)

    def test_stages(self):
        """The last stage tests, also where others have none of the images; two blocks."""
        micro_batches = ["--gradient-accumulation-steps=3"]
        self.compare("--mesh=pp=2", "--global-batch-size=8", *micro_batches, ranks=2, name="stages")
        self.compare("--mesh=pp=2,dp_shard=2", "--strategy=fsdp", "--pipeline-schedule=zb-h1", "--global-batch-size=8",
                     *micro_batches, ranks=4, name="sharded_stages")
        self.compare("--mesh=pp=2,tp=2", "--global-batch-size=8", *micro_batches, ranks=4, name="split_stages")

    def test_parts_of_sequences(self):
        self.compare("--mesh=cp=2", "--attn=math", "--global-batch-size=24", ranks=2, name="parts")
        self.compare("--mesh=dp_shard=2,cp=2", "--strategy=fsdp", "--context-attention=ulysses", "--global-batch-size=24",
                     ranks=4, name="sharded_parts")

    def test_parts_of_no_sequence(self):
        """Steps of 2 images; the last one of an epoch has one, so that one of the data ranks has none."""
        same = ["--dtype=float64", "--max-samples=9", "--epochs=1", "--global-batch-size=2"]
        one_run, one = self.model(*same, ranks=1, name="one")
        for kind in ("ring", "ulysses"):
            run, model = self.model(*same, "--mesh=dp_replicate=2,cp=2", "--context-attention=" + kind, ranks=4, name=kind)
            self.assertLess(self.difference(one, model), TOLERANCE)
            self.assertEqual(run.losses(), one_run.losses())

    def test_parts_of_sequences_in_stages(self):
        """Tests take whole sequences, of as many images as a micro-batch."""
        self.compare("--mesh=pp=2,cp=2", "--gradient-accumulation-steps=2", "--global-batch-size=12", "--test-batch-size=12", ranks=4,
                     name="parts_in_stages")

    def test_attention_kinds(self):
        self.compare("--attn=math", ranks=1, name="math")

    def test_ranks_without_samples(self):
        # 25 = 24 + 1: in the second step, and in the test's third pass, one rank has none.
        flags = ["--dtype=float64", "--max-samples=25", "--strategy=fsdp"]
        run, model = self.model(*flags, "--batch-size=12", "--test-batch-size=10", ranks=2, name="two")
        one_run, one = self.model(*flags, "--batch-size=24", "--test-batch-size=7", ranks=1, name="one")
        self.assertLess(self.difference(one, model), TOLERANCE)
        self.assertEqual(run.tests(), one_run.tests())

    def test_reruns_have_the_same_bits(self):
        for dtype in ("float32", "bf16"):
            flags = ["--dtype=" + dtype, "--dropout=0.1", "--augment=resized-crop"]
            _, first = self.model(*flags, name=dtype)
            _, second = self.model(*flags, name=dtype + "_again")
            self.assert_same_bits(first, second)


if __name__ == "__main__":
    runs.main()
