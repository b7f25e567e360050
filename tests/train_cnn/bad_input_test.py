"""Wrong flags, data, folders and checkpoints: one clear line, an exit status that is not 0."""
import os
import shutil

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
                ('train_cnn: --mesh=tp=2: no axis "tp"; expected axes and sizes', "--mesh=tp=2"),
                ("train_cnn: --strategy: .*ddp, zero1, zero2", "--strategy=zero9"),
                ("train_cnn: --mesh=dp_shard=2: ddp keeps everything whole", "--strategy=ddp", "--mesh=dp_shard=2"),
                ("train_cnn: --dtype=int8: expected float32", "--dtype=int8"),
                ("train_cnn: --epochs=0: expected at least 1", "--epochs=0"),
                ("train_cnn: --checkpoint-every and --keep-last", "--checkpoint-every=4")]:
            with self.subTest(flags=flags):
                self.fails(expected, *flags)
                self.assertFalse(os.path.exists(self.path("out")))

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
        self.fails(r"the run needs \d+\.\d+ GB on each rank, but \d+\.\d+ GB are there \(.*\): at most \d+ samples per "
                   "rank and pass fit", "--batch-size=1000000000", code=1)

    def test_layers_that_there_are_not(self):
        self.fails('activation checkpoints "conv3": expected none, full, every=K or blocks among conv1, conv2, fc1, fc2',
                   "--activation-checkpoints=conv3", code=1)

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
        self.fails("holds the checkpoints of an earlier run; go on with --resume", kept, code=1, outputs="a")
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

    def test_a_loss_that_is_no_number(self):
        run = self.train("--lr=1e15", "--epochs=3", code=1)
        self.assertEqual(len(run.errors()), 1, run.err)
        self.assertRegex(run.errors()[0], r"the loss of epoch \d is not finite: choose a smaller --lr")


if __name__ == "__main__":
    runs.main()
