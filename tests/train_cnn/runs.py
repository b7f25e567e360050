"""Runs train_cnn for the tests, on small images of its own."""
import os
import struct

import numpy

import image_runs
import program_runs

PROGRAM = image_runs.PROGRAM
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


class Run(image_runs.Run):
    def epochs(self):
        return self.numbers("epoch=")


class CnnTest(image_runs.ImageTest):
    run_class = Run
    small = ["--epochs=2"]

    @classmethod
    def write_images(cls, folder):
        write_images(folder)


def main():
    program_runs.main(1)
