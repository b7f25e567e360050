"""Compares GPT-2 and Llama with Transformers on the same files: transformers_test.py PROBE."""

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
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

PROBE = os.path.abspath(sys.argv.pop(1))
FOLDER = os.path.join(os.environ["TEST_TMPDIR"], "transformers")
FLOAT32, FLOAT64 = 2.0**-24, 2.0**-53
LAYERS, WIDTH, POSITIONS, SYMBOLS = 2, 32, 16, 23
# Both form the same sums in different orders. The longest chain of a block: norms, products of 32, 32, 32 and 128
# terms, attention of 8 and 16; then norm and head. Values are below 8, norms scale by less than 4.
LENGTH = LAYERS * (32 + 32 + 8 + 16 + 32 + 32 + 32 + 128) + 32 + 32
BOUND = LENGTH * 8 * 4  # Llama's chains are shorter
TRANSPOSED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")


def folder(name):
    path = os.path.join(FOLDER, name)
    os.makedirs(path, exist_ok=True)
    return path


def probe(*arguments):
    return subprocess.run([PROBE, *map(str, arguments)], check=True, stderr=subprocess.PIPE, text=True)


def drawn(model):
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0 if parameter.dim() == 2 else 0.8, 0.2)
    return model.eval()


def theirs(activation="gelu_new"):
    config = GPT2Config(vocab_size=SYMBOLS, n_positions=POSITIONS, n_embd=WIDTH, n_layer=LAYERS, n_head=4,
                        activation_function=activation, attn_implementation="eager")
    return drawn(GPT2LMHeadModel(config))


def their_llama(kv_heads=2, **options):
    return drawn(LlamaForCausalLM(LlamaConfig(
        vocab_size=SYMBOLS, max_position_embeddings=POSITIONS, hidden_size=WIDTH, intermediate_size=44,
        num_hidden_layers=LAYERS, num_attention_heads=4, num_key_value_heads=kv_heads, rms_norm_eps=0.01,
        rope_parameters={"rope_theta": 50.0, "rope_type": "default"}, attn_implementation="eager", **options)))


def batch(length=POSITIONS):
    torch.manual_seed(4)
    tokens, targets = torch.randint(SYMBOLS, (2, 3, length))
    return tokens, targets


def ours(where, dtype):
    """Returns logits, loss and gradients that our probe computes for the model in a folder."""
    tokens, targets = batch()
    save_file({"inputs": tokens.clone(), "targets": targets.clone()}, os.path.join(FOLDER, "batch.safetensors"))
    out = os.path.join(FOLDER, "out.safetensors")
    probe("run", where, os.path.join(FOLDER, "batch.safetensors"), dtype, out)
    return load_file(out)


def loss_and_gradients(model):
    tokens, targets = batch()
    logits = model(tokens).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    model.zero_grad()
    loss.backward()
    return logits, loss.item(), {name: parameter.grad for name, parameter in model.named_parameters()}


class Theirs(unittest.TestCase):
    """Models written by Transformers and read by us."""

    def compare(self, model, where, dtype, eps):
        found = ours(where, dtype)
        logits, loss, gradients = loss_and_gradients(model.double())
        self.assertLess((found.pop("logits") - logits).abs().max().item(), BOUND * eps)
        self.assertLess(abs(found.pop("loss").item() - loss), BOUND * eps)
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
        self.assertIn("lm_head.weight is not transformer.wte.weight", caught.exception.stderr)


class Ours(unittest.TestCase):
    """Models written by us and read by Transformers."""

    def test_they_compute_our_logits(self):
        for bias in ("yes", "no"):
            for gelu in ("exact", "tanh"):
                where = folder("ours-%s-%s" % (bias, gelu))
                probe("save-gpt2", where, bias, gelu)
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


NAMES = {"tok_embeddings.": "model.embed_tokens.", "norm.": "model.norm.", "output.": "lm_head."} | {
    "layers.%d.%s." % (layer, ours_): "model.layers.%d.%s." % (layer, theirs_) for layer in range(LAYERS)
    for ours_, theirs_ in {
        "attention_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attention.wq": "self_attn.q_proj",
        "attention.wk": "self_attn.k_proj", "attention.wv": "self_attn.v_proj", "attention.wo": "self_attn.o_proj",
        "feed_forward.w1": "mlp.gate_proj", "feed_forward.w2": "mlp.down_proj", "feed_forward.w3": "mlp.up_proj"}.items()}


