"""GPT-2 by Transformers and ours on the same files: safetensors_transformers_test.py PROBE."""

import json
import math
import os
import subprocess
import sys
import unittest

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

PROBE = os.path.abspath(sys.argv.pop(1))
FOLDER = os.path.join(os.environ["TEST_TMPDIR"], "transformers")
FLOAT32, FLOAT64 = 2.0**-24, 2.0**-53
LAYERS, WIDTH, POSITIONS, SYMBOLS = 2, 32, 16, 23
# Both do the same sums in orders of their own. The longest chain of a block: norms, products of 32, 32, 32 and 128
# terms, attention of 8 and 16; then norm and head. Values are below 8, norms scale by less than 4.
LENGTH = LAYERS * (32 + 32 + 8 + 16 + 32 + 32 + 32 + 128) + 32 + 32
BOUND = LENGTH * 8 * 4
TRANSPOSED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")


def folder(name):
    path = os.path.join(FOLDER, name)
    os.makedirs(path, exist_ok=True)
    return path


def probe(*arguments):
    return subprocess.run([PROBE, *map(str, arguments)], check=True, stderr=subprocess.PIPE, text=True)


def theirs(activation="gelu_new"):
    torch.manual_seed(3)
    config = GPT2Config(vocab_size=SYMBOLS, n_positions=POSITIONS, n_embd=WIDTH, n_layer=LAYERS, n_head=4,
                        activation_function=activation, attn_implementation="eager")
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0 if parameter.dim() == 2 else 0.8, 0.2)
    return model


def batch(length=POSITIONS):
    torch.manual_seed(4)
    tokens, targets = torch.randint(SYMBOLS, (2, 3, length))
    return tokens, targets


def ours(where, dtype):
    """Logits, loss and gradients of our program on the model in a folder."""
    tokens, targets = batch()
    save_file({"tokens": tokens.clone(), "targets": targets.clone()}, os.path.join(FOLDER, "batch.safetensors"))
    out = os.path.join(FOLDER, "out.safetensors")
    probe("run", where, os.path.join(FOLDER, "batch.safetensors"), dtype, out)
    return load_file(out)


class Theirs(unittest.TestCase):
    """Their models, read by us."""

    def compare(self, model, where, dtype, eps):
        found = ours(where, dtype)
        tokens, targets = batch()
        model = model.double()
        logits = model(tokens).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        model.zero_grad()
        loss.backward()
        self.assertLess((found.pop("logits") - logits).abs().max().item(), BOUND * eps)
        self.assertLess(abs(found.pop("loss").item() - loss.item()), BOUND * eps)
        gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
        self.assertEqual(set(found), set(gradients))
        for name, expected in gradients.items():
            if name.endswith(TRANSPOSED):
                expected = expected.t()
            # The way back is as long as the way forward.
            self.assertLess((found[name] - expected).abs().max().item(),
                            2 * BOUND * eps * max(1.0, expected.abs().max().item()), name)
            # A bias of the keys moves all scores of a query alike.
            self.assertGreater(expected.norm().item(), 1e-4, name)

    def test_function_and_gradients_in_float64(self):
        for activation in ("gelu_new", "gelu"):
            model, where = theirs(activation), folder("theirs-" + activation)
            model.save_pretrained(where)
            self.compare(model, where, "float64", FLOAT64)

    def test_function_and_gradients_in_float32(self):
        model, where = theirs(), folder("theirs-float32")
        model.save_pretrained(where)
        self.compare(model, where, "float32", FLOAT32)

    def test_names_as_in_the_published_file(self):
        # No prefix, masks, and the head once more.
        model, where = theirs(), folder("published")
        model.save_pretrained(where)
        tensors = {name.removeprefix("transformer."): value.clone() for name, value in model.state_dict().items()}
        for layer in range(LAYERS):
            tensors["h.%d.attn.bias" % layer] = torch.ones(1, 1, POSITIONS, POSITIONS).tril()
            tensors["h.%d.attn.masked_bias" % layer] = torch.tensor(-1e4)
        self.assertIn("lm_head.weight", tensors)
        save_file(tensors, os.path.join(where, "model.safetensors"), {"format": "pt"})
        self.compare(model, where, "float64", FLOAT64)

    def test_shards_and_half_precision(self):
        model, where = theirs().bfloat16(), folder("theirs-shards")
        model.save_pretrained(where, max_shard_size="20KB")
        self.assertTrue(os.path.exists(os.path.join(where, "model.safetensors.index.json")))
        self.compare(model, where, "float64", FLOAT64)

    def test_refuses_a_head_of_its_own(self):
        model, where = theirs(), folder("untied")
        model.save_pretrained(where)
        tensors = load_file(os.path.join(where, "model.safetensors"))
        tensors["lm_head.weight"] = tensors["transformer.wte.weight"] + 1
        save_file(tensors, os.path.join(where, "model.safetensors"), {"format": "pt"})
        with self.assertRaises(subprocess.CalledProcessError) as caught:
            ours(where, "float32")
        self.assertIn("lm_head.weight is not wte.weight", caught.exception.stderr)


class Ours(unittest.TestCase):
    """Our models, read by them."""

    def test_they_compute_our_logits(self):
        for bias in ("yes", "no"):
            for gelu in ("exact", "tanh"):
                where = folder("ours-%s-%s" % (bias, gelu))
                probe("save", where, bias, gelu)
                model, loading = AutoModelForCausalLM.from_pretrained(
                    where, output_loading_info=True, attn_implementation="eager", dtype=torch.float32)
                for problem, names in loading.items():
                    self.assertFalse(names, (problem, names))
                logits = model.eval().double()(batch()[0]).logits
                found = ours(where, "float64")
                self.assertLess((found["logits"] - logits).abs().max().item(), BOUND * FLOAT64)
                self.assertGreater(logits.std().item(), 0.1)
                biases = [name for name in found if name.endswith(".bias")]
                self.assertEqual(len(biases), 0 if bias == "no" else 6 * LAYERS + 1)

    def test_a_copy_has_the_same_tensors(self):
        model, where = theirs(), folder("original")
        model.save_pretrained(where)
        probe("copy", where, folder("copy"), 30000)
        with open(os.path.join(FOLDER, "copy", "model.safetensors.index.json")) as file:
            shards = set(json.load(file)["weight_map"].values())
        self.assertGreater(len(shards), 1)
        found = {}
        for shard in shards:
            found.update(load_file(os.path.join(FOLDER, "copy", shard)))
        expected = load_file(os.path.join(where, "model.safetensors"))
        self.assertEqual(set(found), set(expected))
        for name, value in expected.items():
            self.assertTrue(torch.equal(found[name], value), name)
        with open(os.path.join(FOLDER, "copy", "config.json")) as file:
            config = GPT2Config(**json.load(file))
        for key in ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "activation_function"):
            self.assertEqual(getattr(config, key), getattr(model.config, key), key)
        self.assertTrue(math.isclose(config.layer_norm_epsilon, model.config.layer_norm_epsilon))


if __name__ == "__main__":
    unittest.main()
