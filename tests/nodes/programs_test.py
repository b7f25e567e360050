"""A short run of each program on unequal and on equal nodes."""
import os
import re
import struct
import sys
import unittest

from cluster import Cluster

TEST_DIST, TRAIN_GRU, TRAIN_CNN, TRAIN_GPT, TRAIN_LLAMA = (os.path.abspath(path) for path in sys.argv[1:6])
CLUSTERS = [dict(A=1, B=3), dict(A=2, B=2)]
# Whose runs are the same but for rounding. The first one has whole layers on each rank.
MESHES = [("dp_replicate=2", dict(A=1, B=1)), ("tp=2", dict(A=1, B=1)), ("pp=2", dict(A=1, B=1)),
          ("pp=2,tp=2", dict(A=1, B=3)), ("pp=2,tp=2", dict(A=2, B=2))]
GPT = ["--data={folder}/input.txt", "--n-layer=2", "--n-head=2", "--n-embd=16", "--block-size=8", "--global-batch-size=8",
       "--max-iters=4", "--warmup-iters=1", "--log-interval=1", "--no-plots", "--peak-flops=none",
       "--outputs={folder}/out"]
LLAMA = ["--n-layers=2", "--dim=16", "--n-heads=4", "--n-kv-heads=2", "--hidden=20", "--vocab-size=19", "--seq-length=8",
         "--global-batch-size=8", "--max-iters=4", "--strategy=ddp", "--no-plots", "--peak-flops=none",
         "--outputs={folder}/out"]
ROUNDING = 1e-5  # of losses near 3 in float32, which are printed with six digits


def write_images(folder, side=10):
    """IDX files of MNIST's form: two batches of training images, one of test images."""
    os.makedirs(folder)
    for name, count in (("train", 32), ("t10k", 16)):
        with open(os.path.join(folder, name + "-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">IIII", 0x803, count, side, side) + bytes(i * 7 % 251 for i in range(count * side * side)))
        with open(os.path.join(folder, name + "-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count)))


class ProgramsTest(unittest.TestCase):
    def output(self, ranks, program, *flags):
        with Cluster(**ranks) as cluster:
            write_images(cluster.path("images"))
            cluster.write("input.txt", "to be or not to be, that is the question. " * 50)
            run = cluster.run(program, *[flag.format(folder=cluster.folder) for flag in flags],
                              XDG_CACHE_HOME=cluster.path("cache"))
            self.assertEqual(run.code, 0, run.out + run.err)
            return run.out

    def runs(self, line, program, *flags):
        """On each cluster, and prints `line`."""
        for ranks in CLUSTERS:
            with self.subTest(ranks=ranks):
                self.assertRegex(self.output(ranks, program, *flags), line)

    def losses_agree(self, program, *flags):
        """Of four steps, on all meshes."""
        expected = None
        for mesh, ranks in MESHES:
            with self.subTest(mesh=mesh, ranks=ranks):
                out = self.output(ranks, program, "--mesh=" + mesh, "--gradient-accumulation-steps=2", *flags)
                losses = [float(loss) for loss in re.findall(r" (?:step|iter)=\d+ loss=(\S+)", out)]
                self.assertEqual(len(losses), 4, out)
                expected = expected or losses
                for loss, of_first in zip(losses, expected):
                    self.assertAlmostEqual(loss, of_first, delta=ROUNDING)

    def test_test_dist(self):
        self.runs("iter=3", TEST_DIST, "--train-iters=4", "--log-freq=1", "--no-plots", "--outputs={folder}/out")

    def test_train_gru(self):
        self.runs("Loss: ", TRAIN_GRU, "--percent-data=0.05", "--batch-size=60", "--hidden-size=8", "--epochs=1",
                  "--log-interval=1")

    def test_train_cnn(self):
        self.runs("epoch=1", TRAIN_CNN, "--data={folder}/images", "--batch-size=4", "--epochs=1", "--no-plots",
                  "--outputs={folder}/out")

    def test_train_gpt(self):
        self.runs("step=4", TRAIN_GPT, *GPT, "--gradient-accumulation-steps=1", "--eval-interval=4", "--eval-iters=1",
                  "--sample-tokens=2", "--strategy=fsdp")

    def test_train_gpt_split_and_staged(self):
        self.losses_agree(TRAIN_GPT, *GPT, "--eval-interval=0")

    def test_train_llama_split_and_staged(self):
        self.losses_agree(TRAIN_LLAMA, *LLAMA)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
