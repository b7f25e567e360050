"""Runs train_gpt or train_llama, and generate, for the tests: on a small text, with output and history at hand."""
import json
import os
import random
import re

import program_runs

TRAIN, GENERATE, PRINT_HISTORY = program_runs.programs(3)

# Small enough for milliseconds a step: 7 blocks of 16 tokens in two micro-batches, unequal parts on 2 ranks.
SMALL = ["--n-layer=2", "--n-head=2", "--n-embd=32", "--block-size=16", "--global-batch-size=7",
         "--gradient-accumulation-steps=2", "--max-iters=8", "--warmup-iters=2", "--eval-interval=4", "--eval-iters=2",
         "--sample-tokens=12", "--log-interval=1", "--no-plots", "--no-trace", "--peak-flops=none"]


def text_of_words(count=3000, seed=5):
    """Words of a small grammar, the same every time."""
    numbers = random.Random(seed)
    words = "to be or not that is the question whether nobler in mind suffer slings arrows".split()
    return "".join(numbers.choice(words) + numbers.choice("  \n.,") for _ in range(count))


class Run(program_runs.Run):
    def steps(self):
        """The lines of the steps as dictionaries."""
        return [{key: float(value) for key, value in (part.split("=") for part in line.split())}
                for line in self.logged("(?:step|iter)=")]


class TrainTest(program_runs.ProgramTest):
    run_class = Run
    small = SMALL
    history_name = "history.h5"
    same = ("step", "loss", "gradient_norm", "lr", "train_loss", "val_loss")  # what must not depend on time

    def setUp(self):
        super().setUp()
        self.write("input.txt", text_of_words())

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def environment(self):
        return {**super().environment(), "XDG_CACHE_HOME": self.shared}

    def start(self, program, flags, **options):
        return super().start([program, *flags], **options)

    def train(self, *flags, code=0, outputs="out", small=None, data="input.txt"):
        """Later flags win."""
        small = self.small if small is None else small
        own = ["--data=" + self.path(data)] if data else []
        own += ["--outputs=" + self.path(outputs)] if outputs else []
        return self.finish(self.start(TRAIN, [*small, *own, *flags]), code)

    def generate(self, *flags, code=0):
        return self.finish(self.start(GENERATE, flags), code)

    def draws(self, outputs="out"):
        return program_runs.print_history(PRINT_HISTORY, self.path(os.path.join(outputs, self.history_name)))

    def history(self, outputs="out"):
        """The draws of steps: without that of the estimates before the first one."""
        draws = self.draws(outputs)
        count = len(draws["step"])
        estimated = count > 0 and float.fromhex(draws["step"][0]) == 0
        return {name: values[len(values) // count:] if estimated and not name.startswith("rank") else values for name, values in draws.items()}

    def axes_in(self, history):
        """Axes of the mesh that the history has columns for."""
        columns = (re.fullmatch("comm_bytes_(.*)(?<!_min|_max|_std)", name) for name in history)
        return sorted(column[1] for column in columns if column)

    def numbers(self, outputs="out"):
        history = self.history(outputs)
        return {name: history[name] for name in self.same}

    def expect_same(self, name, other, skip=0, without=()):
        """The numbers of one run, but for its first `skip` steps and metrics `without`, are those of another up to rounding in float64."""
        expected, actual = self.numbers(name), self.numbers(other)
        for metric, values in expected.items():
            if metric in without:
                continue
            self.assertEqual(len(values[skip:]), len(actual[metric]))
            for x, y in zip(values[skip:], actual[metric]):
                self.assertEqual(x == "nan", y == "nan")
                if x != "nan":
                    x, y = float.fromhex(x), float.fromhex(y)
                    self.assertLessEqual(abs(x - y), 1e-12 * abs(x), metric)

    def write_vocabulary(self, folder):
        """GPT-2's two files for bytes and one pair of them: 257 tokens."""
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [byte for byte in range(256) if byte not in printable]
        characters = {byte: chr(byte) for byte in printable} | {byte: chr(256 + k) for k, byte in enumerate(others)}
        os.makedirs(self.path(folder), exist_ok=True)
        self.write(folder + "/vocab.json", json.dumps({characters[byte]: byte for byte in range(256)} | {"th": 256}))
        self.write(folder + "/merges.txt", "#version: 0.2\nt h\n")


def main():
    program_runs.main(3)
