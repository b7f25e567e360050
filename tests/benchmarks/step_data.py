"""The blocks that gpt_step and llama_step train on, for the peers: step_data.h says how they are drawn."""
import torch

MASK = (1 << 64) - 1


def mixed(state):
    """The first number of base/seed.h's RandomStream(state): SplitMix64."""
    z = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class StepData:
    def __init__(self, vocab_size, block_size, batch_size, text=""):
        self.vocab_size, self.block_size, self.batch_size = vocab_size, block_size, batch_size
        self.tokens = None
        if text:
            with open(text, encoding="utf-8", newline="") as file:
                characters = file.read()
            ids = {c: k for k, c in enumerate(sorted(set(characters)))}
            self.tokens = [ids[c] for c in characters[:len(characters) * 9 // 10]]

    def block(self, number):
        length = self.block_size + 1
        if self.tokens is None:
            return [mixed(number * length + k) % self.vocab_size for k in range(length)]
        begin = mixed(number) % (len(self.tokens) - self.block_size)
        return self.tokens[begin:begin + length]

    def batch(self, step, rank, ranks):
        """Inputs and targets of a rank, which takes an equal part of the blocks."""
        part = self.batch_size // ranks
        first = step * self.batch_size + rank * part
        blocks = torch.tensor([self.block(number) for number in range(first, first + part)])
        return blocks[:, :-1].contiguous(), blocks[:, 1:].contiguous()
