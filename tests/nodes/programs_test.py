"""A short run of each program on unequal and on equal nodes."""
import os
import struct
import sys
import unittest

from cluster import Cluster

TEST_DIST, TRAIN_GRU, TRAIN_CNN, TRAIN_GPT = (os.path.abspath(path) for path in sys.argv[1:5])
CLUSTERS = [dict(A=1, B=3), dict(A=2, B=2)]


def write_images(folder, side=10):
    """IDX files of MNIST's form: two batches of training images, one of test images."""
    os.makedirs(folder)
    for name, count in (("train", 32), ("t10k", 16)):
        with open(os.path.join(folder, name + "-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">IIII", 0x803, count, side, side) + bytes(i * 7 % 251 for i in range(count * side * side)))
        with open(os.path.join(folder, name + "-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count)))


class ProgramsTest(unittest.TestCase):
    def runs(self, line, program, *flags):
        """On each cluster, and prints `line`."""
        for ranks in CLUSTERS:
            with self.subTest(ranks=ranks), Cluster(**ranks) as cluster:
                write_images(cluster.path("images"))
                cluster.write("input.txt", "to be or not to be, that is the question. " * 50)
                run = cluster.run(program, *[flag.format(folder=cluster.folder) for flag in flags],
                                  XDG_CACHE_HOME=cluster.path("cache"))
                self.assertEqual(run.code, 0, run.out + run.err)
                self.assertRegex(run.out, line)

    def test_test_dist(self):
        self.runs("iter=3", TEST_DIST, "--train-iters=4", "--log-freq=1", "--no-plots", "--outputs={folder}/out")

    def test_train_gru(self):
        self.runs("Loss: ", TRAIN_GRU, "--percent-data=0.05", "--batch-size=60", "--hidden-size=8", "--epochs=1",
                  "--log-interval=1")

    def test_train_cnn(self):
        self.runs("epoch=1", TRAIN_CNN, "--data={folder}/images", "--batch-size=4", "--epochs=1", "--no-plots",
                  "--outputs={folder}/out")

    def test_train_gpt(self):
        self.runs("step=4", TRAIN_GPT, "--data={folder}/input.txt", "--n-layer=2", "--n-head=2", "--n-embd=16",
                  "--block-size=8", "--global-batch-size=8", "--gradient-accumulation-steps=1", "--max-iters=4",
                  "--warmup-iters=1", "--eval-interval=4", "--eval-iters=1", "--sample-tokens=2", "--log-interval=1",
                  "--strategy=fsdp", "--no-plots", "--outputs={folder}/out")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