def pairs(weight, width=WIDTH // 4):
    """Permutes the rows of heads to our order, in which the elements i and i + width / 2 of a rotated pair are neighbours."""
    rows = [head * width + part * width // 2 + i for head in range(len(weight) // width)
            for i in range(width // 2) for part in range(2)]
    return weight[rows]


class Llama(unittest.TestCase):
    """Transformers computes norms and rotations in float32, whatever type a model has."""

    def compare(self, model, where):
        found = ours(where, "float32")
        logits, loss, gradients = loss_and_gradients(model.float())
        self.assertLess((found.pop("logits") - logits).abs().max().item(), BOUND * FLOAT32)
        self.assertGreater(logits.std().item(), 0.5)
        self.assertLess(abs(found.pop("loss").item() - loss), BOUND * FLOAT32)
        if model.config.tie_word_embeddings:
            found["tok_embeddings.weight"] += found.pop("output.weight")
        self.assertEqual({NAMES[name.removesuffix("weight")] + "weight" for name in found}, set(gradients))
        for name, value in found.items():
            expected = gradients[NAMES[name.removesuffix("weight")] + "weight"]
            if name.endswith(("wq.weight", "wk.weight")):
                expected = pairs(expected)
            self.assertLess((value - expected).abs().max().item(),
                            2 * BOUND * FLOAT32 * max(1.0, expected.abs().max().item()), name)
            self.assertGreater(expected.norm().item(), 1e-2, name)

    def test_theirs(self):
        for kv_heads in (1, 2, 4):
            with self.subTest(kv_heads=kv_heads):
                model, where = their_llama(kv_heads), folder("llama-%d" % kv_heads)
                model.save_pretrained(where)
                self.compare(model, where)

    def test_theirs_as_older_versions_write_config_json(self):
        model, where = their_llama(), folder("llama-older")
        model.save_pretrained(where)
        with open(os.path.join(where, "config.json")) as file:
            config = json.load(file)
        config |= {"rope_theta": config.pop("rope_parameters")["rope_theta"], "rope_scaling": None}
        del config["head_dim"]
        with open(os.path.join(where, "config.json"), "w") as file:
            json.dump(config, file)
        self.compare(model, where)

    def test_theirs_in_shards_and_half_precision(self):
        where = folder("llama-shards")
        their_llama().bfloat16().save_pretrained(where, max_shard_size="20KB")
        self.assertTrue(os.path.exists(os.path.join(where, "model.safetensors.index.json")))
        self.read_by_them(where)  # a model that was bfloat16 has rounded rotations

    def test_theirs_with_tied_embeddings(self):
        model, where = their_llama(tie_word_embeddings=True), folder("llama-tied")
        model.save_pretrained(where)
        self.compare(model, where)

    def test_ours(self):
        for kv_heads in (1, 2, 4):
            where = folder("our-llama-%d" % kv_heads)
            probe("save-llama", where, kv_heads)
            self.read_by_them(where)

    def read_by_them(self, where):
        model, loading = AutoModelForCausalLM.from_pretrained(where, output_loading_info=True, attn_implementation="eager",
                                                              dtype=torch.float32)
        for problem, names in loading.items():
            self.assertFalse(names, (problem, names))
        self.compare(model.eval(), where)

    def test_a_copy_in_shards(self):
        model, where = their_llama(), folder("llama-original")
        model.save_pretrained(where)
        probe("copy", where, folder("llama-copy"), 20000)
        copy = os.path.join(FOLDER, "llama-copy")
        with open(os.path.join(copy, "model.safetensors.index.json")) as file:
            shards = set(json.load(file)["weight_map"].values())
        self.assertGreater(len(shards), 1)
        found = {name: value for shard in shards for name, value in load_file(os.path.join(copy, shard)).items()}
        expected = load_file(os.path.join(where, "model.safetensors"))
        self.assertEqual(set(found), set(expected))
        for name, value in expected.items():
            self.assertTrue(torch.equal(found[name], value), name)
        self.read_by_them(copy)


if __name__ == "__main__":
    unittest.main()
