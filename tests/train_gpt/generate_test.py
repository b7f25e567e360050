"""Samples from checkpoints, and from models in Hugging Face's layout."""
import json
import os
import random
import re
import struct
import subprocess

import torch
import transformers

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

    def test_streams(self):
        """Each write comes as a packet of its own: what the program held back for later ones would come with them."""
        reader, writer = os.pipe2(os.O_DIRECT)
        self.addCleanup(os.close, reader)
        command = [runs.GENERATE, "--checkpoint=kept", "--prompt=to be", "--max-new-tokens=1000000000"]
        process = subprocess.Popen(command, stdout=writer, stdin=subprocess.DEVNULL, env=self.environment(), cwd=self.folder)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.close(writer)
        text = os.read(reader, 4096).decode()
        while text.count("\n") < 1 or len(text.split("\n", 1)[1]) < len("to be"):
            packet = os.read(reader, 4096).decode()
            self.assertTrue(packet, text)
            text += packet
        self.assertRegex(text, r"\Amodel: .*\nto be\Z")
        for _ in range(40):
            self.assertEqual(len(os.read(reader, 4096)), 1)
        self.assertIsNone(process.poll())

    def test_several_prompts(self):
        prompts = ["to be", "t", "or not to be that is the question", "be or", "to"]
        self.write("prompts.txt", "".join(prompt + end for prompt, end in zip(prompts, ["\n", "\r\n"] * 3)))
        flags = ["--prompts-file=prompts.txt", "--temperature=0", "--dtype=float64", "--max-new-tokens=9"]
        together = self.generate("--checkpoint=kept", *flags).out.splitlines()[:-1]
        self.assertEqual(together, self.generate("--checkpoint=kept", *flags, "--batch-size=1").out.splitlines()[:-1])
        alone = [self.sample(*flags[1:], "--prompt=" + prompt) for prompt in prompts]
        self.assertEqual("\n".join(together[1:]), "\n".join(alone))
        # Before the first space or "e" behind each prompt.
        run = self.generate("--checkpoint=kept", *flags, "--stop= ,\\x65").out.split("\n", 1)[1]
        texts = run.split("\n---------------\n")
        drawn = 0
        for prompt, whole, text in zip(prompts, alone, texts):
            made = whole[len(prompt):-len("\n---------------")]
            self.assertEqual(text, prompt + re.split("[ e]", made)[0])
            stop = re.search("[ e]", made)
            drawn += stop.end() if stop else len(made)
        self.assertTrue(texts[len(prompts)].startswith(f"{drawn} tokens in "), texts[len(prompts)])

    def test_drops_nothing(self):
        """The likeliest text of a model that was trained with dropout, by transformers."""
        self.train("--nproc=1", "--dropout=0.5", "--max-iters=12", "--learning-rate=1e-2", "--warmup-iters=0", "--eval-interval=0",
                   "--checkpoint-dir=dropped", "--save-model=saved", outputs="dropped_out")
        characters = sorted(set(runs.text_of_words()))
        model = transformers.GPT2LMHeadModel.from_pretrained(self.path("saved")).double().eval()
        ids = [characters.index(character) for character in "to be"]
        while len(ids) < 14:
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
        text = "".join(characters[i] for i in ids)
        run = self.generate("--checkpoint=dropped", "--prompt=to be", "--temperature=0", "--max-new-tokens=9", "--dtype=float64")
        self.assertIn("\n" + text + "\n", run.out)

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
        os.mkdir(self.path("empty"))
        table = [
            ("empty", 1, ["--model=empty"]),
            ("empty", 1, ["--checkpoint=empty"]),
            ("expected --checkpoint=DIR of train_gpt or train_llama, or --model=DIR", 2, []),
            ("--temperature|temperature", 2, ["--checkpoint=kept", "--temperature=-1"]),
            ("--stop=a,,b: expected texts separated by commas", 2, ["--checkpoint=kept", "--stop=a,,b"]),
            ("--prompts-file=.*nothing: no such file, or an empty one", 1, ["--checkpoint=kept", "--prompts-file=nothing"]),
            ("--prompts-file: expected without --prompt", 2, ["--checkpoint=kept", "--prompts-file=x", "--prompt=y"]),
            ("--num-samples=0: must be at least 1", 2, ["--checkpoint=kept", "--num-samples=0"]),
            ("nonexistent", 1, ["--checkpoint=nonexistent"]),
            ("nonexistent", 1, ["--model=nonexistent"]),
            ("--prompt: character 0 of the text, U.0051,", 1, ["--checkpoint=kept", "--prompt=Quiet"]),
        ]
        for expected, code, flags in table:
            with self.subTest(flags=flags):
                run = self.generate(*flags, code=code)
                self.assertEqual(len(run.err.splitlines()), 1, run.err)
                self.assertTrue(re.match("generate: .*(" + expected + ")", run.err), run.err)

    def write_model(self, bias=None):
        """GPT-2 in Hugging Face's layout with random weights, for bytes and one pair of them. `bias`: of ln_f."""
        width, seq = 16, 32
        shapes = {"wte.weight": (257, width), "wpe.weight": (seq, width), "ln_f.weight": (width,), "ln_f.bias": (width,)}
        for name, shape in (("ln_1.weight", (width,)), ("ln_1.bias", (width,)), ("ln_2.weight", (width,)),
                            ("ln_2.bias", (width,)), ("attn.c_attn.weight", (width, 3 * width)),
                            ("attn.c_attn.bias", (3 * width,)), ("attn.c_proj.weight", (width, width)),
                            ("attn.c_proj.bias", (width,)), ("mlp.c_fc.weight", (width, 4 * width)),
                            ("mlp.c_fc.bias", (4 * width,)), ("mlp.c_proj.weight", (4 * width, width)),
                            ("mlp.c_proj.bias", (width,))):
            shapes["h.0." + name] = shape
        numbers, head, data = random.Random(3), {"__metadata__": {"format": "pt"}}, b""
        for name, shape in shapes.items():
            count = shape[0] * (shape[1] if len(shape) > 1 else 1)
            drawn = [numbers.gauss(0, 0.3) for _ in range(count)]
            if name == "ln_f.bias" and bias is not None:
                drawn = [bias] * count
            values = struct.pack(f"<{count}f", *drawn)
            head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
            data += values
        text = json.dumps(head).encode()
        self.write_vocabulary("model")
        with open(self.path("model/model.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + data)
        self.write("model/config.json", json.dumps({
            "model_type": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": width, "n_positions": seq, "vocab_size": 257,
            "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True}))

    def test_hugging_face(self):
        self.write_model()
        flags = ["--prompt=the ", "--max-new-tokens=30", "--temperature=0"]
        text = self.generate("--model=model", *flags).out
        self.assertIn("the ", text)
        nothing = ["--no-decay-lr", "--learning-rate=1e-300", "--min-lr=0", "--max-iters=1"]
        begins = ["--nproc=2", "--strategy=fsdp", "--init-from=model"]
        run = self.train(*begins, "--block-size=32", *nothing, code=1)
        self.assertEqual(run.errors()[-1], "train_gpt: --init-from: --n-layer=2: expected 1, or leave it out")
        self.assertNotIn("CONFIG", run.out)
        small = runs.SMALL[3:]  # without sizes of the model
        run = self.train(*begins, "--block-size=32", *nothing, code=None, small=small)
        self.assertNotEqual(run.code, 0)
        self.assertIn("the model has 257 tokens, the text's tokenizer", run.err)
        self.assertIn("expected the model's own: --tokenizer=gpt2", run.err)
        run = self.train(*begins, "--block-size=33", "--tokenizer=gpt2", *nothing, code=None, small=small)
        self.assertIn("--block-size=33: the model in ", run.err)
        run = self.train(*begins, "--block-size=32", "--tokenizer=gpt2", "--checkpoint-dir=begun", *nothing, outputs="begun_out",
                         small=small)
        self.assertRegex(run.out, "n_layer=1\n")  # those of the model
        self.assertIn("Initializing from the model in ", run.out)
        with open(self.path("begun_out/history.h5"), "rb") as file:
            self.assertRegex(file.read(), rb"n_layer=1, n_head=2, n_embd=\d+, ")  # those of the model
        # Parameters have not moved: the same text, but for the first line, which names the source, and the last.
        again = self.generate("--checkpoint=begun", "--bpe-folder=model", *flags).out
        self.assertEqual(again.splitlines()[1:-1], text.splitlines()[1:-1])
        # A resumed run keeps what the files say of the model: the tanh approximation of GELU.
        self.train("--nproc=1", "--resume=begun", "--bpe-folder=model", "--no-decay-lr", "--learning-rate=1e-300", "--min-lr=0",
                   "--max-iters=2", "--checkpoint-dir=resumed", "--eval-interval=0", small=["--no-plots", "--no-trace"],
                   outputs="resumed_out")
        again = self.generate("--checkpoint=resumed", "--bpe-folder=model", *flags).out
        self.assertEqual(again.splitlines()[1:-1], text.splitlines()[1:-1])

    def test_end_of_text(self):
        self.write_model()
        with open(self.path("model/vocab.json"), encoding="utf-8") as file:
            ids = json.load(file)
        del ids["th"]
        self.write("model/vocab.json", json.dumps(ids | {"<|endoftext|>": 256}))
        self.write("model/merges.txt", "#version: 0.2\n")
        flags = ["--model=model", "--prompt=a", "--max-new-tokens=30", "--temperature=1", "--top-k=0", "--num-samples=60"]
        whole, ended = (self.generate(*flags, *more).out.split("\n---------------\n") for more in (["--ignore-end-of-text"], []))
        for one, other in zip(whole[:-1], ended[:-1], strict=True):
            self.assertEqual(one.split("<|endoftext|>")[0], other)
        self.assertNotEqual(whole[:-1], ended[:-1])
        # The same model, with that token beside the vocabulary: config.json ends the texts, or its text is another.
        self.write("model/vocab.json", json.dumps(ids))
        self.write("model/added_tokens.json", json.dumps({"<pad>": 256}))
        for end in (256, [300, 256]):
            self.change_config(eos_token_id=end)
            self.assertEqual(self.generate(*flags).out.split("\n---------------\n")[:-1], ended[:-1])
        padded = self.generate(*flags, "--ignore-end-of-text").out.split("\n---------------\n")
        self.assertEqual(padded[:-1], [text.replace("<|endoftext|>", "<pad>") for text in whole[:-1]])
        self.change_config(eos_token_id=None)
        self.assertEqual(self.generate(*flags).out.split("\n---------------\n")[:-1], padded[:-1])
        run = self.generate("--model=model", "--prompt=a<pad>", code=1)
        self.assertEqual(run.err, 'generate: --prompt: "<pad>" is a token that was added beside the vocabulary (id 256), '
                         "which is not supported in prompts; leave it out\n")
        self.change_config(eos_token_id="</s>")
        run = self.generate(*flags, code=1)
        self.assertRegex(run.err, r'^generate: .*model/config.json: "eos_token_id" is "</s>"; expected an integer .*\n$')

    def change_config(self, **values):
        with open(self.path("model/config.json"), encoding="utf-8") as file:
            config = json.load(file)
        self.write("model/config.json", json.dumps(config | values))

    def test_no_token_can_be_drawn(self):
        """Parameters that are no numbers: one line, and no abort."""
        self.write_model(bias=float("nan"))
        for temperature in ("0", "1"):
            with self.subTest(temperature=temperature):
                run = self.generate("--model=model", "--prompt=the ", "--temperature=" + temperature, code=1)
                self.assertEqual(run.err, "generate: sample 1: token 1: 257 of 257 logits are NaN; the model's "
                                 "parameters are not finite, or it overflows in this dtype: take an earlier "
                                 "checkpoint, or --dtype=float32\n")


if __name__ == "__main__":
    runs.main()
