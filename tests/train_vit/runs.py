"""Runs train_vit for the tests: on some ranks, with a small model, with its output, history and model at hand."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy

PROGRAM = os.path.abspath(sys.argv[1])
TRAIN, TEST = 70, 21  # neither is a multiple of any batch below
# A class token, so that the model can be saved in Hugging Face's layout.
MODEL = ["--preset=cpu", "--patch-size=8", "--dim=16", "--depth=2", "--heads=2", "--head-dim=8", "--mlp-dim=24",
         "--pool=class", "--learning-rate=2e-3"]


def write_cifar(folder, train=TRAIN, test=TEST):
    """CIFAR-10's records: class k is bright in a square of its own, in noise."""
    os.makedirs(folder)
    random = numpy.random.default_rng(5)
    for name, samples in (("data_batch_1", train), ("test_batch", test)):
        labels = random.integers(0, 10, samples).astype(numpy.uint8)
        images = random.integers(0, 60, (samples, 3, 32, 32)).astype(numpy.uint8)
        for image, label in zip(images, labels):
            row, column = divmod(int(label), 4)
            image[int(label) % 3, row * 8:row * 8 + 8, column * 8:column * 8 + 8] += 190
        with open(os.path.join(folder, name + ".bin"), "wb") as file:
            for image, label in zip(images, labels):
                file.write(bytes([label]) + image.tobytes())


def read_cifar(folder, name):
    """(samples, 3, 32, 32) and labels."""
    with open(os.path.join(folder, name + ".bin"), "rb") as file:
        records = numpy.frombuffer(file.read(), numpy.uint8).reshape(-1, 3073)
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0]


def read_model(folder):
    """The tensors of a safetensors file, by name."""
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        data = file.read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    types = {"F32": numpy.float32, "F64": numpy.float64, "BF16": numpy.uint16}
    return {name: numpy.frombuffer(data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]],
                                   types[entry["dtype"]]).reshape(entry["shape"]) for name, entry in header.items()}


class Run:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def lines(self, first):
        """Lines of numbers that begin with `first`, as dictionaries of texts."""
        lines = re.findall(r"\]\[INFO\]\[\w+:\d+\] - (iter=\d+ %s=.*)" % first, self.out)
        return [dict(part.split("=") for part in line.split()) for line in lines]

    def losses(self):
        return [(line["iter"], line["loss"]) for line in self.lines("loss")]

    def tests(self):
        return self.lines("test_loss")

    def errors(self):
        """Lines of standard error without mpirun's own words about a failed job."""
        own = re.split(r"-{20,}", self.err)[::2]
        return [line for line in "".join(own).splitlines() if line.strip()]


class VitTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix="train_vit")
        cls.images = os.path.join(cls.shared, "images")
        write_cifar(cls.images)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.shared)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="train_vit")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def environment(self):
        """Little of this one, so that its settings and GPUs do not matter."""
        keep = {name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH") if name in os.environ}
        return {**keep, "OMP_NUM_THREADS": "1", "TMPDIR": "/tmp", "LC_ALL": "C.UTF-8", "CUDA_VISIBLE_DEVICES": ""}

    def start(self, flags):
        return subprocess.Popen([PROGRAM] + flags, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                stdin=subprocess.DEVNULL, env=self.environment(), cwd=self.folder)

    def flags(self, *flags, ranks=2, outputs="out"):
        """`flags` win over the defaults here, which are those of a small run."""
        return [*MODEL, f"--nproc={ranks}", "--batch-size=8", "--test-batch-size=10", "--epochs=1", "--no-plots",
                "--data=" + self.images, "--outputs=" + self.path(outputs), *flags]

    def train(self, *flags, code=0, **kwargs):
        process = self.start(self.flags(*flags, **kwargs))
        out, err = process.communicate(timeout=240)
        run = Run(process.returncode, out.replace("\r\n", "\n"), err.replace("\r\n", "\n"))
        if code is not None:
            self.assertEqual(run.code, code, run.out + run.err)
        return run

    def model(self, *flags, name="model", **kwargs):
        """Trains, and returns the run with its parameters."""
        os.mkdir(self.path(name))
        run = self.train("--save-model=" + self.path(name), *flags, outputs=name + "_out", **kwargs)
        return run, read_model(self.path(name))

    def history(self, outputs="out"):
        with h5py.File(self.path(outputs + "/train_dataset.h5")) as file:
            return {name: values[:] for name, values in file.items()}

    def assert_same_bits(self, a, b):
        self.assertEqual(set(a), set(b))
        for name in a:
            self.assertEqual(a[name].tobytes(), b[name].tobytes(), name)

    def difference(self, a, b):
        """Norm of the difference of all parameters over their norm."""
        self.assertEqual(set(a), set(b))
        squares = sum(float(numpy.sum((a[name].astype(float) - b[name]) ** 2)) for name in a)
        return (squares / sum(float(numpy.sum(a[name].astype(float) ** 2)) for name in a)) ** 0.5


def main():
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:], verbosity=2)
