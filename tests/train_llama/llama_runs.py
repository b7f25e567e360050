"""A small Llama for the tests of train_llama."""
import math

import runs

VOCABULARY, DIM, LAYERS, HEADS, KV_HEADS, HIDDEN, SEQUENCE = 50, 32, 2, 4, 2, 40, 8


def parameters(vocabulary):
    """Embedding, head, norms; per block wq, wo, wk, wv and three products."""
    kv = DIM // HEADS * KV_HEADS
    return 2 * vocabulary * DIM + DIM + LAYERS * (2 * DIM * DIM + 2 * DIM * kv + 3 * DIM * HIDDEN + 2 * DIM)


class LlamaTest(runs.TrainTest):
    # 7 sequences of 8 tokens, unequal parts on 2 ranks.
    small = [f"--n-layers={LAYERS}", f"--n-heads={HEADS}", f"--n-kv-heads={KV_HEADS}", f"--dim={DIM}", f"--hidden={HIDDEN}",
             f"--vocab-size={VOCABULARY}", f"--seq-length={SEQUENCE}", "--global-batch-size=7", "--max-iters=8", "--no-plots", "--peak-flops=none"]
    history_name = "train_dataset.h5"
    same = ("iter", "loss")
    TEXT = ["--data=input.txt", "--vocab-size=0", "--eval-interval=4", "--eval-iters=2", "--sample-tokens=12"]

    def train(self, *flags, **options):
        """On random tokens, unless flags say otherwise."""
        return super().train(*flags, data=None, **options)

    def near_the_loss_of_initial_values(self, loss, vocabulary, tokens):
        """Logits of variance 0.9733 (a normal cut at three deviations): log V + 0.9733 / 2, five deviations of a mean."""
        self.assertLess(abs(loss - math.log(vocabulary) - 0.9733 / 2), 5 * math.sqrt(0.9733 / tokens))
