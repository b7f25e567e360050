"""It learns: on the synthetic stand-in, and on real windows where this machine has them."""
import os
import re
import tarfile

import runs

# Of the workspace: $(location //:WORKSPACE) is a link to it.
REAL = os.path.join(os.path.dirname(os.path.realpath("WORKSPACE")), "../shared/data/uci-har/UCI_HAR_subset.tar.xz")


SETTINGS = ["--hidden-size=32", "--batch-size=25", "--lr=0.005"]


class LearningTest(runs.TrainTest):
    def accuracies(self, run):
        return [int(x) for x in re.findall(r"Accuracy: \d+/\d+ \((\d+)%\)", run.out)]

    def test_synthetic(self):
        for gru in ("implicit", "classic"):
            run = self.train(2, f"--gru={gru}", "--percent-data=0.25", *SETTINGS, "--epochs=6")
            # 144 batches; chance is 17 %.
            losses = [float(x) for x in run.losses()]
            self.assertLess(losses[-1], 0.6 * losses[0], gru)
            self.assertGreaterEqual(max(self.accuracies(run)), 60, gru)
            self.assertGreaterEqual(min(self.accuracies(run)[-2:]), 45, gru)

    def test_precisions_agree(self):
        first, losses = {}, {}
        for dtype in ("float64", "float32", "bfloat16"):
            losses[dtype] = self.train(2, f"--dtype={dtype}", "--epochs=1", *runs.SMALL).losses()
            first[dtype] = float(losses[dtype][0])
        # The same start. Forward through 128 steps: float32 rounds to 6e-8, bfloat16's factors to 2^-9.
        self.assertAlmostEqual(first["float32"], first["float64"], delta=128 * 6e-8 + 1e-6)
        self.assertAlmostEqual(first["bfloat16"], first["float32"], delta=16 * 2 ** -9)
        self.assertNotEqual(losses["bfloat16"], losses["float32"])

    def test_real_windows(self):
        flags = ["--percent-data=0.25", *SETTINGS, "--epochs=5"]
        if os.path.exists(REAL):
            with tarfile.open(REAL) as archive:
                archive.extractall(self.folder)
            flags.append("--data-dir=" + self.path("UCI HAR Dataset"))
        else:
            print("no", REAL, "here: the synthetic stand-in takes its place")
        run = self.train(2, *flags)
        self.assertEqual("synthetic" in run.out, not os.path.exists(REAL))
        self.assertGreaterEqual(max(self.accuracies(run)), 50)  # 120 batches; the commonest class has 18 %


if __name__ == "__main__":
    runs.main()
