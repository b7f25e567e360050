"""A mixture of experts: the numbers of one rank on any mesh, with every gate; checkpoints; loads; bad input."""
import runs

FLAGS = ["--dtype=float64", "--sample-tokens=5", "--dropout=0.1", "--n-head=4", "--moe", "--moe-experts=5", "--moe-hidden=24"]
RUNS = [
    ["--mesh=dp_replicate=2,ep=2"],
    ["--mesh=dp_shard=4,ep=4", "--strategy=fsdp"],
    ["--mesh=dp_shard=4,ep=2", "--strategy=zero2", "--moe-chunks=2"],
    ["--mesh=dp_replicate=2,dp_shard=2,ep=4", "--strategy=fsdp", "--moe-replicas=balanced"],
    ["--mesh=pp=2,dp_shard=2,ep=2", "--strategy=fsdp", "--moe-replicas=eplb", "--moe-replica-slots=1"],
    ["--mesh=pp=2,dp_replicate=2,ep=2", "--pipeline-schedule=zb-h1"],
    ["--mesh=dp_replicate=2,tp=2,ep=2", "--sequence-parallel"],
    ["--mesh=dp_shard=2,cp=2,ep=4", "--strategy=fsdp", "--activation-checkpointing=full"],
]
GATES = [
    ["--moe-gate=noisy-top-k", "--moe-z-weight=0.01", "--moe-shared-hidden=6"],
    ["--moe-gate=switch", "--moe-top-k=1", "--moe-capacity-factor=1.1"],
    ["--moe-gate=gshard", "--moe-every=2"],
    ["--moe-gate=bias", "--moe-bias-rate=0.05"],
]


class ExpertsTest(runs.TrainTest):
    def test_is_one_rank(self):
        self.train("--nproc=1", *FLAGS, outputs="one")
        for count, mesh in enumerate(RUNS):
            with self.subTest(mesh=mesh):
                self.train(*FLAGS, *mesh, outputs=f"run{count}")
                self.expect_same("one", f"run{count}")

    def test_every_gate(self):
        for count, gate in enumerate(GATES):
            with self.subTest(gate=gate):
                self.train("--nproc=1", *FLAGS, *gate, outputs=f"one{count}")
                self.train(*FLAGS, *gate, *RUNS[0], outputs=f"two{count}")
                self.expect_same(f"one{count}", f"two{count}")

    def test_checkpoints_go_on_on_any_mesh(self):
        flags = [*FLAGS, *GATES[3]]
        kept = ["--checkpoint-interval=5", "--keep-last=0"]
        self.train("--nproc=1", *flags, *kept, "--checkpoint-dir=of_one", outputs="one")
        self.train(*flags, *kept, *RUNS[3], "--checkpoint-dir=of_four", outputs="four")
        # Every rank of tp has the router's bias, which is no parameter.
        self.train(*flags, *kept, *RUNS[6], "--checkpoint-dir=of_tp", outputs="tp")
        for count, (mesh, folder) in enumerate([(["--nproc=1"], "of_four"), (RUNS[2], "of_four"), (RUNS[6], "of_one"), (["--nproc=1"], "of_tp"),
                                                (["--mesh=dp_replicate=3,ep=3"], "of_four")]):
            with self.subTest(mesh=mesh, folder=folder):
                self.train(*mesh, *flags, f"--resume={folder}/step-000000005", outputs=f"again{count}")
                self.expect_same("one", f"again{count}", skip=5)
        # The model is in the checkpoint.
        run = self.generate(f"--checkpoint={self.path('of_four')}", "--max-new-tokens=5")
        self.assertIn("5 tokens in", run.out)

    def test_routers_that_fail_are_named(self):
        run = self.train(*FLAGS, *RUNS[0], "--dtype=float32", "--learning-rate=1e38", "--min-lr=0", "--grad-clip=0",
                         "--warmup-iters=0", "--eval-interval=0", code=1)
        self.assertRegex(run.err, r"the loss is -?nan in step 2.*: logits of the router of layer 0 for \d+ tokens")

    def test_bad_input(self):
        table = [
            ("--mesh=dp_replicate=2,ep=2: a model without experts; expected --moe", "--mesh=dp_replicate=2,ep=2", "--no-moe"),
            ("--mesh=dp_replicate=4,ep=3: ep=3 for dp_replicate=4 and dp_shard=1", "--mesh=dp_replicate=4,ep=3"),
            ("--moe-top-k=6: expected 1 to 5", "--moe-top-k=6"),
            ("--moe-capacity-factor=-1: must be at least 0", "--moe-capacity-factor=-1"),
            ("--moe-gate=best: ", "--moe-gate=best"),
            ("--moe-replicas=all: ", "--moe-replicas=all"),
            ("--moe: ", "--moe-replicas=shadow"),
            ("--moe: GPT-2's files have no experts", "--save-model=model"),
            ("1 experts for 2 ranks of ep; expected at least one for each", *RUNS[0], "--moe-experts=1", "--moe-top-k=1"),
            ("a capacity factor where cp splits sequences", *RUNS[7], "--moe-capacity-factor=1"),
            ("--reproducible: not with experts", "--nproc=1", "--reproducible", "--global-batch-size=8"),
        ]
        for expected, *flags in table:
            with self.subTest(flags=flags):
                run = self.train(*FLAGS, *flags, code=None)
                errors = [line for line in run.errors() if "[WARNING]" not in line]
                self.assertEqual(len(errors), 1, errors)
                self.assertIn(expected, errors[0])
                self.assertNotIn("step=1 ", run.out)


if __name__ == "__main__":
    runs.main()
