"""Blocks solved layer-parallel on unequal nodes: the bits of the same mesh on one node, and the bytes that leave each node, counted by the
kernel, against the messages of the cycles.

Rank 0 is on node A, the others on B. On two levels, every rank sends its last state to the next one twice in the iteration that begins on the coarse
level (the coarse sweep, the corrected C-point) and three times in every other one (the restricted C-point too). The adjoint's go the other way. Behind the
solves, the last rank of lp sends the end of the network to each other one, and the first one the gradient of the beginning. Narrow blocks, which have
much to send and little to compute: the watchdog's reports, 10 kB a second and rank, are within the tolerance.
"""
import hashlib
import os
import subprocess
import sys
import unittest

from cluster import Cluster

TRAIN_GPT, PRINT_HISTORY = (os.path.abspath(path) for path in sys.argv[1:3])
TEXT = "to be or not to be, that is the question. " * 200
WIDTH, BLOCK, SAMPLES, BYTES = 8, 32, 1600, 8  # of a number in float64
FORWARD, BACKWARD = 2, 3  # iterations
FEW, MANY = 1, 3  # steps
LONG, TINY = 40, ["--block-size=16", "--global-batch-size=2"]  # many sums that may be rounded in another way
FLAGS = ["--dtype=float64", "--n-head=2", f"--n-embd={WIDTH}", f"--block-size={BLOCK}",
         f"--global-batch-size={SAMPLES}", "--gradient-accumulation-steps=1", "--grad-clip=0.1", "--warmup-iters=1",
         "--log-interval=1", "--eval-interval=0", "--sample-tokens=0", "--no-plots", "--no-trace",
         "--lp-levels=2", "--lp-cfactor=2", f"--lp-fwd-iters={FORWARD}", f"--lp-iters={BACKWARD}"]


def messages(iterations):
    """To the next rank, in a solve."""
    return 2 + 3 * (iterations - 1)


class LayerParallelTest(unittest.TestCase):
    def train(self, cluster, steps, *flags):
        """Losses and norms of the gradients in every bit, and a digest of the parameters."""
        folder = cluster.new_folder()
        run = cluster.run(TRAIN_GPT, *FLAGS, *flags, f"--max-iters={steps}", "--data=" + cluster.write("input.txt", TEXT),
                          "--outputs=" + folder, "--save-model=" + folder, XDG_CACHE_HOME=cluster.path("cache"))
        self.assertEqual(run.code, 0, run.out + run.err)
        history = subprocess.run([PRINT_HISTORY, os.path.join(folder, "history.h5")], check=True, stdout=subprocess.PIPE, text=True).stdout
        numbers = [line for line in history.splitlines() if line.split()[0] in ("loss", "gradient_norm")]
        self.assertEqual([len(line.split()) for line in numbers], [1 + steps] * 2)
        with open(os.path.join(folder, "model.safetensors"), "rb") as file:
            return numbers, hashlib.sha256(file.read()).hexdigest()

    def check(self, a, b, *flags):
        """`a`, `b`: bytes that the node sends in a step."""
        with Cluster(A=1, B=3) as cluster:
            apart = self.train(cluster, LONG, *flags, *TINY)
            cluster.expect_sent(self, {"A": a, "B": b}, FEW, MANY, lambda steps: self.train(cluster, steps, *flags))
        with Cluster(A=4) as cluster:
            self.assertEqual(apart, self.train(cluster, LONG, *flags, *TINY))

    def test_four_ranks_of_lp(self):
        state = SAMPLES * BLOCK * WIDTH * BYTES
        self.check((messages(FORWARD) + 3) * state, (messages(BACKWARD) + 1) * state, "--mesh=lp=4", "--n-layer=8")

    def test_two_ranks_of_lp_with_shards(self):
        """Ranks 0 and 2 have the first two blocks: they reduce their gradients and gather their parameters."""
        state = SAMPLES // 2 * BLOCK * WIDTH * BYTES
        parameters = 2 * (12 * WIDTH + 2) * WIDTH + (len(set(TEXT)) + BLOCK + 1) * WIDTH
        self.check((messages(FORWARD) + 1) * state + parameters * BYTES, (messages(BACKWARD) + 1) * state + parameters * BYTES,
                   "--mesh=dp_shard=2,lp=2", "--strategy=zero2", "--n-layer=4")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
