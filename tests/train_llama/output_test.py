"""What a user sees and finds."""
import os

import llama_runs
import runs


class OutputTest(llama_runs.LlamaTest):
    def in_this_order(self, text, *parts):
        at = 0
        for part in parts:
            found = text.find(part, at)
            self.assertNotEqual(found, -1, f"{part!r} after {text[:at][-200:]!r}")
            at = found + len(part)

    def test_lines(self):
        run = self.train("--nproc=2")
        self.in_this_order(
            run.out, "Using device='cpu' with backend='FSDP' + 'mpi' for distributed training.",
            "> initializing dp_replicate with size 1", "> initializing dp_shard with size 2", "'][0/1] [",
            "[dp_replicate:0/0][dp_shard:0/1]", "'][1/1] [", "[dp_replicate:0/0][dp_shard:1/1]", "data=random tokens (synthetic)",
            "Device mesh created:\ndevice_mesh=DeviceMesh([0, 1], mesh_dim_names=('dp_shard'))\n",
            "synthetic: random tokens, no text\nvocab size: 50\n", "Initializing a new model from scratch",
            "Layer (type:depth-idx)", "\nTransformer  ", "├─Embedding: 1-1", "1,600\n", "│    └─TransformerBlock: 2-2",
            f"Total params: {llama_runs.parameters(50):,}\n", "Memory plan of a rank: ",
            "Model after parallelization:\nsharded_model=FSDP(\n  Transformer(\n    (tok_embeddings): Embedding(50, 32)\n",
            "      (0-1): 2 x TransformerBlock(\n", "\n  )\n)\n", "Creating AdamW optimizer with lr=0.003\n",
            "\nStarting 1D training...\n", "inp.shape=[4, 8]\n", "iter=0 loss=", "iter=7 loss=", "Finished 1D training\n",
            "history saved in " + self.path("out/train_dataset.h5"))
        self.assertEqual(run.errors(), [])

    def test_steps_and_history(self):
        run = self.train("--nproc=1")
        steps = run.steps()
        self.assertEqual([step["iter"] for step in steps], list(range(8)))
        for step in steps:
            self.assertEqual(list(step), ["iter", "loss", "dt", "dtf", "dtb", "tps"])
            self.assertAlmostEqual(step["tps"] * step["dt"], 7 * 8, delta=7 * 8 * 5.1e-7 * (1 / step["dt"] + 1))
            self.assertAlmostEqual(step["dtf"] + step["dtb"], step["dt"], delta=3e-6)
        self.near_the_loss_of_initial_values(steps[0]["loss"], 50, 7 * 8)
        history = self.history()
        times = {part + over for part in ("dt", "dtf", "dtb", "mfu")
                 for over in ("", "_mean", "_min", "_max", "_std", "_per_rank")}
        self.assertEqual(set(history), {"draw", "rank", "step", "iter", "loss", "tps", "tokens", *times})  # one rank sends nothing
        self.assertTrue(all(value == "nan" for name in list(history) if name.startswith("mfu") for value in history.pop(name)))
        self.assertEqual({float.fromhex(value) for value in history["tokens"]}, {7 * 8})
        for name in steps[0]:
            for value, step in zip(history[name], steps, strict=True):
                self.assertAlmostEqual(float.fromhex(value), step[name], delta=5.1e-7)

    def test_bytes_of_a_step(self):
        self.train("--nproc=2", "--strategy=ddp")
        history = self.history()
        self.assertEqual(self.axes_in(history), ["dp_replicate"])
        # All-reduced by 2 ranks: each sends 4 bytes per parameter, of which each of 21 begins at 64 bytes.
        least = 4 * llama_runs.parameters(50)
        for sent in history["comm_bytes_dp_replicate"]:
            self.assertGreaterEqual(float.fromhex(sent), least)
            self.assertLessEqual(float.fromhex(sent), least + 2 * 64 * (21 + 4 * 2))
        # Gradients of a block travel while those of the one before are computed.
        for both in zip(history["comm_in_flight_dp_replicate"], history["comm_exposed_dp_replicate"], strict=True):
            in_flight, exposed = map(float.fromhex, both)
            self.assertGreater(in_flight, 0)
            self.assertGreaterEqual(exposed, 0)
            self.assertLessEqual(exposed, in_flight + 1e-9)  # differences of sums

    def test_plots(self):
        self.train("--nproc=1", "--plots")
        for kind, ending in (("tplots", "txt"), ("svgs", "svg"), ("pngs", "png")):
            for metric in ("iter", "loss", "dt", "dtf", "dtb"):
                self.assertGreater(os.path.getsize(self.path(f"out/{kind}/{metric}.{ending}")), 100)

    def test_the_published_model(self):
        run = self.train("--nproc=1", "--batch-size=1", "--seq-length=16", "--max-iters=1", small=["--no-plots"])
        self.assertIn("Total params: 33,599,744\n", run.out)
        self.assertIn("(wk): Linear(in_features=256, out_features=64, bias=False)\n", run.out)
        self.near_the_loss_of_initial_values(run.steps()[0]["loss"], 32000, 16)
        # Its speed is told by default.
        self.assertIn("measured peak of rank 0: ", run.out)
        step, = run.steps()
        self.assertEqual(list(step), ["iter", "loss", "dt", "dtf", "dtb", "tps", "mfu"])
        self.assertGreater(step["tps"], 0)
        self.assertTrue(0 < step["mfu"] < 100, step)

    def test_a_text(self):
        run = self.train("--nproc=2", *self.TEXT, "--peak-flops=1e12")
        vocabulary = len(set(runs.text_of_words()))
        self.assertIn(f"vocab size: {vocabulary}\n", run.out)
        self.assertIn(f"Total params: {llama_runs.parameters(vocabulary):,}\n", run.out)
        self.assertRegex(run.out, r"\['response'\]:\n\n(?s:.){12}")
        for step in run.steps():
            estimated = ["train_loss", "val_loss"] if step["iter"] in (3, 7) else []
            self.assertEqual(list(step), ["iter", "loss", "dt", "dtf", "dtb", "tps", "mfu"] + estimated)
        self.assertLessEqual({"train_loss", "val_loss"}, set(self.history()))
        # A model may have more tokens than the text.
        run = self.train("--nproc=1", *self.TEXT, "--vocab-size=100", "--sample-tokens=60", "--sample-prompt=t", outputs="more")
        self.assertIn(f"Total params: {llama_runs.parameters(100):,}\n", run.out)
        self.assertRegex(run.out, r"\['response'\]:\n\nt[a-z ]")
        run = self.train("--prepare-only", *self.TEXT, outputs="none")
        self.assertEqual(run.steps(), [])

    def test_it_learns(self):
        run = self.train("--nproc=1", *self.TEXT, "--max-iters=60", "--lr=1e-2", "--eval-interval=60", "--sample-tokens=0")
        # Uniform guesses would cost the logarithm of the vocabulary's size, 3.0; the words are few.
        self.assertGreater(run.steps()[0]["loss"], 2.7)
        self.assertLess(run.steps()[-1]["val_loss"], 2.3)


if __name__ == "__main__":
    runs.main()
