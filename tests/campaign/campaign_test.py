"""Twenty faults of the campaign; and that its comparison detects single changed values."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py

import attempts
import ends
import trainers

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.dirname(os.path.abspath(sys.argv.pop(1)))
FAULTS, SEED = 20, 950  # with this seed, each case at least twice, and nothing that waits for a minute
CASES = "gpt,gpt-fsdp,gpt-pp,gru,cnn,vit,odenet"


class CampaignTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="faults")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_faults(self):
        run = subprocess.run([os.path.join(HERE, "run"), f"--faults={FAULTS}", f"--seed={SEED}", "--jobs=2", "--programs=" + PROGRAMS,
                              "--cases=" + CASES, "--results=" + self.path("results"), "--work=" + self.folder],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout)
        with open(self.path("results"), encoding="utf-8") as file:
            results = [json.loads(line) for line in file]
        self.assertEqual({result["fault"] for result in results}, set(range(FAULTS)))
        self.assertEqual({result["case"] for result in results}, set(CASES.split(",")))
        self.assertEqual({result["outcome"] for result in results}, {"ok"})

    def test_comparison_finds_each_change(self):
        trainers.write_data(self.folder)
        attempt = attempts.Attempt(trainers.command("gpt", PROGRAMS, self.folder, self.folder, 100), self.folder, self.folder)
        self.assertEqual(attempt.end(), 0, attempt.text())
        end = ends.end_of(self.folder)
        self.assertEqual(ends.differences(end, self.folder), [])
        step = self.path(f"kept/step-{ends.latest_step(self.path('kept')):09d}")
        for file, group in ((f"{step}/rank-00000.h5", "model/"), (f"{step}/rank-00000.h5", "optimizer/exp_avg_sq/"),
                            (self.path("history.h5"), "loss")):
            with h5py.File(file, "r+") as changed:
                names = []
                changed.visit(names.append)
                array = next(changed[name] for name in names if name.startswith(group) and isinstance(changed[name], h5py.Dataset))
                name, before = array.name[1:], array[-1]
                array[-1] = before * (1 + 2**-22)
            self.assertEqual([found.split("/", 1)[1] for found in ends.differences(end, self.folder)], [name])
            with h5py.File(file, "r+") as changed:
                changed[name][-1] = before
        os.remove(self.path("kept/latest"))
        self.assertNotEqual(ends.differences(end, self.folder), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
