"""Wrong flags, data, folders and checkpoints: one clear line, an exit status that is not 0."""
import json
import os
import re
import shutil
import subprocess

import runs


class BadInputTest(runs.VitTest):
    def fails(self, expected, *flags, code=2, **kwargs):
        run = self.train(*flags, code=code, **kwargs)
        self.assertEqual(len(run.errors()), 1, run.err)
        self.assertRegex(run.errors()[0], "^train_vit: " + expected)
        self.assertEqual(run.tests(), [])

    def test_flags(self):
        for expected, *flags in [
                ("unknown flag --head; did you mean --head-dim", "--head=3"),
                ("--preset: no preset \"vit-9\"; there are vit-tiny, vit-small", "--preset=vit-9"),
                ("--image-size=32: must be a multiple of --patch-size=5", "--patch-size=5"),
                ("--heads=0: expected 1 to 100000", "--heads=0"),
                ("--mlp-dim=-4: expected 1 to 100000", "--mlp-dim=-4"),
                ("--pool=max: expected mean or class", "--pool=max"),
                ("--attn=flash: expected sdpa or math", "--attn=flash"),
                ("--dropout=1: must be at least 0 and below 1", "--dropout=1"),
                ("--norm-eps=0: must be a positive number", "--norm-eps=0"),
                ("--augment: \"flip\": expected none, pad-crop or resized-crop", "--augment=flip"),
                ("--max-iters=0 and --epochs=0: say how long to train", "--max-iters=0", "--epochs=0"),
                ("--min-lr=1: must be at most --learning-rate=0.002", "--min-lr=1", "--lr-decay-iters=9"),
                ("--min-lr: the learning rate does not decay; expected --lr-decay-iters=N", "--min-lr=0"),
                ("--dtype=int8: expected float32", "--dtype=int8"),
                ("--mesh=dp_replicate=2,dp_shard=2: 2 x 2 = 4 ranks, but there are 2", "--mesh=dp_replicate=2,dp_shard=2"),
                ("--image-size=32 --patch-size=8 --pool=class: 17 tokens for the 2 ranks of tp; --sequence-parallel needs a "
                 "multiple", "--mesh=tp=2", "--sequence-parallel", "--pool=class", "--patch-size=8"),
                ("--lp-levels, --lp-cfactor, --depth: ", "--mesh=lp=2")]:
            with self.subTest(flags=flags):
                self.fails(expected, *flags)
                self.assertFalse(os.path.exists(self.path("out")))

    def test_splits(self):
        self.fails("--mesh: blocks.0.attn.qkv: 3 heads for 2 ranks; expected a multiple of the ranks", "--mesh=tp=2",
                   "--heads=3", code=1)
        self.fails("--mesh=pp=2: 2 pipeline stages, but the model has 1 blocks; expected at least 2", "--mesh=pp=2",
                   "--depth=1", code=1)

    def test_data(self):
        self.fails("--data: .*nowhere: no such folder; expected fake, or a folder of images", "--data=" + self.path("nowhere"),
                   code=1)
        os.mkdir(self.path("empty"))
        self.fails("--data: .*empty: 0 training and 0 test images found; expected CIFAR-10", "--data=" + self.path("empty"),
                   code=1)
        shutil.copytree(self.images, self.path("cut"))
        with open(self.path("cut/test_batch.bin"), "r+b") as file:
            file.truncate(5000)
        self.fails("--data: .*cut/test_batch.bin: 5000 bytes; expected a multiple of 3073", "--data=" + self.path("cut"), code=1)
        self.fails("--classes=3: the images have 10", "--classes=3", code=1)

    def write_pictures(self, folder):
        from PIL import Image
        for name in ("train/a", "val/a"):
            os.makedirs(self.path(f"{folder}/{name}"))
            for i in range(16):
                Image.new("RGB", (40, 40), (i, 0, 0)).save(self.path(f"{folder}/{name}/{i:02}.png"))

    def test_other_test_images_on_another_rank(self):
        """As where each node has its own copy of the data: what would be printed is no accuracy."""
        for folder in ("0/pictures", "1/pictures"):
            self.write_pictures(folder)
        os.remove(self.path("1/pictures/val/a/07.png"))
        flags = self.flags("--data=pictures", "--epochs=1", "--batch-size=2")
        flags = [flag for flag in flags if not flag.startswith("--nproc")]
        script = "cd $OMPI_COMM_WORLD_RANK && exec \"$0\" \"$@\""
        run = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "sh", "-c", script, runs.PROGRAM, *flags],
                             cwd=self.folder, env=self.environment(), capture_output=True, text=True, timeout=120)
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertIn("train_vit: ranks have different data: test_samples=16 on rank 0 and test_samples=15 on rank 1; give all "
                      "ranks the same files\n", run.stderr)

    def test_a_test_image_that_cannot_be_read(self):
        """The steps before the test are not lost."""
        self.write_pictures("pictures")
        with open(self.path("pictures/val/a/07.png"), "rb") as file:
            whole = file.read()
        with open(self.path("pictures/val/a/07.png"), "r+b") as file:
            file.truncate(60)
        data = ["--data=" + self.path("pictures"), "--batch-size=2"]
        kept = "--checkpoint-dir=" + self.path("kept")
        self.fails("--data: .*pictures/val/a/07.png: the image is damaged", *data, "--epochs=2", kept, code=1)
        with open(self.path("pictures/val/a/07.png"), "wb") as file:
            file.write(whole)
        run = self.train(*data, "--epochs=2", kept, "--resume=auto", outputs="rest")
        self.assertIn("Resuming at epoch 2, sample 0, step 4", run.out)
        uninterrupted = self.train(*data, "--epochs=2", outputs="whole")
        self.assertEqual(run.losses(), uninterrupted.losses()[4:])
        self.assertEqual(run.tests()[-1], uninterrupted.tests()[-1])

    def test_a_file_that_cannot_be_read(self):
        """One rank meets it, all end, in the same step."""
        self.write_pictures("pictures")
        with open(self.path("pictures/train/a/07.png"), "r+b") as file:
            file.truncate(60)
        flags = self.flags("--data=" + self.path("pictures"), "--epochs=1", "--batch-size=2")
        flags = [flag for flag in flags if not flag.startswith("--nproc")]
        script = f"\"$0\" \"$@\"; echo $? > code$OMPI_COMM_WORLD_RANK"
        run = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "sh", "-c", script, runs.PROGRAM, *flags],
                             cwd=self.folder, env=self.environment(), capture_output=True, text=True, timeout=120)
        errors = runs.Run(0, run.stdout, run.stderr).errors_of_ranks()
        self.assertEqual(len(errors), 1, run.stderr)
        self.assertRegex(errors[0], "train_vit: --data: .*pictures/train/a/07.png: the image is damaged or cut short")
        for rank in range(2):
            with open(self.path(f"code{rank}")) as file:
                self.assertEqual(file.read(), "1\n")
        for i in range(16):  # a step without a valid sample
            os.truncate(self.path(f"pictures/train/a/{i:02}.png"), 60)
        self.fails("--data: .*pictures/train/a/[0-9]+.png: the image is damaged or cut short", "--data=" + self.path("pictures"),
                   "--epochs=1", "--batch-size=2", code=1, outputs="all")

    def test_a_run_that_does_not_fit(self):
        self.fails(r"the run needs \d+\.\d+ GB on each rank, but only \d+\.\d+ GB are available", "--batch-size=1000000000", code=1)

    def test_a_test_that_does_not_fit(self):
        """In a limit that the steps keep, told before the first one. The 21 images are fewer than a batch of the test may have."""
        flags = ["--batch-size=1", "--test-batch-size=1000", "--max-iters=1", "--epochs=0"]

        def planned(*more, outputs):
            run = self.train(*flags, *more, outputs=outputs)
            activations, = re.findall("  activations +[0-9.]+ MB   (.*)", run.out)
            total, = re.findall("  total +([0-9.]+) MB", run.out)
            return float(total), activations
        tested, steps = planned(outputs="a"), planned("--no-evaluate", outputs="b")
        self.assertEqual((tested[1], steps[1]), ("of evaluation", "1 samples per pass"))
        self.assertEqual(planned("--test-batch-size=21", outputs="c"), tested)
        limit = f"--memory-limit={int((tested[0] + steps[0]) / 2 * 1e6 / 1024)}K"
        self.fails(r"the run needs .*: evaluation takes [0-9.]+ GB of it: evaluate fewer samples at a time", limit, *flags, code=1,
                   outputs="d")
        self.train(limit, "--no-evaluate", *flags, outputs="e")
        self.fails(r"rank 0 needs [0-9.]+ GB, but only [0-9.]+ GB are available", limit, "--dry-run", *flags, code=1, outputs="f")

    def test_models(self):
        self.fails("--init-from: .*nowhere/config.json", "--init-from=" + self.path("nowhere"), code=1)
        with open(self.path("file"), "w"):
            pass
        self.fails("--save-model: .*file", "--save-model=" + self.path("file/model"), code=1)
        self.fails("--save-model: Hugging Face's ViT has a class token; this one pools the mean of its patches",
                   "--save-model=" + self.folder, "--pool=mean", code=1)
        self.fails("--save-model: Hugging Face's ViT has heads of width 16 together; this one has 8",
                   "--save-model=" + self.folder, "--head-dim=4", code=1)
        self.model("--data=fake", "--classes=5", "--max-iters=1", "--epochs=0", "--no-evaluate")
        self.fails("--init-from: --pool=mean: expected class, or leave it out", "--init-from=" + self.path("model"), "--pool=mean",
                   code=1, outputs="b")
        # Of 17 tokens, which the preset's sizes do not tell.
        self.fails("--image-size=32 --patch-size=8 --pool=class: 17 tokens for the 2 ranks of tp", "--init-from=" + self.path("model"),
                   "--mesh=tp=2", "--sequence-parallel", code=1, outputs="b", small=["--preset=cpu", "--epochs=1"])
        self.fails("--init-from: a head of 5 classes: the images have 10", "--init-from=" + self.path("model"), code=1, outputs="b")

    def test_images_of_other_classes_than_the_models(self):
        """Class 0 of these images is class 1 of the model: what it would evaluate is no accuracy."""
        from PIL import Image
        for data, names in (("three", ("bird", "cat", "frog")), ("two", ("cat", "frog")), ("new", ("ant", "bird", "cat")),
                            ("other", ("bird", "cow", "dog"))):
            for part in ("train", "val"):
                for name in names:
                    os.makedirs(self.path(f"{data}/{part}/{name}"))
                    for i in range(3):
                        Image.new("RGB", (40, 40), (80 * i, 0, 0)).save(self.path(f"{data}/{part}/{name}/{i}.png"))
        self.model("--data=" + self.path("three"), "--max-iters=1", "--epochs=0", "--no-evaluate")
        evaluate = ["--init-from=" + self.path("model"), "--eval-only"]
        self.train(*evaluate, "--data=" + self.path("three"), outputs="a")
        self.fails("--init-from: class 0 is cat in the images and bird in the model, which has cat as class 1; expected images "
                   "of all of its classes, in its order", *evaluate, "--data=" + self.path("two"), code=1, outputs="b")
        # Behind a class that the model does not have.
        self.fails("--init-from: class 1 is bird in the images and cat in the model, which has bird as class 0; expected images "
                   "of all of its classes, in its order", *evaluate, "--data=" + self.path("new"), code=1, outputs="c")
        # What is not trained is what it was.
        self.train(*evaluate, "--data=" + self.path("other"), "--save-model=" + self.path("again"), outputs="d")
        with open(self.path("again/config.json")) as file:
            self.assertEqual(json.load(file)["id2label"], {"0": "bird", "1": "cat", "2": "frog"})
        # Trained as another class: its old name is gone.
        self.train("--init-from=" + self.path("model"), "--data=" + self.path("two"), "--max-iters=1", "--epochs=0",
                   "--no-evaluate", "--save-model=" + self.path("tuned"), outputs="e")
        with open(self.path("tuned/config.json")) as file:
            config = json.load(file)
        self.assertEqual(config["id2label"], {"0": "cat", "1": "frog", "2": "LABEL_2"})
        self.assertEqual(config["label2id"], {"cat": 0, "frog": 1, "LABEL_2": 2})

    def test_other_settings_than_the_checkpoint(self):
        kept = "--checkpoint-dir=" + self.path("kept")
        self.train(kept, "--augment=pad-crop", "--max-samples=32")
        resume = "--resume=" + self.path("kept")
        for expected, *flags in [
                ("depth is 2 there and 3 here", "--depth=3"),
                ("augment is pad-crop there and none here", "--augment=none"),
                ("dtype is float32 there and bfloat16 here", "--dtype=bf16"),
                ("batch_size_of_all_ranks is 16 there and 32 here", "--batch-size=16"),
                ("training_samples is 32 there and 70 here", "--max-samples=0")]:
            with self.subTest(flags=flags):
                self.fails("--resume: .*checkpoint of another run: " + expected, resume, "--max-samples=32", *flags, code=1,
                           outputs="x")
        self.fails(".*holds the checkpoints of an earlier run; resume with --resume", kept, code=1, outputs="y")
        # Whose files would take the place of the others.
        self.train("--max-iters=1", "--epochs=0", "--no-evaluate", "--checkpoint-dir=" + self.path("other"), outputs="z")
        self.fails(".*holds the checkpoints of an earlier run; resume with --resume", "--resume=" + self.path("other"), kept,
                   code=1, outputs="y")
        self.fails("--resume and --init-from are mutually exclusive", resume, "--init-from=" + self.path("model"), outputs="y")


if __name__ == "__main__":
    runs.main()
