"""A resumed run has the numbers of an uninterrupted one; with other features it is refused."""
import os
import re
import shutil
import signal

import runs


class ResumeTest(runs.VideoTest):
    def test_same_numbers(self):
        self.train("--epochs=3", "--history=" + self.path("whole.h5"))
        self.train("--epochs=1", "--checkpoint-dir=" + self.path("kept"), "--history=" + self.path("parts.h5"))
        run = self.train("--epochs=3", "--resume=" + self.path("kept"), "--history=" + self.path("parts.h5"), "--force-lp", ranks=1)
        self.assertEqual(run.work(), (0, 14))
        self.assertEqual(self.history("parts.h5"), self.history("whole.h5"))
        another = "--resume: .*checkpoint of another run: "
        self.fails(another + "frame_size is 32 there and 33 here", "--resume=" + self.path("kept"), "--frame-size=33")
        self.fails(another + "synthetic_videos is 10 there and 11 here", "--resume=" + self.path("kept"), "--synthetic-videos=11")

    def test_evaluation_alone(self):
        """Of the epoch with the most correct answers: few other parameters give as many."""
        tests = r"(\w+: +Test set epoch +(\d+): Accuracy: (\d+)/\d+)"
        flags = ["--synthetic-videos=24", "--synthetic-classes=4", "--lr=0.005", "--batch-size=8", "--hidden-size=32"]
        run = self.train(*flags, "--epochs=25", "--checkpoint-dir=" + self.path("kept"), "--keep-last=0")
        lines = re.findall(tests, run.out)
        epoch, most = max(((epoch, int(right)) for _, epoch, right in lines), key=lambda pair: pair[1])
        self.assertGreaterEqual(most, 5)  # of 9, in four classes
        checkpoints = sorted(name for name in os.listdir(self.path("kept")) if name.startswith("step-"))
        self.assertEqual(len(checkpoints), 25)
        run = self.train(*flags, f"--resume={self.path('kept')}/{checkpoints[int(epoch) - 1]}", "--eval-only",
                         "--history=" + self.path("none.h5"))
        self.assertEqual(re.findall(tests, run.out), [line for line in lines if line[1] == epoch])
        self.assertEqual(run.losses(), [])
        self.assertFalse(os.path.exists(self.path("none.h5")))

    def test_stopped_before_training(self):
        """While features are computed: the same command has those that are there, and goes on."""
        command = ["--synthetic-videos=150", "--epochs=1", "--checkpoint-dir=" + self.path("kept"), "--resume=auto"]
        process = self.begin(*command)
        while not self.features():
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        stopped = self.finish(process, code=143)
        self.assertIn("Stopped (SIGTERM) before the features of all videos were there", stopped.out)
        computed, found = stopped.work()
        self.assertEqual((len(self.features()), found), (computed, 0))
        self.assertLess(computed, 210)
        self.assertEqual(self.train(*command).work(), (210 - computed, computed))

    def test_other_weights(self):
        from safetensors.torch import save_file
        import torch
        import torchvision
        for seed, name in ((1, "a"), (2, "b")):
            torch.manual_seed(seed)
            save_file(torchvision.models.resnet18().state_dict(), self.path(name))
        flags = ["--epochs=2", "--percent-data=0.5"]
        shutil.copy(self.path("a"), self.path("weights"))
        self.train("--epochs=1", *flags[1:], "--weights=" + self.path("weights"), "--checkpoint-dir=" + self.path("kept"))
        resume = [*flags, "--weights=" + self.path("weights"), "--resume=" + self.path("kept")]
        self.train(*resume)
        os.replace(self.path("b"), self.path("weights"))
        self.fails("--resume: .*checkpoint of another run: frame_features is resnet18, weights [0-9a-f]{16}, .* there and resnet18, "
                   "weights [0-9a-f]{16}, .* here", *resume)


if __name__ == "__main__":
    runs.main()
