"""Runs test_dist for the tests: in a folder of its own, with its output at hand."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
ESCAPE = "\x1b"


class Run:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.lines = out.splitlines()

    def steps(self):
        """The lines of the steps as dictionaries."""
        lines = re.findall(r"\]\[INFO\]\[\w+:\d+\] - (iter=.*)", self.out)
        return [{key: float(value) for key, value in (part.split("=") for part in line.split(", "))} for line in lines]

    def errors(self):
        """Lines of standard error without mpirun's own words about a failed job."""
        own = re.split(r"-{20,}", self.err)[::2]
        return [line for line in "".join(own).splitlines() if line.strip()]


class DistTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="test_dist")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def environment(self, variables):
        """Little of this one, so that its settings do not matter."""
        keep = {name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH") if name in os.environ}
        return {**keep, "OMP_NUM_THREADS": "1", "TMPDIR": "/tmp", "LC_ALL": "C.UTF-8", **variables}

    def run_program(self, *flags, code=0, variables=None, outputs="out"):
        flags = list(flags) + (["--outputs=" + self.path(outputs)] if outputs else [])
        process = subprocess.run([PROGRAM] + flags, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 stdin=subprocess.DEVNULL, text=True, env=self.environment(variables or {}),
                                 cwd=self.folder, timeout=120)
        run = Run(process.returncode, process.stdout.replace("\r\n", "\n"), process.stderr.replace("\r\n", "\n"))
        if code is not None:
            self.assertEqual(run.code, code, run.out + run.err)
        return run


def main():
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:], verbosity=2)
