"""Runs train_gru for the tests: on some ranks, on small data of its own, with its output and history at hand."""
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, PRINT_HISTORY = (os.path.abspath(path) for path in sys.argv[1:3])

# Small enough for seconds: 120 synthetic windows for training, 30 for testing, 6 batches an epoch.
SMALL = ["--percent-data=0.05", "--batch-size=20", "--hidden-size=12", "--log-interval=1"]


class Run:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.lines = out.splitlines()

    def losses(self):
        return re.findall(r"Loss: (\S+)", self.out)

    def errors(self):
        """Lines of standard error without mpirun's own words about a failed job."""
        own = re.split(r"-{20,}", self.err)[::2]
        return [line for line in "".join(own).splitlines() if line.strip()]


class TrainTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cache = tempfile.mkdtemp(prefix="cache")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.cache)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="train")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def environment(self):
        # An empty cache: the synthetic stand-in, whatever this machine has.
        environment = dict(os.environ, XDG_CACHE_HOME=self.cache, OMP_NUM_THREADS="1", TMPDIR="/tmp")
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", CUDA_VISIBLE_DEVICES="")
        return environment

    def command(self, ranks, flags):
        launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks else []
        return launcher + [PROGRAM] + flags

    def start(self, ranks, flags, largest_file=None):
        """`largest_file`: in bytes; a write beyond it fails, as on a full disk."""
        def limit():
            if largest_file is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
        # Python ignores the signal that comes with such a write; so does the program then.
        return subprocess.Popen(self.command(ranks, flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL, text=True, env=self.environment(), cwd=self.folder,
                                preexec_fn=limit, restore_signals=False)

    def train(self, ranks, *flags, code=0):
        process = self.start(ranks, list(flags))
        out, err = process.communicate(timeout=120)
        run = Run(process.returncode, out.replace("\r\n", "\n"), err.replace("\r\n", "\n"))
        self.assertEqual(run.code, code, run.out + run.err)
        return run

    def history(self, path):
        """Numbers by name, as text that shows every bit."""
        text = subprocess.run([PRINT_HISTORY, path], check=True, stdout=subprocess.PIPE, text=True).stdout
        return {line.split()[0]: line.split()[1:] for line in text.splitlines()}

    def numbers(self, path):
        """What must not depend on ranks or interruptions."""
        history = self.history(path)
        names = ["epoch", "batch", "loss", "gradient_norm", "forward_residual", "parallel_accuracy", "serial_accuracy"]
        return {name: history[name] for name in names}


def main():
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
