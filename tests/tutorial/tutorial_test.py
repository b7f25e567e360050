"""The commands of docs/tutorial.md: one rank, then fsdp with tp, the checkpoint on one rank, the report."""
import os
import re
import sys

import h5py
import numpy
import program_runs

TRAIN, REPORT = program_runs.programs(2)
SMALL = ["--width=16", "--samples=256", "--no-plots", "--dtype=float64", "--global-batch-size=32"]


class TutorialTest(program_runs.ProgramTest):
    def train(self, *flags, name):
        run = self.finish(self.start([TRAIN, f"--history={self.path(name)}.h5", f"--outputs={self.path(name)}", *flags]))
        self.assertIn("Data: synthetic", run.out)
        return [float(loss) for loss in re.findall(r"epoch=\d+ loss=(\S+)", run.out)]

    def losses(self, name):
        with h5py.File(self.path(name + ".h5")) as file:
            return file["loss"][:]

    def test_from_nothing_to_a_report(self):
        one = self.train(*SMALL, "--nproc=1", "--epochs=3", name="one")
        self.assertEqual(len(one), 3)
        self.assertLess(one[2], one[0])
        kept = "--checkpoint-dir=" + self.path("run")
        self.train(*SMALL, "--nproc=4", "--mesh=dp_shard=2,tp=2", "--strategy=fsdp", "--epochs=2", kept, name="mesh")
        self.train("--resume=" + self.path("run"), "--nproc=1", "--epochs=3", "--no-plots", name="rest")
        # Sums in another order: rounding of float64 through 24 steps of Adam, whose steps are of size lr for any gradient.
        parts = numpy.concatenate([self.losses("mesh"), self.losses("rest")])
        numpy.testing.assert_allclose(parts, self.losses("one"), rtol=1e-9)
        page = self.path("runs.html")
        report = self.finish(self.start([REPORT, self.path("one.h5"), self.path("mesh.h5"), "--html=" + page]))
        self.assertIn("loss", report.out)
        self.assertGreater(os.path.getsize(page), 1000)


if __name__ == "__main__":
    program_runs.main(2)
