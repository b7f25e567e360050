"""A resumed run has the numbers of an uninterrupted one; with other features it is refused."""
import os
import re
import shutil

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
        tests = r"(\w+: +Test set epoch +\d+: Accuracy: \d+/\d+)"
        run = self.train("--epochs=2", "--checkpoint-dir=" + self.path("kept"), "--history=" + self.path("whole.h5"))
        trained = re.findall(tests, run.out)[-2:]
        run = self.train("--resume=" + self.path("kept"), "--eval-only", "--history=" + self.path("none.h5"))
        self.assertEqual(re.findall(tests, run.out), trained)
        self.assertEqual(len(trained), 2)
        self.assertEqual(run.losses(), [])
        self.assertFalse(os.path.exists(self.path("none.h5")))

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
