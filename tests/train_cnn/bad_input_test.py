"""Wrong flags, data, folders and checkpoints: one clear line, an exit status that is not 0."""
import os
import shutil
import subprocess

import numpy

import runs


class BadInputTest(runs.CnnTest):
    def fails(self, expected, *flags, code=2, **kwargs):
        run = self.train(*flags, code=code, **kwargs)
        self.assertEqual(len(run.errors()), 1, run.err)
        self.assertRegex(run.errors()[0], expected)
        self.assertEqual(run.epochs(), [])

    def test_flags(self):
        for expected, *flags in [
                ("train_cnn: unknown flag --epoch; did you mean --epochs", "--epoch=3"),
                ("train_cnn: --mesh=dp_replicate=2,dp_shard=2: 2 x 2 = 4 ranks, but there are 2; .*give --nproc=4",
                 "--mesh=dp_replicate=2,dp_shard=2"),
                ('train_cnn: --mesh=qp=2: no axis "qp"; expected axes and sizes', "--mesh=qp=2"),
                (r"train_cnn: --mesh=tp=2: this program has no tensor parallelism \(tp\); expected dp_replicate or dp_shard", "--mesh=tp=2"),
                ("train_cnn: --mesh=lp=2: this program has no layer-parallel solver", "--mesh=lp=2"),
                ("train_cnn: --strategy=zero9: expected ddp or zero1 or zero2 or fsdp", "--strategy=zero9"),
                ("train_cnn: --mesh=dp_shard=2: ddp replicates everything", "--strategy=ddp", "--mesh=dp_shard=2"),
                ("train_cnn: --dtype=int8: expected float32", "--dtype=int8"),
                ("train_cnn: --device=gpu: expected auto, cpu or cuda", "--device=gpu"),
                ("train_cnn: --dry-run: this program has none", "--dry-run"),
                ("train_cnn: --epochs=0: must be at least 1", "--epochs=0"),
                ("train_cnn: --checkpoint-interval: expected --checkpoint-dir=DIR", "--checkpoint-interval=4"),
                ("train_cnn: --resume=auto: expected --checkpoint-dir=DIR", "--resume=auto")]:
            with self.subTest(flags=flags):
                self.fails(expected, *flags)
                self.assertFalse(os.path.exists(self.path("out")))

    def test_cuda_without_a_gpu_fails_on_every_rank(self):
        self.fails(r"train_cnn: --device=cuda: LibTorch finds no GPU on \S+ \(rank 0\);.*or use --device=cpu",
                   "--device=cuda", code=1)
        script = f"{runs.PROGRAM} --device=cuda --data={self.images}; echo $? >> code$OMPI_COMM_WORLD_RANK"
        subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", "sh", "-c", script],
                       cwd=self.folder, env=self.environment(), capture_output=True, timeout=60, check=True)
        for rank in range(3):
            with open(self.path(f"code{rank}")) as file:
                self.assertEqual(file.read(), "1\n")

    def test_data(self):
        self.fails("--data: .*nowhere", "--data=" + self.path("nowhere"), code=1)
        images = self.path("cut")
        shutil.copytree(self.images, images)
        with open(os.path.join(images, "train-images-idx3-ubyte"), "r+b") as file:
            file.truncate(5000)
        self.fails("--data: .*train-images-idx3-ubyte", "--data=" + images, code=1)
        runs.write_images(self.path("tiny"), side=5)
        self.fails("images of 5 x 5: expected at least 6 x 6", "--data=" + self.path("tiny"), code=1)

    def test_a_run_that_does_not_fit(self):
        self.fails(r"the run needs \d+\.\d+ GB on each rank, but only \d+\.\d+ GB are available \(.*\): at most \d+ samples per "
                   "rank and pass fit", "--batch-size=1000000000", code=1)

    def test_layers_that_there_are_not(self):
        self.fails('--activation-checkpointing: activation checkpoints "conv3": expected none, full, every-K or blocks among conv1, conv2, fc1, fc2',
                   "--activation-checkpointing=conv3", code=1)

    def test_places(self):
        with open(self.path("file"), "w"):
            pass
        self.fails("--outputs: .*file", code=1, outputs="file")
        self.fails("--history: .*nowhere", "--history=" + self.path("nowhere/run.h5"), code=1)
        self.fails("--checkpoint-dir: .*file", "--checkpoint-dir=" + self.path("file"), code=1)
        self.fails("nowhere", "--offload=" + self.path("nowhere"), code=1, outputs="offload")
        self.fails("nowhere", "--offload=" + self.path("nowhere"), "--offload-params", code=1, outputs="offload2")
        self.fails("--save-model: .*file", "--save-model=" + self.path("file/model"), code=1)
        self.train()
        self.fails(".*history.h5", code=1)  # never appended to silently

    def test_checkpoints(self):
        kept = "--checkpoint-dir=" + self.path("kept")
        self.train("--epochs=1", kept)
        resume = "--resume=" + self.path("kept")
        self.fails("holds the checkpoints of an earlier run; resume with --resume", kept, code=1, outputs="a")
        self.fails("--resume: .*nowhere", "--resume=" + self.path("nowhere"), code=1, outputs="b")
        self.fails("checkpoint of another run: batch_size_of_all_ranks is 16 there and 32 here", resume, "--batch-size=16",
                   code=1, outputs="c")
        self.fails("checkpoint of another run: dtype is float32 there and bfloat16 here", resume, "--dtype=bfloat16",
                   code=1, outputs="d")
        larger = self.path("larger")
        runs.write_images(larger, side=12)
        self.fails("checkpoint of another run: image is 10 x 10 there and 12 x 12 here", resume, "--data=" + larger,
                   code=1, outputs="e")
        folder = self.path("kept/step-000000009")
        shard = max((name for name in os.listdir(folder) if name != "index.h5"),
                    key=lambda name: os.path.getsize(os.path.join(folder, name)))
        with open(os.path.join(folder, shard), "r+b") as file:
            file.seek(os.path.getsize(os.path.join(folder, shard)) // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 16]))
        self.fails(shard, resume, code=1, outputs="f")
        os.remove(os.path.join(folder, shard))
        self.fails("step-000000009|no complete checkpoint|no checkpoint", resume, code=1, outputs="g")

    def test_other_settings_than_the_checkpoint(self):
        self.train("--epochs=1", "--checkpoint-dir=" + self.path("kept"), "--weight-decay=0.02", "--seed=3")
        resume = "--resume=" + self.path("kept")
        for expected, flag in [
                ("seed is 3 there and 1 here", "--seed=1"),
                ("weight_decay is 0.02 there and 0.01 here", "--weight-decay=0.01"),
                ("dropout1 is 0.25 there and 0.5 here", "--dropout1=0.5"),
                ("gradient_accumulation_steps is 1 there and 2 here", "--gradient-accumulation-steps=2"),
                ("training_samples is 130 there and 100 here", "--max-samples=100")]:
            with self.subTest(flag=flag):
                self.fails("--resume: .*step-000000009: checkpoint of another run: " + expected, resume, flag, code=1,
                           outputs="x")

    def test_other_images_of_the_same_number(self):
        self.train("--epochs=1", "--checkpoint-dir=" + self.path("kept"))
        others = self.path("others")
        shutil.copytree(self.images, others)
        for name in os.listdir(others):
            if "labels" in name:
                with open(os.path.join(others, name), "r+b") as file:
                    header, labels = file.read(8), file.read()
                    file.seek(0)
                    file.write(header + labels[::-1])
        self.fails(r"--resume: .*training_targets_crc32 is \w+ there and \w+ here", "--resume=" + self.path("kept"), "--data=" + others,
                   code=1, outputs="x")

    def test_a_model_that_is_no_number_has_no_accuracy(self):
        run = self.train("--lr=1e30", "--epochs=1", "--max-samples=4", "--global-batch-size=4", code=1)
        self.assertEqual(len(run.errors()), 1, run.err)
        self.assertRegex(run.errors()[0], r"the test loss is -?(nan|inf) in step 1, at epoch 1, .*; first non-finite tensor: ")
        self.assertEqual(run.epochs(), [])

    def test_a_loss_that_is_no_number(self):
        """Nothing of it reaches the parameters, and good checkpoints are not rotated away."""
        kept = self.path("kept")
        self.train("--epochs=1", "--checkpoint-dir=" + kept)
        run = self.train("--lr=1e30", "--epochs=9", "--resume=" + kept, "--checkpoint-dir=" + kept,
                         "--checkpoint-interval=1", code=1, outputs="b")
        self.assertEqual(len(run.errors()), 1, run.err)
        self.assertRegex(run.errors()[0], r"the (loss|norm of the gradients) is -?(nan|inf) in step \d+, at epoch 2, sample "
                                          r"\d+, step \d+; first non-finite tensor: (parameter|gradient of) \S+; the last "
                                          r"good checkpoint stays in \S+/kept; try a smaller learning rate")
        for name in os.listdir(kept):
            if name != "latest":
                shutil.copytree(os.path.join(kept, name), self.path("one"))
                _, model = self.model("--epochs=1", "--lr=0", "--resume=" + self.path("one"), name="m" + name)
                for tensor in model.values():
                    self.assertTrue(numpy.isfinite(tensor).all(), name)
                shutil.rmtree(self.path("one"))


if __name__ == "__main__":
    runs.main()
