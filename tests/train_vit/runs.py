"""Runs train_vit for the tests, with a small model."""
import os

import numpy

import image_runs
import program_runs

PROGRAM = image_runs.PROGRAM
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


class Run(image_runs.Run):
    def steps(self):
        return self.numbers(r"iter=\d+ loss=")

    def tests(self):
        return self.numbers(r"iter=\d+ test_loss=")

    def losses(self):
        return [(step["iter"], step["loss"]) for step in self.steps()]


class VitTest(image_runs.ImageTest):
    run_class = Run
    history_name = "train_dataset.h5"
    small = [*MODEL, "--epochs=1"]

    @classmethod
    def write_images(cls, folder):
        write_cifar(folder)


def main():
    program_runs.main(1)
