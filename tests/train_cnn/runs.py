"""Runs train_cnn for the tests, on small images of its own."""
import image_runs
import program_runs

PROGRAM = image_runs.PROGRAM
TRAIN, TEST = 130, 37  # neither is a multiple of any batch below

MODEL = {"conv1.weight": (32, 1, 3, 3), "conv1.bias": (32,), "conv2.weight": (64, 32, 3, 3), "conv2.bias": (64,),
         "fc1.weight": (128, 64 * 3 * 3), "fc1.bias": (128,), "fc2.weight": (10, 128), "fc2.bias": (10,)}


def write_images(folder, side=10):
    image_runs.write_idx(folder, TRAIN, TEST, side)


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
