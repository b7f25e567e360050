"""The histories of all programs have common names, units and types of metrics, and attributes of the run."""
import json
import os
import re
import shutil
import subprocess

import h5py
import numpy

import program_runs

NAMES = ["train_cnn", "train_gpt", "train_gru", "train_llama", "train_odenet", "train_video", "train_vit", "test_dist"]
*PATHS, REPORT = program_runs.programs(len(NAMES) + 1)
GITIGNORE = os.path.abspath(".gitignore")

# The shortest runs with a draw.
FLAGS = {
    "train_cnn": ["--max-samples=16", "--batch-size=8", "--test-batch-size=8", "--epochs=1"],
    "train_gpt": ["--data=input.txt", "--n-layer=1", "--n-head=2", "--n-embd=16", "--block-size=8", "--batch-size=2", "--max-iters=2",
                  "--eval-iters=1", "--sample-tokens=0"],
    "train_gru": ["--percent-data=0.02", "--batch-size=20", "--hidden-size=4", "--epochs=1"],
    "train_llama": ["--n-layers=1", "--n-heads=2", "--n-kv-heads=2", "--dim=16", "--hidden=20", "--vocab-size=30", "--seq-length=8",
                    "--batch-size=2", "--max-iters=2"],
    "train_odenet": ["--layers=4", "--samples=100", "--validation-samples=20", "--batch-size=50", "--epochs=1"],
    "train_video": ["--sequence-length=4", "--frame-size=32", "--hidden-size=4", "--synthetic-videos=4", "--synthetic-classes=2",
                    "--batch-size=2", "--epochs=1"],
    "train_vit": ["--preset=cpu", "--patch-size=8", "--dim=8", "--depth=1", "--heads=1", "--head-dim=8", "--mlp-dim=8", "--max-samples=8",
                  "--batch-size=4", "--max-iters=2"],
    "test_dist": ["--train-iters=2", "--batch-size=4"]}
ATTRIBUTES = ("host", "started", "command", "machine", "revision", "ranks", "seed", "settings", "folder")


class HistoriesTest(program_runs.ProgramTest):
    def environment(self):
        return {**super().environment(), "XDG_CACHE_HOME": self.shared}

    def setUp(self):
        super().setUp()
        with open(self.path("input.txt"), "w", encoding="utf-8") as file:
            file.write("to be or not to be, that is the question\n" * 50)

    def test_one_name_for_one_metric(self):
        known = {}
        for name, program in zip(NAMES, PATHS):
            history = self.path(name + ".h5")
            self.finish(self.start([program, *FLAGS[name], "--nproc=1", "--no-plots", "--history=" + history,
                                    "--outputs=" + self.path(name)]))
            with self.subTest(name), h5py.File(history) as file:
                if name != "test_dist":
                    self.check_settings(program, name)
                attributes = {key: value.decode() for key, value in file.attrs.items() if isinstance(value, bytes)}
                self.assertEqual(attributes["program"], name)
                for attribute in ATTRIBUTES:
                    self.assertTrue(attributes[attribute], attribute)
                self.assertIn("--history=" + history, attributes["command"])
                metrics = {metric: values for metric, values in file.items() if "units" in values.attrs}
                self.assertEqual(metrics["dt"].attrs["units"], b"s")
                self.assertTrue({"loss", "train_loss"} & set(metrics), list(metrics))
                for metric in {"step", "iter", "epoch", "batch", "level", "layers"} & set(metrics):
                    self.assertEqual(metrics[metric].dtype.kind, "i", metric)
                for metric, values in metrics.items():
                    like = (values.attrs["units"], values.dtype.kind)
                    self.assertEqual(known.setdefault(metric, like), like, metric)
        per_step = [self.path(name + ".h5") for name in NAMES if name not in ("train_cnn", "train_odenet")]  # these draw epochs
        run = self.finish(self.start([REPORT, *per_step, "--metrics=loss,dt", "--plots=none"]))
        self.assertEqual(run.err, "")
        # Curves of text can be drawn over tokens.
        page = self.path("page.html")
        for name in ("train_gpt", "train_llama"):
            self.finish(self.start([REPORT, self.path(name + ".h5"), "--html=" + page, "--plots=none"]))
            with open(page, encoding="utf-8") as file, h5py.File(self.path(name + ".h5")) as history:
                axes = json.loads(re.search(r'"x":(\{"step".*?\})', file.read())[1])
                self.assertEqual(axes["tokens"], numpy.cumsum(history["tokens"]).tolist())
        run = self.finish(self.start([REPORT, self.path("train_gpt.h5"), self.path("train_odenet.h5"), "--metrics=train_loss,val_loss,dt",
                                      "--plots=none"]))
        self.assertEqual(run.err, "")

    def check_settings(self, program, name):
        """The flags that were given are in a file beside the run, which the program takes."""
        with open(self.path(name + "/settings.flags"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual([flag for flag in FLAGS[name] if flag not in lines], [])
        # Follows from the number of ranks, which may be another one.
        self.assertEqual([line for line in lines if line.startswith("--gru=")], [])
        run = self.finish(self.start([program, f"--flagfile={name}/settings.flags", "--help"]))
        self.assertEqual((run.out.split(":", 1)[0], run.err), (name, ""))

    def test_outputs_are_ignored_by_git(self):
        shutil.copy(GITIGNORE, self.path(".gitignore"))
        own = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "XDG_CONFIG_HOME": self.folder}
        subprocess.run(["git", "init", "--quiet", "--template=", self.folder], check=True, env=own)
        self.finish(self.start([PATHS[NAMES.index("test_dist")], *FLAGS["test_dist"], "--nproc=1"]))
        self.assertTrue(os.path.isdir(self.path("outputs/test_dist")))
        status = subprocess.run(["git", "status", "--porcelain"], cwd=self.folder, check=True, stdout=subprocess.PIPE, text=True,
                                env=own).stdout
        self.assertEqual(sorted(status.splitlines()), ["?? .gitignore", "?? input.txt"])


if __name__ == "__main__":
    program_runs.main(len(NAMES) + 1)
