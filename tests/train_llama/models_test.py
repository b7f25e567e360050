"""Models in and out: Hugging Face's layout, samples, and input that cannot work."""
import json
import os

import llama_runs
import runs


class ModelsTest(llama_runs.LlamaTest):
    NOTHING = ["--lr=1e-300", "--max-iters=1"]
    BYTES = ["--data=input.txt", "--vocab-size=0", "--tokenizer=gpt2", "--bpe-folder=bytes"]
    SAMPLE = ["--prompt=the ", "--max-new-tokens=30", "--temperature=0"]

    def sample(self, *flags):
        """Without the first line, which names the source, and the last."""
        return self.generate(*flags, "--bpe-folder=bytes", *self.SAMPLE).out.splitlines()[1:-1]

    def test_hugging_face(self):
        self.write_vocabulary("bytes")
        begun = self.train("--nproc=2", *self.BYTES, "--lr=1e-2", "--max-iters=20", "--checkpoint-dir=kept",
                           "--save-model=saved", "--rope-theta=500")
        self.assertIn("model saved in " + self.path("saved"), begun.out)
        self.assertEqual(sorted(os.listdir(self.path("saved"))), ["config.json", "model.safetensors"])
        with open(self.path("saved/config.json")) as file:
            config = json.load(file)
        self.assertEqual((config["model_type"], config["vocab_size"], config["num_key_value_heads"], config["rope_theta"]),
                         ("llama", 257, 2, 500))
        text = self.sample("--checkpoint=kept")
        self.assertEqual(text[0][:4], "the ")
        self.assertEqual(text, self.sample("--model=saved"))
        # Parameters do not move at this learning rate: the same text again. Sizes are those of the files.
        for count, mesh in enumerate((["--nproc=2"], ["--mesh=pp=2"], ["--mesh=tp=2"])):
            with self.subTest(mesh=mesh):
                run = self.train(*mesh, *self.BYTES, "--init-from=saved", *self.NOTHING,
                                 f"--checkpoint-dir=tuned{count}", f"--save-model=again{count}", outputs=f"tuned_out{count}")
                self.assertIn("Initializing from the model in " + self.path("saved"), run.out)
                self.assertEqual(text, self.sample(f"--checkpoint=tuned{count}"))
                for name in ("config.json", "model.safetensors"):
                    with open(self.path("saved/" + name), "rb") as one, open(self.path(f"again{count}/" + name), "rb") as other:
                        self.assertEqual(one.read(), other.read(), name)

    def test_generate_from_characters(self):
        self.train("--nproc=2", *self.TEXT, "--checkpoint-dir=kept")
        flags = ["--checkpoint=kept", "--prompt=to be", "--max-new-tokens=40"]
        out = self.generate(*flags).out
        self.assertRegex(out, r"(?s)^model: \S+/kept/step-000000008, after step 8\nto be.{40}\n-{15}\n40 tokens in ")
        self.assertEqual(out.rsplit("\n", 2)[0], self.generate(*flags).out.rsplit("\n", 2)[0])

    def fails(self, run, expected, code=1):
        self.assertEqual(run.code, code, run.out + run.err)
        errors = [line for line in run.errors() if "[WARNING]" not in line]
        self.assertEqual(len(errors), 1, errors)
        self.assertRegex(errors[0], expected)
        self.assertNotIn("iter=0", run.out)

    def test_bad_settings(self):
        for expected, *flags in (
                ("--dim=32: must be a multiple of 2 x --n-heads=3", "--n-heads=3"),
                ("--n-kv-heads=3: must divide --n-heads=4", "--n-kv-heads=3"),
                ("--seq-length=0: must be at least 1", "--seq-length=0"),
                ("--vocab-size=0: must be at least 1", "--vocab-size=0"),
                ("unknown flag --block-size", "--block-size=3"),
                ("--mesh=dp_shard=2: ddp replicates everything", "--mesh=dp_shard=2", "--strategy=ddp"),
                ("--resume and --init-from are mutually exclusive", "--resume=x", "--init-from=y")):
            with self.subTest(flags=flags):
                run = self.train(*flags, code=None)
                self.fails(run, "^train_llama: " + expected, code=2)
                self.assertEqual(run.out, "")  # before any work

    def test_bad_splits(self):
        for expected, *flags in (
                ("--mesh: layers.0.attention.wq: 4 heads for 3 ranks; expected a multiple of the ranks", "--mesh=tp=3"),
                ("--mesh: layers.0.feed_forward.w1: 1 rows or columns for 2 ranks; expected at least one each",
                 "--mesh=tp=2", "--hidden=1"),
                ("--mesh=pp=3: 3 pipeline stages, but the model has 2 blocks; expected at least 3, so that no stage is empty",
                 "--mesh=pp=3", "--n-layers=2")):
            with self.subTest(flags=flags):
                self.fails(self.train(*flags, code=None), "^train_llama: " + expected)

    def test_bad_files(self):
        self.write_vocabulary("bytes")
        self.train("--nproc=1", *self.BYTES, "--save-model=saved", "--checkpoint-dir=kept")
        self.train("--nproc=1", "--checkpoint-dir=random", outputs="random_out")
        os.mkdir(self.path("gpt"))
        self.write("gpt/config.json", '{"model_type": "gpt2"}')
        os.mkdir(self.path("scaled"))
        self.write("scaled/config.json", '{"model_type": "llama", "rope_scaling": {"rope_type": "llama3", "factor": 8}}')
        self.write("file", "in the way")
        for expected, *flags in (
                ("--data=random: a vocabulary of 70000; expected 1 to 65536", "--vocab-size=70000"),
                ("--vocab-size=50: the text's tokenizer has 257 tokens; give as many, or 0", *self.BYTES, "--vocab-size=50"),
                ("--seq-length=9: the model in .*saved has 8 positions", "--init-from=saved", "--seq-length=9"),
                ("--seq-length: the validation text of .*2000", *self.TEXT, "--seq-length=2000"),
                ("--init-from=saved: the model has 257 tokens, the text's tokenizer", *self.TEXT, "--init-from=saved"),
                ("--init-from: --dim=64: expected 32, or leave it out", *self.BYTES, "--init-from=saved", "--dim=64"),
                ('--init-from: .*gpt/config.json: "model_type" is "gpt2"; expected "llama"', "--init-from=gpt"),
                ("--init-from: .*rope_scaling.rope_type\" is \"llama3\"; expected \"default\"", "--init-from=scaled"),
                ("--save-model: .*file", "--save-model=file/folder")):
            for ranks in (1, 2):
                with self.subTest(flags=flags, ranks=ranks):
                    self.fails(self.train(f"--nproc={ranks}", *flags, code=None, outputs="a"), "train_llama: " + expected)
        table = [("the model was trained on tokens without a tokenizer: it cannot generate text", "--checkpoint=random"),
                 ("scaled/config.json: .*llama3", "--model=scaled"),
                 ("saved: no tokenizer; expected tokenizer.model .* or vocab.json with merges.txt", "--model=saved"),
                 ("file", "--checkpoint=file")]
        for expected, flag in table:
            with self.subTest(flag=flag):
                self.fails(self.generate(flag, code=None), "^generate: .*" + expected)


if __name__ == "__main__":
    runs.main()
