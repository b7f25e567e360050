"""Layers split over tp and sequences over cp: the numbers of one rank, with dropout; checkpoints; saved models;
rates; bad input."""
import filecmp

import runs

FLAGS = ["--dtype=float64", "--sample-tokens=0", "--dropout=0.1", "--n-head=4"]
RUNS = [
    ["--mesh=tp=2"],
    ["--mesh=tp=4", "--sequence-parallel"],
    ["--mesh=dp_shard=2,tp=2", "--strategy=fsdp", "--sequence-parallel"],
    ["--mesh=dp_replicate=2,tp=2", "--activation-checkpointing=full"],
    ["--mesh=pp=2,tp=2", "--pipeline-schedule=zb-h1", "--sequence-parallel"],
    ["--mesh=cp=2,tp=2", "--strategy=fsdp", "--sequence-parallel"],
    ["--mesh=pp=2,cp=2", "--strategy=zero2", "--context-attention=ulysses"],
    ["--mesh=dp_replicate=2,cp=2", "--block-size=15"],  # does not divide
]


class SplitTest(runs.TrainTest):
    def test_is_one_rank(self):
        one = self.train("--nproc=1", *FLAGS, outputs="one")
        self.train("--nproc=1", *FLAGS, RUNS[-1][1], outputs="odd")
        for count, mesh in enumerate(RUNS):
            with self.subTest(mesh=mesh):
                run = self.train(*FLAGS, *mesh, outputs=f"run{count}")
                self.expect_same("odd" if RUNS[-1][1] in mesh else "one", f"run{count}")
                for step in run.steps():
                    ranks = 2 if mesh == RUNS[0] else 4
                    self.assertAlmostEqual(step["tps"] / step["tps_per_rank"], ranks, delta=1e-4)
        for step in one.steps():
            self.assertEqual(step["tps"], step["tps_per_rank"])

    def test_a_token_and_its_padding(self):
        flags = ["--dtype=float64", "--sample-tokens=0", "--block-size=1"]
        self.train("--nproc=1", *flags, outputs="one")
        self.train("--mesh=cp=2", *flags, outputs="two")
        self.expect_same("one", "two")

    def test_checkpoints_go_on_on_any_mesh(self):
        kept = ["--checkpoint-interval=5", "--keep-last=0"]
        self.train("--nproc=1", *FLAGS, *kept, "--checkpoint-dir=of_one", outputs="one")
        self.train(*FLAGS, *kept, *RUNS[2], "--checkpoint-dir=of_split", outputs="split")
        for count, (mesh, folder) in enumerate([(["--nproc=1"], "of_split"), (RUNS[4], "of_split"),
                                                (["--nproc=2", "--strategy=zero1"], "of_split"), (RUNS[5], "of_split"), (RUNS[1], "of_one")]):
            with self.subTest(mesh=mesh, folder=folder):
                run = self.train(*mesh, *FLAGS, f"--resume={folder}/step-000000005", outputs=f"again{count}")
                self.assertIn("Resuming after step 5", run.out)
                self.expect_same("one", f"again{count}", skip=5)

    def test_saves_the_whole_model(self):
        self.train("--nproc=1", *FLAGS, "--max-iters=0", "--save-model=of_one", outputs="one")
        for count, mesh in enumerate((RUNS[2], RUNS[4])):
            self.train(*FLAGS, *mesh, "--max-iters=0", f"--save-model=of_{count}", outputs=f"run{count}")
            for name in ("model.safetensors", "config.json"):
                self.assertTrue(filecmp.cmp(self.path(f"of_one/{name}"), self.path(f"of_{count}/{name}"), shallow=False))

    def test_bytes_along_each_axis(self):
        """Mean over the ranks of bytes in a step, of which two ranks send the payload of each all-reduce once."""
        self.train(*FLAGS, "--mesh=pp=2,tp=2", "--max-iters=3")
        micro_batches, rows, width, vocabulary, number = 2, 7 * 16, 32, 22, 8
        stream = rows * width * number
        expected = {
            # Hidden states, or their gradients, and the gradient of a part of the embedding.
            "pp": micro_batches * stream + vocabulary // 2 * width * number,
            # A block of each stage, the embedding or the head, and the losses of the last stage.
            "tp": micro_batches * ((4 + 1) * stream + 3 * rows * number / 2)}
        history = self.history()
        for axis, sent in expected.items():
            self.assertEqual([float.fromhex(x) for x in history["comm_bytes_" + axis]], 3 * [sent], axis)
        # Other axes have one rank.
        self.assertEqual(self.axes_in(history), sorted(expected))
        # Gradients are summed over ranks of cp as over those of dp_replicate.
        for axis in ("cp", "dp_replicate"):
            self.train(*FLAGS, f"--mesh={axis}=2", "--max-iters=3", outputs=axis)
        folded, replicated = self.history("cp"), self.history("dp_replicate")
        self.assertEqual(self.axes_in(folded), ["cp", "dp_replicate"])
        self.assertEqual(folded["comm_bytes_dp_replicate"], replicated["comm_bytes_dp_replicate"])

    def test_bad_input(self):
        table = [
            ("--mesh: transformer.h.0.attn.c_attn: 3 heads for 2 ranks; expected a multiple of the ranks",
             "--mesh=tp=2", "--n-head=3", "--n-embd=24"),
            ("--context-attention=ulysses: 2 heads for 4 ranks of cp and tp; expected a multiple, or ring",
             "--mesh=cp=2,tp=2", "--n-head=2", "--context-attention=ulysses"),
            ("--block-size=15: 15 tokens for the 2 ranks of tp; --sequence-parallel needs a multiple", "--mesh=tp=2",
             "--block-size=15", "--sequence-parallel"),
            ("--context-attention=rings: expected ring or ulysses", "--mesh=cp=2", "--context-attention=rings"),
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
