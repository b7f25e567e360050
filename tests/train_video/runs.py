"""Runs train_video for the tests: on some ranks, on small videos, with its output, features and history at hand."""
import glob
import os
import re
import sys

import program_runs

try:
    import h5py
    import numpy
    from PIL import Image
except ImportError:
    sys.exit("no Python with h5py, numpy and Pillow: run ./bazelw setup, which names it in .bazelrc.local")

PROGRAM, = program_runs.programs(1)

# Small enough for seconds.
SMALL = ["--sequence-length=8", "--frame-size=32", "--hidden-size=16", "--lp-levels=2", "--lp-cfactor=2"]
SYNTHETIC = ["--synthetic-videos=10", "--synthetic-classes=2", "--batch-size=5"]


class Run(program_runs.Run):
    def losses(self):
        return re.findall(r"Loss: (\S+)", self.out)

    def work(self):
        """Videos whose features were computed, and found."""
        return tuple(int(x) for x in re.search(r"(\d+) videos computed, (\d+) found", self.out).groups())


class VideoTest(program_runs.ProgramTest):
    run_class = Run

    def environment(self):
        return {**super().environment(), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "OMPI_MCA_rmaps_base_oversubscribe": "1"}

    def begin(self, *flags, ranks=2, features="features", small=(*SMALL, *SYNTHETIC)):
        real = any(flag.startswith("--data=") and flag != "--data=synthetic" for flag in flags)
        small = [flag for flag in small if not (real and flag.startswith("--synthetic"))]
        return self.start([PROGRAM, *small, f"--nproc={ranks}", "--features-dir=" + self.path(features), *flags])

    def train(self, *flags, code=0, **kwargs):
        return self.finish(self.begin(*flags, **kwargs), code)

    def fails(self, expected, *flags, ranks=2, **kwargs):
        """Ends with one line of error."""
        run = self.train(*flags, ranks=ranks, code=None, **kwargs)
        self.assertIn(run.code, (1, 2), run.out)
        errors = run.errors()
        self.assertEqual(len(errors), 1, errors)
        self.assertRegex(errors[0], "^train_video: " + expected)
        return run

    def features(self, features="features"):
        """By name of the video: the numbers, (frames, features), and what they were made from."""
        found = {}
        for path in glob.glob(self.path(features) + "/*/**/*.h5", recursive=True):
            with h5py.File(path) as file:
                name = os.path.relpath(path, self.path(features)).split("/", 1)[1][:-len(".h5")]
                found[name] = (file["features"][:], file.attrs["made_from"].decode())
        return found

    def history(self, path):
        with h5py.File(self.path(path)) as file:
            return {name: file[name][:].tobytes() for name in ("loss", "gradient_norm", "test_acc")}

    def write_frames(self, folder, count, seed=0, rows=40, columns=50):
        """Pictures of a smooth pattern under noise."""
        os.makedirs(self.path(folder))
        numbers = numpy.random.default_rng(seed)
        for k in range(count):
            x, y = numpy.meshgrid(numpy.arange(columns), numpy.arange(rows))
            frame = numpy.stack([127 + 100 * numpy.sin((x * (c + 1) + 3 * k + y) / 9) for c in range(3)], 2)
            frame = (frame + numbers.uniform(0, 28, frame.shape)).clip(0, 255).astype(numpy.uint8)
            Image.fromarray(frame).save(self.path(f"{folder}/{k + 1}.png"))

    def write_videos(self):
        """Two classes of three folders of frames each."""
        for label, name in enumerate(("jump", "wave")):
            for k in range(3):
                self.write_frames(f"videos/{name}/{k}", 5 + 2 * k, seed=10 * label + k)


def main():
    program_runs.main(1)
