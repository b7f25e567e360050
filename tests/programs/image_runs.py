"""Runs an image trainer for its tests, and reads its parameters and history."""
import json
import os
import struct
import sys

import program_runs

try:
    import h5py
    import numpy
except ImportError:
    sys.exit("no Python with numpy and h5py: run ./bazelw setup, which names it in .bazelrc.local")

PROGRAM, = program_runs.programs(1)


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


def write_idx(folder, train, test, side=10):
    """Writes `train` and `test` images of side x side pixels as MNIST's IDX files: noise, with a bright spot whose place is the class."""
    os.makedirs(folder)
    random = numpy.random.default_rng(5)
    for name, samples in (("train", train), ("t10k", test)):
        labels = random.integers(0, 10, samples).astype(numpy.uint8)
        images = random.integers(0, 60, (samples, side, side)).astype(numpy.uint8)
        for image, label in zip(images, labels):
            row, column = divmod(int(label), 4)
            image[row * 2 + 1:row * 2 + 4, column * 2:column * 2 + 3] = 250
        with open(os.path.join(folder, name + "-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">IIII", 0x803, samples, side, side) + images.tobytes())
        with open(os.path.join(folder, name + "-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">II", 0x801, samples) + labels.tobytes())


def read_idx_tests(folder):
    """Normalized test images, (samples, rows, columns), and their labels."""
    def read(name, head):
        with open(os.path.join(folder, name), "rb") as file:
            return numpy.frombuffer(file.read()[head:], numpy.uint8)
    labels, train = read("t10k-labels-idx1-ubyte", 8), read("train-images-idx3-ubyte", 16) / 255
    images = read("t10k-images-idx3-ubyte", 16) / 255
    side = round((len(images) / len(labels)) ** 0.5)
    return (images.reshape(-1, side, side) - round(train.mean(), 4)) / round(train.std(), 4), labels


class Run(program_runs.Run):
    def numbers(self, first):
        """Lines of key=value pairs that begin with the pattern `first`, as dictionaries of strings."""
        return [dict(part.split("=") for part in line.split()) for line in self.logged(first)]


class ImageTest(program_runs.ProgramTest):
    run_class = Run
    history_name = "history.h5"
    small = []  # flags of a small run

    @classmethod
    def write_images(cls, folder):
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.images = os.path.join(cls.shared, "images")
        cls.write_images(cls.images)

    def flags(self, *flags, ranks=2, outputs="out", images=True, small=None):
        """`flags` override the defaults here."""
        data = ["--data=" + self.images] if images else []
        return [*(self.small if small is None else small), f"--nproc={ranks}", "--batch-size=8", "--test-batch-size=10", "--no-plots",
                "--outputs=" + self.path(outputs), *data, *flags]

    def start(self, flags):
        return super().start([PROGRAM, *flags])

    def train(self, *flags, code=0, **kwargs):
        return self.finish(self.start(self.flags(*flags, **kwargs)), code)

    def model(self, *flags, name="model", **kwargs):
        """Trains, and returns the run with its parameters."""
        os.mkdir(self.path(name))
        run = self.train("--save-model=" + self.path(name), *flags, outputs=name + "_out", **kwargs)
        return run, read_model(self.path(name))

    def history(self, outputs="out"):
        with h5py.File(self.path(os.path.join(outputs, self.history_name))) as file:
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
