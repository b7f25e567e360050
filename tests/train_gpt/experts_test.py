"""A mixture of experts: the numbers of one rank on any mesh, with every gate; checkpoints; loads; bytes; bad input."""
import re

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
    def loads(self, outputs):
        """Columns of the experts' loads; of vectors a list for each of three steps."""
        history = {name: [float.fromhex(x) for x in values] for name, values in self.history(outputs).items()
                   if name.startswith(("moe_", "expert_load_"))}
        for name in ("expert_load_0", "expert_load_1"):
            count = len(history[name]) // 3
            history[name] = [history[name][step * count:(step + 1) * count] for step in range(3)]
        return history

    def expect_loads(self, loads, ranks, rows, capacity):
        """The columns follow from the rows of each expert: `rows` of a block in a step, at most `capacity` are computed."""
        for step in range(3):
            blocks = [loads["expert_load_0"][step], loads["expert_load_1"][step]]
            self.assertEqual([sum(block) for block in blocks], 2 * [rows])
            experts = len(blocks[0])
            overload = 0
            for block in blocks:
                kept = [min(x, capacity) for x in block]
                of_ranks = [sum(kept[experts * rank // ranks:experts * (rank + 1) // ranks]) for rank in range(ranks)]
                overload = max(overload, max(of_ranks) * ranks / sum(of_ranks))
            expected = {
                "moe_overload_factor": overload,
                "moe_max_violation": max(max(block) * experts / rows - 1 for block in blocks),
                "moe_dead_experts": sum(x == 0 for block in blocks for x in block),
                "moe_dropped": sum(max(x - capacity, 0) for block in blocks for x in block) / (2 * rows)}
            for name, value in expected.items():
                self.assertAlmostEqual(loads[name][step], value, delta=1e-12, msg=name)

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

    def test_a_dry_run_is_of_the_rank_with_the_most(self):
        """Of five experts on four ranks it has two, which take most of its parameters."""
        def parameters(experts):
            run = self.train(*FLAGS, *RUNS[1], f"--moe-experts={experts}", "--moe-hidden=480", "--dry-run")
            numbers, = re.findall(r"\n  3 dp_shard=3 +4 +([0-9.]+) ", run.out)
            return float(numbers)
        self.assertGreater(parameters(5), 1.7 * parameters(4))

    def test_loads(self):
        flags = [*FLAGS, "--max-iters=3", "--sample-tokens=0"]
        # Two experts for each token. Of 40 experts at least 8 of a block have no row; five with room for 23 drop rows.
        few, capped = 2 * 2 * 2 * 4, 2 * 7 * 16
        for name, own, rows, capacity in (
                ("few", ["--moe-experts=40", "--block-size=4", "--global-batch-size=2"], few, few),
                ("capped", ["--moe-capacity-factor=0.5", "--gradient-accumulation-steps=1"], capped, 23)):
            with self.subTest(name=name):
                self.train("--nproc=1", *flags, *own, outputs=name + "1")
                self.train(*flags, *own, *RUNS[0], outputs=name + "2")
                one, two = self.loads(name + "1"), self.loads(name + "2")
                self.expect_loads(one, 1, rows, capacity)
                self.expect_loads(two, 2, rows, capacity)
                for column in ("expert_load_0", "expert_load_1", "moe_max_violation", "moe_dead_experts", "moe_dropped"):
                    self.assertEqual(one[column], two[column], column)
                if name == "few":
                    self.assertGreaterEqual(min(two["moe_dead_experts"]), 2 * 8)
                else:
                    self.assertTrue(all(0 < dropped < 1 for dropped in two["moe_dropped"]))

    def test_bytes_along_each_axis(self):
        """Of a rank in a step, where every token goes to all four experts."""
        flags = [*FLAGS, "--dtype=float32", "--sample-tokens=0", "--max-iters=3", "--global-batch-size=8",
                 "--moe-experts=4", "--moe-top-k=4"]
        layers, micro_batches, width, hidden, number = 2, 2, 32, 24, 4
        rows = 2 * 16  # of a rank
        # To the other rank of the group and back, forward and backward; of each expert there a place of three numbers, a weight
        # and its gradient; how many these are; to four ranks how many rows each expert gets.
        exchange = 4 * rows * width * number + rows * 2 * (3 * 4 + 2 * number) + 2 * 8 + 3 * (4 + 2) * 4
        vocabulary = len(set(runs.text_of_words()))
        dense = (vocabulary + 16 + 1) * width + layers * (4 * width * width + 2 * width + 4 * width)
        experts = layers * 2 * 2 * hidden * width  # of a rank
        # Of all four ranks and of the two with the same experts.
        gradients = number * (2 * 3 / 4 * dense + 2 * 1 / 2 * experts)
        for axis, *mesh in (("dp_replicate", "--mesh=dp_replicate=4,ep=2"),
                            ("dp_shard", "--mesh=dp_shard=4,ep=2", "--strategy=zero1")):
            with self.subTest(mesh=mesh):
                self.train(*flags, *mesh, outputs=axis)
                history = self.history(axis)
                self.assertEqual(self.axes_in(history), [axis, "ep"])
                # Besides, numbers of valid targets in each micro-batch; parameters and units that begin at 64 bytes.
                for column, least, more in (("ep", layers * micro_batches * exchange, 64 * micro_batches),
                                            (axis, gradients, 2 * 64 * (20 + 5 * 4))):
                    for sent in map(float.fromhex, history["comm_bytes_" + column]):
                        self.assertGreaterEqual(sent, least, column)
                        self.assertLessEqual(sent, least + more, column)

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
