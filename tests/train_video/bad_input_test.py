"""Bad input: one clear line, a non-zero exit code on all ranks."""
import os

import runs


class BadInputTest(runs.VideoTest):
    def write(self, name, content):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(content)

    def test_settings(self):
        for expected, *flags in (
                ('--network: "resnet20": expected resnet18, resnet34 or resnet50', "--network=resnet20"),
                ("--dry-run: this program has none", "--dry-run"),
                ("--frame-step=0: must be at least 1", "--frame-step=0", "--data=videos"),
                ("--frame-step: expected --data=DIR with videos", "--frame-step=2"),
                ("--frame-size=31: must be at least 32", "--frame-size=31"),
                ("--split=0: must be at least 1", "--split=0", "--splits=x", "--data=x"),
                ("--split: expected --splits=DIR", "--split=2"),
                ("--synthetic-videos: expected --data=synthetic", "--synthetic-videos=3", "--data=x"),
                ("--synthetic-classes=9: ", "--synthetic-classes=9"),
                ("--sequence-length=0: must be at least 1", "--sequence-length=0"),
                ("--splits: the synthetic clips", "--splits=x"),
                ("unknown flag --frame-sise; did you mean --frame-size", "--frame-sise=64")):
            with self.subTest(flags=flags):
                run = self.fails(expected, *flags, ranks=1)
                self.assertEqual(run.code, 2)
                self.assertEqual(run.out, "")

    def test_features_that_cannot_be_written(self):
        command = [runs.PROGRAM, *runs.SMALL, *runs.SYNTHETIC, "--nproc=1", "--features-dir=" + self.path("features")]
        for size in (1000, 20000):
            run = self.finish(self.start(command, largest_file=size), 1)
            self.assertRegex(run.err, r"^train_video: --features-dir: .*train-0000.h5 not written: .*File too large\n$")
            self.assertEqual(self.features(), {})

    def test_videos(self):
        data = "--data=" + self.path("videos")
        self.fails("--data: .*videos: cannot be listed: No such file", data)
        self.write_videos()
        self.write("videos/wave/3.avi", b"no video")
        # The rank that has it says so; nobody trains.
        run = self.fails("(rank [01]: )?.*videos/wave/3.avi: cannot be read as a video", data)
        self.assertNotIn("Loading", run.out)
        # Features of the others are there: the next run has less to do.
        os.remove(self.path("videos/wave/3.avi"))
        computed, found = self.train("--epochs=1", data).work()
        self.assertEqual(computed + found, 6)
        self.assertGreaterEqual(found, 3)
        self.write("videos/wave/2/9.png", b"no picture")
        self.fails("(rank [01]: )?.*videos/wave/2/9.png: neither a JPEG nor a PNG", data, "--sequence-length=16")
        os.mkdir(self.path("videos/empty"))
        self.fails("--data: .*videos/empty: a class without videos", data)

    def test_splits(self):
        self.write_videos()
        flags = ["--data=" + self.path("videos"), "--splits=" + self.path("splits"), "--split=3"]
        self.fails("--data: .*splits/jump_test_split3.txt: ", *flags)
        self.write("splits/jump_test_split3.txt", b"0.avi 1\n1.avi 2\n2.avi 0\n")
        self.write("splits/wave_test_split3.txt", b"0.avi 1\n1.avi 2\n7.avi 1\n")
        self.fails("--data: .*wave_test_split3.txt:3: 7.avi is not among the videos of wave", *flags)
        self.write("splits/wave_test_split3.txt", b"0.avi 1\n1.avi 2\n")
        run = self.train("--epochs=1", *flags)
        self.assertEqual(run.work(), (4, 0))
        self.assertIn("split 3: 2 + 2 sequences of 8 x 1000", run.out)

    def test_weights(self):
        self.fails("--weights: .*none.safetensors: ", "--weights=" + self.path("none.safetensors"))
        self.write("text.pt", b"no weights")
        self.fails("--weights: .*text.pt: cannot be read as TorchScript", "--weights=" + self.path("text.pt"))
        self.write("text.safetensors", b"no weights")
        self.fails("--weights: .*text.safetensors: ", "--weights=" + self.path("text.safetensors"))

    def test_places(self):
        self.write("file", b"in the way")
        self.fails("(rank [01]: )?--features-dir: .*file", "--features-dir=" + self.path("file/features"))


if __name__ == "__main__":
    runs.main()
