"""Bytes that leave a node in a training step with an axis of two ranks between two nodes, counted by the kernel, against
formulas of the layers' shapes. tests/parity:axis_bytes_test holds what the programs count to the same formulas, exactly.
"""
import os
import sys
import unittest

from cluster import Cluster

TRAIN_LLAMA = os.path.abspath(sys.argv[1])
LAYERS, WIDTH, HEADS, KEY_HEADS, HIDDEN, VOCABULARY = 2, 256, 8, 4, 400, 64
SEQUENCE, SAMPLES, MICRO_BATCHES = 128, 4, 4
ROWS = SAMPLES * SEQUENCE
STREAM = ROWS * WIDTH * 4  # bytes of the residual stream


class AxisTrafficTest(unittest.TestCase):
    def check(self, expected, *flags):
        """In a step. What it sends in messages of some bytes is in the tolerance."""
        with Cluster(A=1, B=1) as cluster:
            def run(steps):
                done = cluster.run(
                    TRAIN_LLAMA, f"--n-layers={LAYERS}", f"--dim={WIDTH}", f"--n-heads={HEADS}",
                    f"--n-kv-heads={KEY_HEADS}", f"--hidden={HIDDEN}", f"--vocab-size={VOCABULARY}", f"--seq-length={SEQUENCE}", f"--batch-size={SAMPLES}", "--strategy=ddp",
                    f"--gradient-accumulation-steps={MICRO_BATCHES}", f"--max-iters={steps}", "--no-plots",
                    "--outputs=" + cluster.new_folder(), *flags, XDG_CACHE_HOME=cluster.path("cache"))
                self.assertEqual(done.code, 0, done.out + done.err)
            cluster.expect_sent(self, expected, few=1, many=6, run=run)

    # Of two ranks each sends the payload of an all-reduce once: 4 of each layer, one of the embedding and one of the head,
    # and three numbers per row of the loss.
    TENSOR = MICRO_BATCHES * ((4 * LAYERS + 2) * STREAM + 3 * ROWS * 4)

    def test_tensor_parallel(self):
        self.check(self.TENSOR, "--mesh=tp=2")

    def test_sequence_parallel(self):
        self.check(self.TENSOR, "--mesh=tp=2", "--sequence-parallel")

    def test_pipeline(self):
        """The first stage sends hidden states, the second one their gradients."""
        self.check(MICRO_BATCHES * STREAM, "--mesh=pp=2")

    def test_pipeline_with_two_stages_per_rank(self):
        """The stages go from one node to the other and back, forward and backward."""
        self.check(MICRO_BATCHES * 2 * STREAM, "--mesh=pp=2", "--pipeline-schedule=zbv", "--n-layers=4")

    def test_context_parallel(self):
        """Half of the tokens of each sequence are on each node. Gradients are all-reduced between them, once in a step."""
        key_width = KEY_HEADS * WIDTH // HEADS
        parameters = (2 * VOCABULARY + 1) * WIDTH + LAYERS * (2 * WIDTH + 2 * key_width + 3 * HIDDEN + 2) * WIDTH
        # Keys and values go round forward and backward, their gradients back.
        ring = 3 * ROWS // 2 * 2 * key_width * 4
        # Half of queries, keys, values and the output, both ways.
        ulysses = 2 * ROWS // 2 * (2 * WIDTH + 2 * key_width) * 4 // 2
        for kind, sent in (("ring", ring), ("ulysses", ulysses)):
            self.check(4 * parameters + MICRO_BATCHES * LAYERS * sent, "--mesh=cp=2", "--context-attention=" + kind)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
