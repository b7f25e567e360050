"""--reproducible: every bit of losses, estimates, norms and parameters on any mesh of powers of two, with dropout and clipping; resumed on another mesh; bad input."""
import runs

# 16 blocks a step in 8 leaves; float32, where every order of a sum has other bits.
FLAGS = ["--reproducible", "--global-batch-size=8", "--gradient-accumulation-steps=2", "--sample-tokens=0", "--dropout=0.1",
         "--grad-clip=0.1", "--max-iters=6", "--eval-interval=3"]
RUNS = [
    ["--nproc=2"],
    ["--mesh=dp_replicate=2,dp_shard=2", "--strategy=fsdp", "--activation-checkpointing=every-2"],
    ["--mesh=pp=2,dp_shard=2", "--strategy=zero1"],
]


class ReproducibleTest(runs.TrainTest):
    def model(self, folder):
        with open(self.path(folder + "/model.safetensors"), "rb") as file:
            return file.read()

    def test_bits_of_one_rank(self):
        checkpoints = ["--checkpoint-dir=kept", "--checkpoint-interval=3", "--keep-last=0"]
        self.train("--nproc=1", *FLAGS, *checkpoints, "--save-model=one", outputs="of_one")
        one = self.numbers("of_one")
        for count, mesh in enumerate(RUNS):
            with self.subTest(mesh=mesh):
                self.train(*FLAGS, *mesh, f"--save-model=model{count}", outputs=f"run{count}")
                self.assertEqual(self.numbers(f"run{count}"), one)
                self.assertEqual(self.model(f"model{count}"), self.model("one"))
        # The flag and its leaves are the checkpoint's.
        resumed = [flag for flag in FLAGS if flag != "--reproducible"]
        self.train(*resumed, *RUNS[1], "--resume=kept/step-000000003", "--save-model=resumed", outputs="goes_on")
        self.assertEqual(self.model("resumed"), self.model("one"))
        # Other leaves are other sums, and so are those without the flag.
        for name, flag in (("leaves", "--reproducible-leaves=4"), ("plain", "--no-reproducible")):
            self.train("--nproc=2", *FLAGS, flag, "--save-model=" + name, outputs="of_" + name)
            self.assertNotEqual(self.model(name), self.model("one"))

    def test_bad_input(self):
        self.train("--nproc=1", *FLAGS, "--max-iters=1", "--checkpoint-dir=kept")
        table = [
            (2, "--reproducible: 3 ranks along dp_replicate; expected a power of two", "--nproc=3"),
            (2, "--reproducible: not with tp=2 in --mesh", "--mesh=tp=2", "--nproc=2"),
            (2, "--reproducible: not with cp=2 in --mesh", "--mesh=cp=2", "--nproc=2"),
            (2, "--reproducible-leaves=6: expected a power of two", "--reproducible-leaves=6"),
            (2, "--reproducible-leaves=2: 4 data-parallel ranks; expected at least one for each", "--nproc=4",
             "--reproducible-leaves=2"),
            (2, "--reproducible-leaves=8: does not divide the 14 samples of a step", "--global-batch-size=7"),
            (2, "--threads=2: expected 1 with --reproducible", "--threads=2"),
            (2, "--device=cuda: expected cpu with --reproducible", "--device=cuda"),
            (2, "--reduce-each-micro-batch: not with --reproducible", "--reduce-each-micro-batch"),
            (2, "--pipeline-schedule=zb-h1: not with --reproducible", "--mesh=pp=2", "--nproc=2",
             "--pipeline-schedule=zb-h1"),
            (2, "--pipeline-schedule=zbv: not with --reproducible", "--mesh=pp=2", "--nproc=2",
             "--pipeline-schedule=zbv"),
            (2, "--pipeline-schedule=interleaved: not with --reproducible", "--pipeline-schedule=interleaved"),
            (1, "reproducible_leaves is 8 there and 4 here", "--resume=kept", "--reproducible-leaves=4"),
        ]
        for code, expected, *flags in table:
            with self.subTest(flags=flags):
                run = self.train("--nproc=1", *FLAGS, *flags, code=code)
                self.assertEqual(len(run.errors()), 1, run.errors())
                self.assertIn(expected, run.errors()[0])
                self.assertNotIn("step=1 ", run.out)


if __name__ == "__main__":
    runs.main()
