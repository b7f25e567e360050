"""Runs train_cnn for the tests: on some ranks, on small images of its own, with its output, history and model at hand."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy

PROGRAM = os.path.abspath(sys.argv[1])
TRAIN, TEST = 130, 37  # neither is a multiple of any batch below

MODEL = {"conv1.weight": (32, 1, 3, 3), "conv1.bias": (32,), "conv2.weight": (64, 32, 3, 3), "conv2.bias": (64,),
         "fc1.weight": (128, 64 * 3 * 3), "fc1.bias": (128,), "fc2.weight": (10, 128), "fc2.bias": (10,)}


def write_images(folder, side=10):
    """IDX files: class k has a bright spot at a place of its own, in noise."""
    os.makedirs(folder)
    random = numpy.random.default_rng(5)
    for name, samples in (("train", TRAIN), ("t10k", TEST)):
        labels = random.integers(0, 10, samples).astype(numpy.uint8)
        images = random.integers(0, 60, (samples, side, side)).astype(numpy.uint8)
        for image, label in zip(images, labels):
            row, column = divmod(int(label), 4)
            image[row * 2 + 1:row * 2 + 4, column * 2:column * 2 + 3] = 250
        with open(os.path.join(folder, name + "-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">IIII", 0x803, samples, side, side) + images.tobytes())
        with open(os.path.join(folder, name + "-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">II", 0x801, samples) + labels.tobytes())


def read_model(folder):
    """The tensors of a safetensors file, by name."""
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        data = file.read()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    types = {"F32": numpy.float32, "F64": numpy.float64, "BF16": numpy.uint16}
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = numpy.frombuffer(data[begin:end], types[entry["dtype"]]).reshape(entry["shape"])
    return tensors


class Run:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def epochs(self):
        """The lines of the epochs as dictionaries of texts."""
        lines = re.findall(r"\]\[INFO\]\[\w+:\d+\] - (epoch=.*)", self.out)
        return [dict(part.split("=") for part in line.split()) for line in lines]

    def errors(self):
        """Lines of standard error without mpirun's own words about a failed job."""
        own = re.split(r"-{20,}", self.err)[::2]
        return [line for line in "".join(own).splitlines() if line.strip()]


class CnnTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix="train_cnn")
        cls.images = os.path.join(cls.shared, "images")
        write_images(cls.images)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.shared)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="train_cnn")
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

    def train(self, *flags, ranks=2, code=0, outputs="out", images=True):
        """`flags` win over the defaults here, which are those of a small run."""
        flags = [f"--nproc={ranks}", "--batch-size=8", "--test-batch-size=10", "--epochs=2", "--no-plots",
                 "--outputs=" + self.path(outputs)] + (["--data=" + self.images] if images else []) + list(flags)
        process = self.start(flags)
        out, err = process.communicate(timeout=120)
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
        with h5py.File(self.path(outputs + "/history.h5")) as file:
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
