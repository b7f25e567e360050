"""What a run prints and writes."""
import gzip
import json
import math
import os
import re
import struct
import subprocess

import numpy

import runs

TABLE = """==========================================================================================
Layer (type:depth-idx)                   Output Shape              Param #
==========================================================================================
VisionTransformer                        [128, 1000]               200,704
├─PatchEmbed: 1-1                        [128, 196, 1024]          787,456
├─Dropout: 1-2                           [128, 196, 1024]          --
├─Identity: 1-3                          [128, 196, 1024]          --
├─Identity: 1-4                          [128, 196, 1024]          --
├─Sequential: 1-5                        [128, 196, 1024]          302,235,648
├─Identity: 1-6                          [128, 196, 1024]          --
├─LayerNorm: 1-7                         [128, 1024]               2,048
├─Dropout: 1-8                           [128, 1024]               --
├─Linear: 1-9                            [128, 1000]               1,025,000
==========================================================================================
Total params: 304,250,856
Trainable params: 304,250,856
Non-trainable params: 0
Total mult-adds (G): 58.57
==========================================================================================
Input size (MB): 77.07
Forward/backward pass size (MB): 54465.11
Params size (MB): 1216.20
Estimated Total Size (MB): 55758.38
==========================================================================================
"""


def logits(model, images):
    """The network in NumPy, in float64, from tensors in Hugging Face's layout: class token, two heads of 8."""
    def linear(x, name):
        y = x @ model[name + ".weight"].reshape(len(model[name + ".weight"]), -1).T
        return y + model[name + ".bias"] if name + ".bias" in model else y

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        return (centred / numpy.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-6) * model[name + ".weight"]
                + model[name + ".bias"])
    samples = len(images)
    patches = images.reshape(samples, 3, 4, 8, 4, 8).transpose(0, 2, 4, 1, 3, 5).reshape(samples, 16, -1)
    x = linear(patches, "vit.embeddings.patch_embeddings.projection")
    token = numpy.broadcast_to(model["vit.embeddings.cls_token"], (samples, 1, 16))
    x = numpy.concatenate([token, x], 1) + model["vit.embeddings.position_embeddings"]
    erf = numpy.vectorize(math.erf)
    for layer in range(2):
        block = f"vit.encoder.layer.{layer}."
        n = norm(x, block + "layernorm_before")
        q, k, v = (linear(n, block + "attention.attention." + part).reshape(samples, 17, 2, 8).transpose(0, 2, 1, 3)
                   for part in ("query", "key", "value"))
        scores = numpy.exp(q @ k.transpose(0, 1, 3, 2) / math.sqrt(8))
        out = (scores / scores.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(samples, 17, 16)
        x = x + linear(out, block + "attention.output.dense")
        wide = linear(norm(x, block + "layernorm_after"), block + "intermediate.dense")
        x = x + linear(wide * 0.5 * (1 + erf(wide / math.sqrt(2))), block + "output.dense")
    return linear(norm(x[:, 0], "vit.layernorm"), "classifier")


class OutputTest(runs.VitTest):
    def test_summary_only(self):
        process = self.start(["--summary-only"])
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertIn(TABLE, out)
        size = float(re.search(r"Params size \(MB\): ([\d.]+)", out)[1])
        half = subprocess.run([runs.PROGRAM, "--summary-only", "--dtype=bf16"], env=self.environment(), capture_output=True, text=True, check=True).stdout
        self.assertAlmostEqual(float(re.search(r"Params size \(MB\): ([\d.]+)", half)[1]), size / 2, delta=0.011)
        self.assertIn("Using sdpa attention", out)
        self.assertIn("config=ViTConfig(img_size=224, batch_size=128, num_heads=16, head_dim=64, depth=24, patch_size=16)", out)

    def test_lines_and_history(self):
        run = self.train("--epochs=2")
        lines = run.steps()
        self.assertEqual([line["iter"] for line in lines], [str(i) for i in range(10)])
        for line in lines:
            self.assertEqual(list(line), ["iter", "loss", "dt", "dtf", "dtb", "sps"])
            self.assertAlmostEqual(float(line["dt"]), float(line["dtf"]) + float(line["dtb"]), delta=2e-6)
        self.assertEqual([line["iter"] for line in run.tests()], ["4", "9"])
        for test in run.tests():
            correct = float(test["test_acc"]) * runs.TEST / 100
            self.assertAlmostEqual(correct, round(correct), delta=1e-4, msg="each test image counts once")
        self.assertRegex(run.out, r"\['\S+'\]\[ ?1/1\]")  # a line per rank
        for text in ("[dist_info]", "DEVICE=cpu", "WORLD_SIZE_TOTAL=2", "len(train_set)=70", "Memory plan of a rank: ",
                     "Training with 2 x cpu", "Data: CIFAR-10 in " + self.images + ": 70 training and 21 test images of 32 x 32"):
            self.assertIn(text, run.out)
        history = self.history()
        self.assertEqual(list(history["iter"]), list(range(10)))
        self.assertEqual(history["iter"].dtype, numpy.int64)
        # 16 images a step, 6 in the last one of an epoch, in the time of the slowest rank.
        slowest = numpy.array([16, 16, 16, 16, 6] * 2) / history["dt_max"]
        self.assertTrue(numpy.allclose(history["sps"], slowest, rtol=1e-12, atol=0))
        self.assertTrue(numpy.allclose(history["loss"], [float(line["loss"]) for line in lines], rtol=0, atol=5e-7))
        self.assertEqual(list(numpy.isfinite(history["test_acc"])), [i in (4, 9) for i in range(10)])

    def test_numbers_are_those_of_the_saved_model(self):
        run, model = self.model("--dtype=float64")
        train, _ = runs.read_cifar(self.images, "data_batch_1")
        images, labels = runs.read_cifar(self.images, "test_batch")
        mean, deviation = ((numpy.round(f(train / 255, axis=(0, 2, 3)), 4))[:, None, None] for f in (numpy.mean, numpy.std))
        scores = logits(model, (images / 255 - mean) / deviation)
        losses = numpy.log(numpy.exp(scores).sum(1)) - scores[range(runs.TEST), labels]
        test = run.tests()[-1]
        # Images are float32.
        self.assertAlmostEqual(float(test["test_loss"]), losses.mean(), delta=2e-6)
        self.assertAlmostEqual(float(test["test_acc"]), 100 * numpy.mean(scores.argmax(1) == labels), delta=1e-6)
        # All-reduced by 2 ranks: each sends 8 bytes per parameter, and each tensor begins at 64 bytes.
        history, least = self.history("model_out"), 8 * sum(tensor.size for tensor in model.values())
        self.assertTrue(all(least <= sent <= least + 2 * 64 * (len(model) + 4 * 2) for sent in history["comm_bytes_dp_replicate"]))
        self.assertNotIn("comm_bytes_dp_shard", history)

    def test_learns_made_up_images(self):
        run = self.train("--data=fake", "--epochs=0", "--max-iters=60", "--batch-size=16", "--classes=4")
        self.assertRegex(run.out, r"Data: synthetic stand-in: .*: 1000000 training and 1000 test images of 32 x 32, 4 classes")
        losses = [float(loss) for _, loss in run.losses()]
        self.assertLess(numpy.mean(losses[-5:]), 0.3 * numpy.mean(losses[:5]))
        self.assertGreater(float(run.tests()[-1]["test_acc"]), 90)

    def test_image_files(self):
        from PIL import Image
        random = numpy.random.default_rng(1)
        for name in ("red", "blue"):
            for i in range(20):
                pixels = random.integers(0, 100, (30 + i, 45, 3)).astype(numpy.uint8)
                pixels[..., 0 if name == "red" else 2] += 150
                folder = self.path(f"pictures/{'train' if i < 14 else 'val'}/{name}")
                os.makedirs(folder, exist_ok=True)
                Image.fromarray(pixels).save(f"{folder}/{i}.{'jpg' if i % 2 else 'png'}")
        run = self.train("--data=" + self.path("pictures"), "--augment=resized-crop", "--epochs=8")
        self.assertRegex(run.out, r"Data: image files in .*: 28 training and 12 test images of any size, 2 classes")
        self.assertEqual(run.tests()[-1]["test_acc"], "100.000000")
        # A class whose name is not UTF-8, in a checkpoint and back.
        for part in ("train", "val"):
            os.rename(self.path(f"pictures/{part}/red"), os.fsencode(self.path(f"pictures/{part}")) + b"/caf\xe9")
        kept = "--checkpoint-dir=" + self.path("kept")
        self.train("--data=" + self.path("pictures"), kept, "--epochs=1", outputs="first")
        run = self.train("--data=" + self.path("pictures"), kept, "--resume=auto", "--epochs=2", outputs="rest")
        self.assertIn("Resuming", run.out)

    def test_grey_images(self):
        os.mkdir(self.path("mnist"))
        for name in ("train", "t10k"):
            images, labels = bytes(i % 251 for i in range(9 * 28 * 28)), bytes(i % 10 for i in range(9))
            with gzip.open(self.path(f"mnist/{name}-images-idx3-ubyte.gz"), "wb") as file:
                file.write(struct.pack(">IIII", 0x803, 9, 28, 28) + images)
            with gzip.open(self.path(f"mnist/{name}-labels-idx1-ubyte.gz"), "wb") as file:
                file.write(struct.pack(">II", 0x801, 9) + labels)
        run = self.train("--data=" + self.path("mnist"), "--image-size=28", "--patch-size=7", "--attn=math", "--dtype=bf16")
        self.assertEqual(len(run.losses()), 1)

    def test_files_both_ways(self):
        first, model = self.model("--qkv-bias", "--classes=12")  # two more than the images have
        with open(self.path("model/config.json")) as file:
            config = json.load(file)
        self.assertEqual(config["model_type"], "vit")
        config["id2label"]["11"] = "another"
        with open(self.path("model/config.json"), "w") as file:
            json.dump(config, file)
        # The saved model, not trained any further.
        run, again = self.model("--init-from=" + self.path("model"), "--learning-rate=1e-30", "--weight-decay=0", "--preset=vit-tiny",
                                name="again")
        self.assertEqual({**run.tests()[-1]}, {**first.tests()[-1]})
        self.assertLess(self.difference(model, again), 1e-20)
        with open(self.path("again/config.json")) as file:
            self.assertEqual(json.load(file)["id2label"], config["id2label"])

    def test_augmentation_changes_from_epoch_to_epoch(self):
        """A model that stays as it is has the same loss on the same images."""
        def losses(*flags, outputs):
            run = self.train("--learning-rate=1e-30", "--epochs=2", "--no-evaluate", "--dtype=float64", "--batch-size=70", *flags,
                             ranks=1, outputs=outputs)
            return [loss for _, loss in run.losses()]
        first, second = losses("--augment=none", outputs="none")
        self.assertEqual(first, second)
        for kind in ("pad-crop", "resized-crop"):
            first, second = losses("--augment=" + kind, outputs=kind)
            self.assertNotEqual(first, second)

    def test_plots(self):
        self.train("--plots", "--no-evaluate")
        for name in ("loss", "dt", "dtf", "dtb"):
            self.assertTrue(os.path.exists(self.path(f"out/tplots/{name}.txt")), name)

    def test_help(self):
        out = self.train("--help").out
        for flag in ("--image-size", "--patch-size", "--attn", "--augment", "--mesh", "--summary-only"):
            self.assertTrue(re.search(flag + r"\b", out), flag)


if __name__ == "__main__":
    runs.main()
