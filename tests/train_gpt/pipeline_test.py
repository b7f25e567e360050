"""Pipeline stages: the numbers of one rank for every schedule and mesh, with dropout; checkpoints; bad input."""
import re

import runs

# Four blocks in four micro-batches; a dropout mask depends on an element's place in the whole batch.
FLAGS = ["--dtype=float64", "--sample-tokens=0", "--dropout=0.1", "--n-layer=4", "--gradient-accumulation-steps=4"]
RUNS = [
    ["--mesh=pp=2"],
    ["--mesh=pp=4", "--pipeline-schedule=gpipe"],
    ["--mesh=pp=4", "--pipeline-schedule=zb-h1", "--activation-checkpointing=every-2"],
    ["--mesh=pp=2", "--pipeline-schedule=zbv"],
    ["--mesh=pp=2", "--pipeline-schedule=interleaved", "--pipeline-chunks=2"],
]
DATA_RUNS = [
    ["--mesh=pp=2,dp_shard=2", "--strategy=fsdp", "--reduce-each-micro-batch"],
    ["--mesh=pp=2,dp_shard=2", "--strategy=zero2", "--pipeline-schedule=zbv"],
    ["--mesh=pp=2,dp_replicate=2", "--pipeline-schedule=zb-h1"],
]

class PipelineTest(runs.TrainTest):
    def test_is_one_rank(self):
        self.train("--nproc=1", *FLAGS, outputs="one")
        for count, mesh in enumerate(RUNS):
            with self.subTest(mesh=mesh):
                self.train(*FLAGS, *mesh, outputs=f"run{count}")
                self.expect_same("one", f"run{count}")

    def test_fewer_micro_batches_than_stages(self):
        few = [*FLAGS, "--gradient-accumulation-steps=2"]
        self.train("--nproc=1", *few, outputs="one")
        for schedule in ("1f1b", "zb-h1"):
            self.train(*few, "--mesh=pp=4", "--pipeline-schedule=" + schedule, outputs=schedule)
            self.expect_same("one", schedule)

    def test_is_data_parallel(self):
        self.train("--nproc=1", *FLAGS, outputs="one")
        for count, mesh in enumerate(DATA_RUNS):
            with self.subTest(mesh=mesh):
                run = self.train(*FLAGS, *mesh, outputs=f"run{count}")
                self.expect_same("one", f"run{count}")
                self.assertIn("blocks 0-1 | 2-3" if "zbv" not in mesh[-1] else "blocks 0 | 1 | 2 | 3", run.out)

    def test_single_precision(self):
        """Other kernels than in double precision; sums of other orders, over 8 steps."""
        self.train(*FLAGS, *DATA_RUNS[0], "--pipeline-schedule=zb-h1", "--dropout=0", "--dtype=float32", outputs="stages")
        self.train("--nproc=2", *FLAGS, "--dropout=0", "--dtype=float32", outputs="two")
        for x, y in zip(self.numbers("two")["loss"], self.numbers("stages")["loss"]):
            self.assertLess(abs(float.fromhex(x) - float.fromhex(y)), 1e-5 * float.fromhex(x))

    def test_checkpoints_go_on_on_any_mesh(self):
        double = [*FLAGS, "--dropout=0"]
        kept = ["--checkpoint-interval=5", "--keep-last=0"]
        self.train("--nproc=1", *double, *kept, "--checkpoint-dir=of_one", outputs="one")
        staged = ["--mesh=pp=2,dp_shard=2", "--strategy=fsdp", "--pipeline-schedule=zb-h1"]
        self.train(*double, *staged, *kept, "--checkpoint-dir=of_stages", outputs="stages")
        self.expect_same("one", "stages")
        meshes = {"one": ["--nproc=1"], "sharded": ["--nproc=3", "--strategy=zero1"], "stages": ["--mesh=pp=4"],
                  "turned": ["--mesh=pp=2", "--pipeline-schedule=zbv"]}
        for name, mesh in meshes.items():
            for kept_by in ("of_stages", "of_one"):
                if (name, kept_by) not in (("one", "of_one"), ("sharded", "of_one")):
                    with self.subTest(mesh=mesh, kept_by=kept_by):
                        outputs = name + kept_by
                        run = self.train(*mesh, *double, f"--resume={kept_by}/step-000000005", outputs=outputs)
                        self.assertIn("Resuming after step 5", run.out)
                        self.expect_same("one", outputs, skip=5)

    def test_says_what_the_stages_are(self):
        run = self.train(*FLAGS, "--mesh=pp=2", "--sample-tokens=5", "--max-iters=1")
        self.assertRegex(run.out, r"pipeline: 1f1b, 2 ranks with 1 stage each, 4 micro-batches, bubble 20 %; blocks 0-1 \| 2-3")
        # Two blocks of 12,352, the embedding of 704, which both stages have, and positions of 512.
        self.assertRegex(run.out, "Memory plan of a rank: 25920 parameters")
        run = self.train(*FLAGS, "--mesh=pp=4", "--gradient-accumulation-steps=2", "--max-iters=1", outputs="few")
        self.assertIn("fewer micro-batches than the 4 ranks of pp", run.out)

    def test_samples_are_those_of_one_rank(self):
        """On the last stage (of zbv it is the first rank) and where rows are split by tokens; the text grows beyond a sequence."""
        flags = [*FLAGS, "--sample-tokens=30", "--max-iters=4"]
        samples = []
        for count, mesh in enumerate((["--nproc=1"], ["--mesh=pp=2"], ["--mesh=pp=2", "--pipeline-schedule=zbv"],
                                      ["--mesh=dp_replicate=2,tp=2", "--sequence-parallel"])):
            run = self.train(*flags, *mesh, outputs=f"run{count}")
            samples.append(re.findall(r"\['response'\]:\s*(.*?)\n\[2", run.out, re.DOTALL))
            self.assertEqual(len(samples[0]), 2, run.out)
            self.assertEqual(samples[count], samples[0])

    def test_bad_input(self):
        table = [
            (2, "--pipeline-schedule=2f2b: expected gpipe or 1f1b or interleaved or zb-h1 or zbv", "--pipeline-schedule=2f2b"),
            (2, "--pipeline-schedule=interleaved: 3 micro-batches; expected a multiple of the 2 ranks of pp",
             "--pipeline-schedule=interleaved", "--gradient-accumulation-steps=3"),
            (2, "--pipeline-schedule=1f1b: has one stage on each rank, not 2", "--pipeline-chunks=2"),
            (2, "--pipeline-schedule=zbv: has 2 stages on each rank, not 3", "--pipeline-chunks=3", "--pipeline-schedule=zbv"),
            (2, "--pipeline-chunks=-1: must be at least 0", "--pipeline-chunks=-1"),
            (1, "--mesh=pp=2: 4 pipeline stages, but the model has 3 blocks; expected at least 4", "--n-layer=3",
             "--pipeline-schedule=zbv"),
            (1, "memory", "--memory-limit=100K"),
        ]
        for code, expected, *flags in table:
            with self.subTest(flags=flags):
                run = self.train(*FLAGS, "--mesh=pp=2", *flags, code=code)
                errors = [line for line in run.errors() if "[WARNING]" not in line]
                self.assertEqual(len(errors), 1, errors)
                self.assertIn(expected, errors[0])
                self.assertNotIn("step=1 ", run.out)


if __name__ == "__main__":
    runs.main()
