"""Bad input: one clear line, a non-zero exit code, nothing overwritten."""
import os
import random

import runs


class BadInputTest(runs.TrainTest):
    def fails(self, expected, *flags, ranks=2, small=runs.SMALL, largest_file=None):
        """Fails with one line of error; 0 ranks: without mpirun, which is slow to end a job."""
        alone = [] if ranks else ["--nproc=1", "--force-lp"]
        process = self.start(ranks, [*small, *flags, *alone], largest_file)
        out, err = process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0, out)
        run = runs.Run(process.returncode, out, err)
        errors = run.errors()
        self.assertEqual(len(errors), 1, errors)
        self.assertRegex(errors[0], expected)
        return run

    def test_cuda_without_a_gpu(self):
        self.fails(r"train_gru: --device=cuda: LibTorch finds no GPU on \S+ \(rank 0\);.*or use --device=cpu", "--device=cuda")

    def test_settings(self):
        table = [
            ("unknown flag --lp-level; did you mean --lp-levels", "--lp-level=3"),
            ("9 levels with coarsening factor 4 do not fit 128 steps: at most 4 levels", "--lp-levels=9"),
            ("unknown flag --reproducible; did you mean", "--reproducible"),
            ("--dry-run: this program has none", "--dry-run"),
            ("--lp-cfactor=x: expected an integer", "--lp-cfactor=x"),
            ("--lp-cfactor=1: must be at least 2", "--lp-cfactor=4,1"),
            ("--lp-coarse-hold=-1: must be at least 0", "--lp-coarse-hold=2,-1"),
            ("--lp-iters=0: must be at least 1", "--lp-iters=0"),
            ("--gradient-accumulation-steps=0: must be at least 1", "--gradient-accumulation-steps=0"),
            (r"--num-layers=1e\+06: expected 1 to 100000", "--num-layers=1000000"),
            ("--gru=clasic: expected implicit or classic", "--gru=clasic"),
            ("--dtype=float16: expected float32 or float64 or bfloat16", "--dtype=float16"),
            ("--percent-data=0: a share", "--percent-data=0"),
            ("--epochs.*expected an integer", "--epochs=two"),
            ("--lr=-1: must be a positive number", "--lr=-1"),
            ("--ensemble-size: .* --history", "--ensemble-size=2", "--history=x.h5"),
            (r"--mesh=tp=2: this program has no tensor parallelism \(tp\); expected dp_replicate or dp_shard", "--mesh=tp=2"),
            ("--mesh=lp=2,dp_replicate=2: 2 x 2 = 4 ranks, but there are 1", "--mesh=lp=2,dp_replicate=2"),
        ]
        for expected, *flags in table:
            with self.subTest(flags=flags):
                run = self.fails(expected, *flags, ranks=0)
                self.assertEqual(run.code, 2)
                self.assertEqual(run.out, "")  # before any work
        self.fails("--nproc=3: a launcher has started 2 ranks", "--nproc=3")
        self.fails("train_gru: --batch-size=1: 2 data-parallel ranks; expected at least one sample for each", "--batch-size=1",
                   "--mesh=dp_replicate=2,lp=1")
        self.fails("unknown flag --epoch; did you mean --epochs", "--epoch=3")
        self.fails("--lp-bias-reference=iteration: not with --activation-checkpointing here", "--lp-bias-limit=0.1",
                   "--lp-bias-reference=iteration", "--activation-checkpointing=full")

    def write_har(self):
        """A tiny set in the UCI HAR text layout."""
        numbers = random.Random(1)
        for split, count in (("train", 4), ("test", 2)):
            folder = self.path(f"data/{split}/Inertial Signals")
            os.makedirs(folder)
            for signal in ("body_acc", "body_gyro", "total_acc"):
                for axis in "xyz":
                    with open(f"{folder}/{signal}_{axis}_{split}.txt", "w") as file:
                        for _ in range(count):
                            file.write(" ".join(f"{numbers.uniform(-1, 1):.7e}" for _ in range(128)) + "\n")
            with open(self.path(f"data/{split}/y_{split}.txt"), "w") as file:
                file.write("".join(f"{k % 6 + 1}\n" for k in range(count)))

    def test_data(self):
        self.write_har()
        flags = ["--data-dir=" + self.path("data"), "--hidden-size=4", "--epochs=1"]
        self.assertNotIn("synthetic", self.train(2, *flags).out)
        signal = self.path("data/train/Inertial Signals/body_gyro_y_train.txt")
        with open(signal) as file:
            lines = file.readlines()
        with open(signal, "w") as file:
            file.writelines(lines[:2] + [lines[2].replace(" ", " x", 1)] + lines[3:])
        self.fails(r"body_gyro_y_train.txt:3: expected .*", *flags, small=[])
        with open(signal, "w") as file:
            file.writelines(lines[:3])
        self.fails(r"body_gyro_y_train.txt", *flags, small=[])
        os.remove(signal)
        self.fails(r"train_gru: .*body_gyro_y_train.txt", *flags, small=[])
        self.fails(r"train_gru: /nonexistent: ", "--data-dir=/nonexistent")
        self.fails(r"--sequence-length=129: the sequences have 128 steps", "--sequence-length=129", ranks=0)

    def test_places(self):
        with open(self.path("file"), "w") as file:
            file.write("in the way")
        self.fails("--checkpoint-dir: .*file", "--checkpoint-dir=" + self.path("file/folder"))
        self.fails("--history: .*nonexistent", "--history=" + self.path("nonexistent/run.h5"), ranks=0)
        self.fails("train_gru: .*nonexistent", "--resume=" + self.path("nonexistent"), ranks=0)

    def test_full_disk(self):
        kept = self.path("kept")
        alone = ["--nproc=1", "--force-lp"]
        self.train(0, "--epochs=1", *alone, "--checkpoint-dir=" + kept, "--history=" + self.path("run.h5"), *runs.SMALL)
        good = self.contents(kept)
        size = max(len(data) for data in good.values())
        self.train(0, "--epochs=2", *alone, "--resume=" + kept, *runs.SMALL)
        # The checkpoint of the second epoch finds no room for its last kilobyte; then there is none for anything.
        second = ["--epochs=2", "--resume=" + kept, "--checkpoint-dir=" + kept]
        run = self.fails("train_gru: --checkpoint-dir: .*kept.*", *second, ranks=0, largest_file=size - 1024)
        self.assertIn("Test set epoch  2", run.out)
        run = self.fails("--checkpoint-dir: cannot write in .*kept: No space left", *second, ranks=0, largest_file=100)
        self.assertNotIn("Test set", run.out)
        self.assertEqual(self.contents(kept), good)
        self.fails("--history: cannot write in .*: No space left", "--history=" + self.path("other.h5"), ranks=0,
                   largest_file=100)
        self.assertFalse(os.path.exists(self.path("other.h5")))

    def test_checkpoints(self):
        kept = self.path("kept")
        self.train(2, "--epochs=1", "--checkpoint-dir=" + kept, "--history=" + self.path("run.h5"), *runs.SMALL)
        good = self.contents(kept)
        resume = ["--epochs=2", "--resume=" + kept, "--checkpoint-dir=" + kept]
        self.fails("train_gru: --checkpoint-dir: .*kept holds the checkpoints of an earlier run; .* --resume",
                   "--checkpoint-dir=" + kept)
        self.fails("train_gru: .*run.h5", "--history=" + self.path("run.h5"), ranks=0)
        another = "--resume: .*step-000000006: checkpoint of another run: "
        self.fails(another + "hidden_size is 12 there and 13 here", *resume, "--hidden-size=13")
        self.fails(another + "use_sgd is false there and true here", *resume, "--use-sgd", ranks=0)
        self.fails(another + "gru is implicit there and classic here", *resume, "--gru=classic", ranks=0)
        self.fails(another + "seed is .* there and 5 here", *resume, "--seed=5", ranks=0)
        self.fails(another + "batch_size is 20 there and 30 here", *resume, "--batch-size=30", ranks=0)
        self.assertEqual(self.contents(kept), good)
        folder = os.path.join(kept, "step-000000006")
        shard = max((name for name in os.listdir(folder) if name != "index.h5"),
                    key=lambda name: os.path.getsize(os.path.join(folder, name)))
        file = os.path.join(folder, shard)
        with open(file, "rb") as opened:
            whole = opened.read()
        for what, data in {"short": whole[:len(whole) // 2], "byte": self.flipped(whole)}.items():
            with self.subTest(what=what):
                with open(file, "wb") as opened:
                    opened.write(data)
                self.fails("train_gru: .*(step-000000006|no complete checkpoint)", *resume, ranks=0)
        with open(file, "wb") as opened:
            opened.write(whole)
        self.train(2, *resume, *runs.SMALL)

    def test_checkpoints_of_earlier_versions(self):
        os.mkdir(self.path("old"))
        with open(self.path("old/last.h5"), "wb") as file:
            file.write(b"old")
        for resume in (["--resume=" + self.path("old")], ["--resume=" + self.path("old/last.h5")],
                       ["--resume=auto", "--checkpoint-dir=" + self.path("old")]):
            self.fails(r"--resume: .*old/last.h5: a checkpoint of train_gru in the format of one file, .*finish that run with "
                       r"Plait at revision b40ebd1", *resume, ranks=0)

    def contents(self, kept):
        """Every file of the checkpoints."""
        files = {}
        for folder, _, names in os.walk(kept):
            for name in names:
                with open(os.path.join(folder, name), "rb") as opened:
                    files[os.path.join(folder, name)] = opened.read()
        return files

    def flipped(self, good):
        """One bit of a parameter changed: in the longest stretch without zeros, which numbers are."""
        start = max(range(0, len(good) - 64, 8), key=lambda k: sum(byte != 0 for byte in good[k:k + 64]))
        return good[:start] + bytes([good[start] ^ 1]) + good[start + 1:]

    def test_no_number(self):
        kept = self.path("kept")
        self.train(2, "--epochs=1", "--use-sgd", "--checkpoint-dir=" + kept, *runs.SMALL)
        good = self.contents(kept)
        run = self.fails(r"the (loss|norm of the gradients) is -?(inf|nan) in step \d+, at epoch 2, sample \d+; first "
                         r"non-finite tensor: (parameter|gradient of|none, but the loss).*; the last good checkpoint stays in", "--use-sgd",
                         "--lr=1e38", "--epochs=2", "--resume=" + kept, "--checkpoint-dir=" + kept)
        self.assertNotIn("Test set epoch  2", run.out)
        self.assertEqual(self.contents(kept), good)


if __name__ == "__main__":
    runs.main()
