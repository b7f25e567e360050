"""Token files: the same numbers as from text, ignored targets as PyTorch ignores them on any mesh, corpora beyond the memory."""
import array
import json
import math
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import time

import torch
import transformers

import program_runs
import runs

PREPARE = program_runs.programs(4)[3]
PIECES = os.path.abspath("data/text/testing")
SEQUENCE = 16
END = 256  # the token behind each document; other ids are bytes
BITS = (1 << 64) - 1


def mixed(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & BITS
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & BITS
    return z ^ (z >> 31)


def begin_of_block(seed, number, places):
    """Where block `number` of training begins: a draw of base/seed.h."""
    golden, name = 0x9E3779B97F4A7C15, 0xCBF29CE484222325
    for byte in b"blocks train":
        name = (name ^ byte) * 0x100000001B3 & BITS
    state = mixed(mixed(mixed((seed + golden) & BITS) ^ name) + golden * (number + 1) & BITS)
    drawn = mixed((state + golden) & BITS) * places
    assert drawn & BITS >= places  # else there would be another draw
    return drawn >> 64


class TokenFilesTest(runs.TrainTest):
    def setUp(self):
        super().setUp()
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [byte for byte in range(256) if byte not in printable]
        characters = {byte: chr(byte) for byte in printable} | {byte: chr(256 + k) for k, byte in enumerate(others)}
        os.mkdir(self.path("bytes"))
        self.write("bytes/vocab.json", json.dumps({**{characters[byte]: byte for byte in range(256)}, "<|endoftext|>": END}))
        self.write("bytes/merges.txt", "#version: 0.2\n")

    def prepare(self, *flags, code=0):
        return self.finish(self.start(PREPARE, [*flags, "--bpe-folder=bytes"]), code)

    def write_ids(self, name, ids, kind="H"):
        with open(self.path(name), "wb") as file:
            array.array(kind, ids).tofile(file)

    def pairs(self, count=60):
        """Prompts and texts of words; as lines of JSON in pairs.jsonl."""
        numbers = random.Random(7)
        made = [(runs.text_of_words(numbers.randrange(6), seed=2 * k), runs.text_of_words(1 + numbers.randrange(6), seed=2 * k + 1))
                for k in range(count)]
        self.write("pairs.jsonl", "".join(json.dumps({"q": q, "a": a}) + "\n" for q, a in made))
        self.prepare("--data=pairs.jsonl", "--out=pairs", "--prompt-key=q", "--text-key=a", "--validation-share=0.1")
        return [pair for k, pair in enumerate(made) if k % 10 != 9]

    def test_preparation_can_be_interrupted(self):
        process = self.start(PREPARE, ["--data=-", "--bpe-folder=bytes", "--out=tokens"], stdin=subprocess.PIPE)
        process.stdin.write('{"text": "to be"}\n')
        process.stdin.flush()
        while not os.path.exists(self.path("tokens")):  # it reads, then
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process, 130).err.splitlines()[-1], "prepare_text: interrupted")

    def test_same_numbers_as_text(self):
        """nanoGPT's files, one file, and a text have the same tokens in the same parts."""
        ids = list(runs.text_of_words().encode())
        cut = len(ids) * 9 // 10
        os.mkdir(self.path("raw"))
        self.write_ids("raw/train.bin", ids[:cut])
        self.write_ids("raw/val.bin", ids[cut:])
        self.write_ids("one.bin", ids)
        bpe = ["--nproc=1", "--bpe-folder=bytes", "--sample-tokens=0", "--max-iters=4"]
        self.train(*bpe, "--tokenizer=gpt2", outputs="text")
        for data in ("raw", "one.bin"):
            run = self.train(*bpe, data=data, outputs="of_" + data)
            self.assertIn(f"train has {cut:,} tokens\n", run.out)
            self.assertEqual(self.numbers("text"), self.numbers("of_" + data))
        # Without a vocabulary too, of as many tokens.
        self.train(*bpe, "--bpe-folder=", "--vocab-size=257", data="raw", outputs="no_vocabulary")
        self.assertEqual(self.numbers("text"), self.numbers("no_vocabulary"))

    def test_prepared_files(self):
        """What prepare_text writes, by its layout; training, sampling and resuming on it."""
        train = self.pairs()
        with open(self.path("pairs/train.idx"), "rb") as file:
            index = file.read()
        magic, version, kind, sequences, marks = struct.unpack("<9sQBQQ", index[:34])
        self.assertEqual((magic, version, kind, marks), (b"MMIDIDX\0\0", 1, 8, len(train) + 1))
        lengths = struct.unpack_from(f"<{sequences}i", index, 34)
        parts = [part.encode() for q, a in train for part in ([q] if q else []) + [a]]
        expected = [len(part) for part in parts]
        for k, mark in enumerate(struct.unpack_from(f"<{marks}q", index, 34 + 12 * sequences)[1:]):
            expected[mark - 1] += 1  # the token behind a document
        self.assertEqual(list(lengths), expected)
        with open(self.path("pairs/train.bin"), "rb") as file:
            ids = list(array.array("H", file.read()))
        self.assertEqual(ids, [i for q, a in train for i in [*(q + a).encode(), END]])
        run = self.train("--nproc=2", "--checkpoint-dir=run", "--ignore-targets=documents", data="pairs")
        self.assertIn(f"train has {len(ids):,} tokens in {len(train)} documents", run.out)
        self.assertIn("['prompt']: 'What is an LLM?'", run.out)
        self.assertIn("to ", self.generate("--checkpoint=run", "--bpe-folder=pairs", "--prompt=to ").out)
        again = ["--nproc=1", "--resume=run", "--max-iters=9"]
        self.train(*again, data="pairs", small=["--no-plots", "--no-trace"], outputs="more")
        run = self.train(*again, "--ignore-targets=none", data="pairs", code=None)
        self.assertRegex(run.err, "ignore_targets is documents there and none here")

    def test_sentence_pieces(self):
        """With the ids of the SentencePiece library; training, sampling and resuming on them."""
        os.mkdir(self.path("pieces"))
        shutil.copy(os.path.join(PIECES, "tokenizer.model"), self.path("pieces"))
        with open(os.path.join(PIECES, "sentence_piece_ids.json")) as file:
            cases = [case for case in json.load(file) if case["model"] == "as it is" and case["text"]]
        self.write("texts.jsonl", "".join(json.dumps({"text": case["text"]}) + "\n" for case in 8 * cases))
        self.finish(self.start(PREPARE, ["--data=texts.jsonl", "--bpe-folder=pieces", "--validation-share=0.5", "--out=tokens"]))
        with open(self.path("tokens/train.bin"), "rb") as file:
            ids = list(array.array("H", file.read()))
        self.assertEqual(ids, [i for case in (8 * cases)[::2] for i in [1, *case["ids"], 2]])
        self.train("--nproc=2", "--checkpoint-dir=run", "--save-model=saved", data="tokens")
        config = transformers.GPT2Config.from_pretrained(self.path("saved"))
        self.assertEqual((config.bos_token_id, config.eos_token_id), (1, 2))
        self.assertIn("\nthe cat", self.generate("--checkpoint=run", "--bpe-folder=tokens", "--prompt=the cat").out)
        self.train("--nproc=1", "--resume=run", "--max-iters=9", data="tokens", outputs="more")
        # A text, tokenized on the way.
        run = self.train("--nproc=1", "--tokenizer=sentencepiece", "--bpe-folder=pieces", outputs="text")
        self.assertIn("vocab size: 400\n", run.out)

    def save_model(self, deviation=0.2):
        """Of transformers, in the folder "model"."""
        torch.manual_seed(1)
        torch.set_num_threads(1)
        config = transformers.GPT2Config(vocab_size=END + 1, n_positions=SEQUENCE, n_embd=32, n_layer=2, n_head=2, initializer_range=deviation,
                                         resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=END, eos_token_id=END)
        transformers.GPT2LMHeadModel(config).save_pretrained(self.path("model"))

    def loss_of(self, model, train, ignored, blocks, seed):
        """Of blocks of training, by their numbers, by PyTorch's ignore_index."""
        ids, labels = [], []
        for q, a in train:
            document = [*(q + a).encode(), END]
            count = {"none": 0, "documents": 1, "prompts": max(1, len(q))}[ignored]
            ids += document
            labels += [-100] * count + document[count:]
        begins = [begin_of_block(seed, n, len(ids) - SEQUENCE) for n in blocks]
        inputs, targets = (torch.tensor([row[b + first:b + first + SEQUENCE] for b in begins])
                           for row, first in ((ids, 0), (labels, 1)))
        return torch.nn.functional.cross_entropy(model(inputs).logits.flatten(0, 1), targets.flatten(), ignore_index=-100)

    def expected(self, train, ignored, blocks, seed):
        """Loss and norm of its gradients of a first step."""
        model = transformers.GPT2LMHeadModel.from_pretrained(self.path("model")).double()
        loss = self.loss_of(model, train, ignored, range(blocks), seed)
        loss.backward()
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(p.grad) for p in model.parameters()]))
        return loss.item(), norm.item()

    def test_steps_as_pytorch(self):
        """AdamW with other moments and weight decay than its defaults, gradients that are clipped, at nanoGPT's rates."""
        train = self.pairs()
        self.save_model()
        self.train("--init-from=model", "--bpe-folder=bytes", "--dtype=float64", "--sample-tokens=0", "--eval-interval=0", "--nproc=1",
                   "--max-iters=6", "--beta1=0.8", "--beta2=0.9", "--weight-decay=0.5", "--grad-clip=0.1", "--learning-rate=0.01",
                   "--warmup-iters=2", "--lr-decay-iters=6", "--min-lr=0.002", "--dropout=0", "--seed=3", data="pairs")
        history = self.history()
        model = transformers.GPT2LMHeadModel.from_pretrained(self.path("model")).double()
        decayed, others = ([p for p in model.parameters() if (p.dim() > 1) == decays] for decays in (True, False))
        optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.5}, {"params": others, "weight_decay": 0}], betas=(0.8, 0.9))
        for step in range(6):
            rate = 0.01 * (step + 1) / 3 if step < 2 else 0.002 + 0.008 * (1 + math.cos(math.pi * (step - 2) / 4)) / 2
            for group in optimizer.param_groups:
                group["lr"] = rate
            loss = self.loss_of(model, train, "none", range(14 * step, 14 * step + 14), 3)
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            self.assertGreater(norm.item(), 0.1)
            optimizer.step()
            # AdamW divides rounding errors by gradients as small as 1e-8.
            for name, value in (("loss", loss.item()), ("gradient_norm", norm.item()), ("lr", rate)):
                self.assertAlmostEqual(float.fromhex(history[name][step]) / value, 1, delta=1e-9, msg=f"{name} of step {step + 1}")

    def test_overflows_of_float16_lower_the_scale_of_the_loss(self):
        """Until the gradients are those of float32."""
        self.pairs()
        self.save_model(deviation=4.0)
        flags = ["--init-from=model", "--bpe-folder=bytes", "--sample-tokens=0", "--eval-interval=0", "--nproc=1", "--max-iters=12",
                 "--grad-clip=0", "--dropout=0", "--learning-rate=1e-30", "--min-lr=0"]
        self.train(*flags, "--dtype=float16", data="pairs", outputs="half")
        self.train(*flags, data="pairs", outputs="whole")
        half, whole = ([float.fromhex(norm) for norm in self.history(name)["gradient_norm"]] for name in ("half", "whole"))
        self.assertFalse(math.isfinite(half[0]))
        # The softmax of such weights is saturated: rounding in float16 changes the norm by factors, a scale of 32 and more would by itself.
        self.assertLess(abs(math.log(half[-1] / whole[-1])), math.log(8))

    def test_ignored_targets_as_pytorch(self):
        """Blocks of uneven counts, in 2 micro-batches of 7, on any mesh: one mean over the step's targets."""
        train = self.pairs()
        self.save_model()
        flags = ["--init-from=model", "--bpe-folder=bytes", "--dtype=float64", "--sample-tokens=0", "--eval-interval=0",
                 "--max-iters=1", "--grad-clip=0", "--dropout=0"]
        meshes = {"none": [["--nproc=1"]], "documents": [["--nproc=2"]],
                  "prompts": [["--nproc=1", "--seed=5"], ["--nproc=3", "--strategy=fsdp"], ["--nproc=2", "--mesh=tp=2"],
                              ["--nproc=2", "--mesh=cp=2"], ["--nproc=4", "--mesh=pp=2,dp_shard=2", "--strategy=zero1"],
                              ["--nproc=2", "--reproducible", "--global-batch-size=8"]]}
        for ignored, runs_of in meshes.items():
            for k, mesh in enumerate(runs_of):
                with self.subTest(ignored=ignored, mesh=mesh):
                    name = f"{ignored}{k}"
                    self.train(*flags, "--seed=3", "--ignore-targets=" + ignored, *mesh, data="pairs", outputs=name)
                    loss, norm = self.expected(train, ignored, 16 if "--reproducible" in mesh else 14,
                                               5 if "--seed=5" in mesh else 3)
                    history = self.history(name)
                    # Two libraries' sums in float64: 1e-13 was measured.
                    self.assertAlmostEqual(float.fromhex(history["loss"][0]) / loss, 1, delta=1e-11)
                    self.assertAlmostEqual(float.fromhex(history["gradient_norm"][0]) / norm, 1, delta=1e-11)

    def test_ignored_targets_with_experts(self):
        """The losses of the router count by the valid targets of all ranks, which have different numbers of them."""
        self.pairs()
        flags = ["--bpe-folder=bytes", "--dtype=float64", "--sample-tokens=0", "--eval-interval=0", "--max-iters=4",
                 "--learning-rate=0.05", "--warmup-iters=0", "--ignore-targets=prompts", "--moe", "--moe-experts=4",
                 "--moe-balance-weight=1", "--gradient-accumulation-steps=1", "--global-batch-size=4"]
        self.train("--nproc=1", *flags, data="pairs", outputs="one")
        for count, mesh in enumerate((["--mesh=dp_replicate=2"], ["--mesh=cp=2"], ["--mesh=dp_replicate=2,ep=2"])):
            with self.subTest(mesh=mesh):
                self.train(*mesh, *flags, data="pairs", outputs=f"run{count}")
                self.expect_same("one", f"run{count}")

    def test_larger_than_the_memory(self):
        """A file with holes, twice as large as this machine's memory."""
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        os.mkdir(self.path("large"))
        self.write_ids("large/val.bin", [0, 1] * 40)
        with open(self.path("large/train.bin"), "wb") as file:
            file.truncate(2 * memory)
        run = self.train("--nproc=1", "--vocab-size=3", "--max-iters=3", data="large")
        self.assertIn(f"train has {memory:,} tokens", run.out)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10, 2 << 30)

    def test_bad_input(self):
        self.pairs()
        os.mkdir(self.path("raw"))
        self.write_ids("raw/train.bin", [5] * 200)
        self.write_ids("raw/val.bin", [7] * 200)
        for k, (expected, data, *flags) in enumerate([
                ("token files without a vocabulary: give --bpe-folder .* or --vocab-size", "raw"),
                ("--ignore-targets=documents: .*raw/train.bin has no index", "raw", "--vocab-size=9", "--ignore-targets=documents"),
                ("--ignore-targets=prompts: where documents begin is not known", "input.txt", "--ignore-targets=prompts"),
                ("--ignore-targets=all: expected none or documents or prompts", "raw", "--ignore-targets=all"),
                ("--data: .*raw/val.bin: token 7, expected 0 to 6", "raw", "--vocab-size=7", "--nproc=2"),
                ("--data: .*raw/train.bin: token 5, expected 0 to 4", "raw", "--vocab-size=5", "--eval-interval=0", "--nproc=2"),
                ("none.bin: cannot be opened", "none.bin"),
                ("--bpe-folder=other: another vocabulary than that of the tokens", "pairs", "--bpe-folder=other")]):
            with self.subTest(expected):
                if "other" in expected and not os.path.exists(self.path("other")):
                    self.write_vocabulary("other")
                run = self.train("--nproc=1", *flags, data=data, outputs=f"out{k}", code=None)
                self.assertNotEqual(run.code, 0)
                errors = [line for line in run.errors() if "[WARNING]" not in line]
                self.assertEqual(len(errors), 1, errors)
                self.assertRegex(errors[0], expected)
        self.write("long.jsonl", (json.dumps({"q": "x" * 2000, "a": "y"}) + "\n") * 2)
        self.prepare("--data=long.jsonl", "--out=long", "--prompt-key=q", "--text-key=a", "--validation-share=0.5")
        run = self.train("--nproc=1", "--ignore-targets=prompts", "--global-batch-size=1", "--gradient-accumulation-steps=1",
                         "--eval-interval=0", data="long", code=1)
        self.assertIn("step 1 has no valid targets: all 16 targets are ignored; expected more samples per step", run.err)
        run = self.train("--nproc=1", "--ignore-targets=prompts", "--global-batch-size=1", "--max-iters=0", "--eval-iters=1",
                         data="long", outputs="no_estimate")
        self.assertIn("training loss: no estimate: all targets of its 1 batches are ignored (--ignore-targets=prompts)", run.out)
        self.assertIn("train_loss=nan val_loss=nan", run.out)
        with open(self.path("pairs/val.bin"), "ab") as file:
            file.write(b"\0\0")
        run = self.train("--nproc=1", data="pairs", outputs="cut", code=None)
        self.assertRegex(run.err, "val.bin: .* tokens, .*val.idx lists")
        run = self.finish(self.start(PREPARE, ["--data=input.txt"]), 2)
        self.assertEqual(run.err, "prepare_text: expected --data=PATH, --bpe-folder=DIR and --out=DIR\n")
        self.assertEqual(self.prepare("--data=input.txt", "--out=out", "--threads=-3", code=2).err,
                         "prepare_text: --threads=-3: expected 0, or a number of threads\n")
        self.assertRegex(self.prepare("--data=nowhere", "--out=out", code=1).err, "^prepare_text: .*nowhere: cannot be read")


if __name__ == "__main__":
    program_runs.main(4)
