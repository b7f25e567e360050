"""What a run prints and writes."""
import os
import re

import numpy

import image_runs
import runs


def log_probabilities(model, images):
    """(samples, rows, columns) -> (samples, 10): the network in NumPy."""
    def convolved(x, layer):
        windows = numpy.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
        return numpy.einsum("nirckl,oikl->norc", windows, model[layer + ".weight"]) + model[layer + ".bias"][:, None, None]
    x = numpy.maximum(convolved(numpy.maximum(convolved(images[:, None], "conv1"), 0), "conv2"), 0)
    samples, channels, rows, columns = x.shape
    x = x.reshape(samples, channels, rows // 2, 2, columns // 2, 2).max((3, 5)).reshape(samples, -1)
    x = numpy.maximum(x @ model["fc1.weight"].T + model["fc1.bias"], 0) @ model["fc2.weight"].T + model["fc2.bias"]
    return x - numpy.log(numpy.exp(x).sum(1, keepdims=True))


class OutputTest(runs.CnnTest):
    def test_lines_history_and_model(self):
        run, model = self.model("--epochs=3", "--strategy=ddp")
        epochs = run.epochs()
        self.assertEqual([epoch["epoch"] for epoch in epochs], ["1", "2", "3"])
        for epoch in epochs:
            self.assertEqual(list(epoch), ["epoch", "dt", "train_loss", "test_loss", "test_acc"])
            correct = float(epoch["test_acc"]) * runs.TEST / 100
            self.assertAlmostEqual(correct, round(correct), delta=1e-4, msg="each test sample counts once")
        self.assertIn("3 epochs took ", run.out)
        self.assertIn("batch_size=8 a rank, 16 in all", run.out)
        for line in ("DEVICE=cpu", "Using device='cpu'", " device=cpu"):  # --device=auto
            self.assertIn(line, run.out)
        self.assertRegex(run.out, r"Data: .*: 130 training and 37 test images of 10 x 10, 10 classes")
        history = self.history("model_out")
        for name in ("train_loss", "test_loss", "test_acc"):
            numbers = [float(epoch[name]) for epoch in epochs]
            self.assertTrue(numpy.allclose(history[name], numbers, rtol=0, atol=5e-7), name)
        self.assertTrue(numpy.allclose(history["lr"], [1e-3, 7e-4, 4.9e-4], rtol=1e-12))
        self.assertEqual({name: tensor.shape for name, tensor in model.items()}, runs.MODEL)
        # All-reduced by 2 ranks: each sends 4 bytes per parameter, and each tensor begins at 64 bytes.
        steps, least = -(-runs.TRAIN // 16), 4 * sum(tensor.size for tensor in model.values())
        for sent in history["comm_bytes_dp_replicate"] / steps:
            self.assertTrue(least <= sent <= least + 2 * 64 * (len(model) + 4 * 2), (sent, least))
        self.assertNotIn("comm_bytes_dp_shard", history)

    def test_numbers_are_those_of_the_saved_model(self):
        run, model = self.model("--dtype=float64")
        images, labels = image_runs.read_idx_tests(self.images)
        scores = log_probabilities(model, images)
        epoch = run.epochs()[-1]
        self.assertAlmostEqual(float(epoch["test_loss"]), -numpy.mean(scores[range(runs.TEST), labels]), delta=6e-7)
        self.assertAlmostEqual(float(epoch["test_acc"]), 100 * numpy.mean(scores.argmax(1) == labels), delta=6e-7)

    def test_learns(self):
        epochs = self.train("--epochs=8", "--gamma=0.9").epochs()
        self.assertLess(float(epochs[-1]["test_loss"]), 0.5 * float(epochs[0]["test_loss"]))
        self.assertGreater(float(epochs[-1]["test_acc"]), 90)

    def test_plan_comes_before_the_network(self):
        out = self.train("--strategy=zero2").out
        plan, network = out.index("Memory plan of a rank: 93962 parameters, zero2"), out.index("model=Net(")
        self.assertLess(plan, network)
        self.assertRegex(out, r"  moments +0\.\d+ MB   AdamW, float32, sharded 1/2")
        self.assertRegex(out, r"  total +\d+\.\d+ MB")

    def test_plots(self):
        run = self.train("--plots")
        for kind, ending in (("tplots", "txt"), ("svgs", "svg"), ("pngs", "png")):
            for name in ("dt", "train_loss", "test_loss", "test_acc"):
                self.assertTrue(os.path.exists(self.path(f"out/{kind}/{name}.{ending}")), name)
        self.assertRegex(run.out, r"test_acc \[\d{4}-\d\d-\d\d-\d{6}\]")

    def test_default_data_are_real_or_say_so(self):
        run = self.train("--max-samples=64", "--epochs=1", images=False)
        self.assertRegex(run.out, r"Data: (.*fashion-mnist.*|synthetic.*): 64 training and 64 test images of 28 x 28")
        self.assertIn("1199882 parameters", run.out)

    def test_flags_that_had_another_name(self):
        run = self.train("--checkpoint-every=5", "--activation-checkpoints=full", "--checkpoint-dir=" + self.path("kept"))
        self.assertIn("train_cnn: --checkpoint-every has been renamed to --checkpoint-interval", run.err)
        self.assertIn("train_cnn: --activation-checkpoints has been renamed to --activation-checkpointing", run.err)
        self.assertRegex(run.out, r"  checkpoint +2\.097 MB   copied while it is written")  # in the plan

    def test_help(self):
        run = self.train("--help")
        self.assertTrue(re.search(r"--strategy.*\n", run.out) and "--mesh" in run.out)


if __name__ == "__main__":
    runs.main()
