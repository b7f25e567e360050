"""Samples from checkpoints."""
import re

import runs


class GenerateTest(runs.TrainTest):
    def setUp(self):
        super().setUp()
        self.train("--nproc=2", "--strategy=fsdp", "--max-iters=30", "--warmup-iters=5", "--learning-rate=1e-2",
                   "--lr-decay-iters=30", "--eval-interval=0", "--checkpoint-dir=kept", "--checkpoint-interval=30")

    def sample(self, *flags):
        out = self.generate("--checkpoint=kept", "--prompt=to be", "--max-new-tokens=40", *flags).out
        head, rest = out.split("\n", 1)
        self.assertRegex(head, r"^model: \S+/kept/step-000000030, after step 30$")
        text, rate = rest.rsplit("\n", 2)[:2]
        self.assertRegex(rate, r"^\d+ tokens in \d+\.\d{6} s: \d+\.\d tokens/s$")
        return text

    def test_samples(self):
        first = self.sample()
        self.assertRegex(first, r"(?s)\Ato be.{40}\n-{15}\Z")
        self.assertLessEqual(set(first), set(runs.text_of_words() + "-\n"))
        self.assertEqual(first, self.sample())
        self.assertNotEqual(first, self.sample("--seed=2"))
        # The block has 16 tokens: longer texts move it along.
        self.assertEqual(len(self.sample("--max-new-tokens=100")), len("to be") + 100 + len("\n---------------"))
        two = self.sample("--num-samples=2")
        self.assertEqual(two.count("---------------"), 2)
        self.assertTrue(two.startswith(first))

    def test_the_likeliest(self):
        likeliest = self.sample("--temperature=0")
        self.assertEqual(likeliest, self.sample("--temperature=0", "--seed=9"))
        self.assertEqual(likeliest, self.sample("--top-k=1", "--seed=9"))
        self.assertEqual(likeliest, self.sample("--top-k=0", "--top-p=0", "--seed=9"))

    def test_any_strategy_wrote_it(self):
        self.train("--nproc=1", "--max-iters=0", "--resume=kept", outputs="a")
        for mesh in (["--nproc=1"], ["--nproc=4", "--strategy=fsdp", "--mesh=dp_replicate=2,dp_shard=2"],
                     ["--nproc=3", "--strategy=zero2"]):
            with self.subTest(mesh=mesh):
                folder = "again" + str(len(mesh[0]) + int(mesh[0][-1]))
                # One step with a learning rate of nothing: the same parameters, written by other ranks.
                self.train(*mesh, "--resume=kept", "--max-iters=31", "--no-decay-lr", "--learning-rate=1e-300",
                           "--min-lr=0", "--checkpoint-dir=" + folder, outputs=folder + "_out")
                out = self.generate("--checkpoint=" + folder, "--prompt=to be", "--max-new-tokens=40").out
                self.assertIn(self.sample(), out)

    def test_bad_input(self):
        table = [
            ("expected --checkpoint=DIR of train_gpt, or --model=DIR", 2, []),
            ("--temperature|temperature", 2, ["--checkpoint=kept", "--temperature=-1"]),
            ("--num-samples=0: must be at least 1", 2, ["--checkpoint=kept", "--num-samples=0"]),
            ("nonexistent", 1, ["--checkpoint=nonexistent"]),
            ("nonexistent", 1, ["--model=nonexistent"]),
            ("Q", 1, ["--checkpoint=kept", "--prompt=Quiet"]),
        ]
        for expected, code, flags in table:
            with self.subTest(flags=flags):
                run = self.generate(*flags, code=code)
                self.assertEqual(len(run.err.splitlines()), 1, run.err)
                self.assertTrue(re.match("generate: .*(" + expected + ")", run.err), run.err)


if __name__ == "__main__":
    runs.main()
