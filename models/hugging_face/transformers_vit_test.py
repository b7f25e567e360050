"""Compares ViTs with Transformers on the same files: transformers_vit_test.py PROBE."""

import json
import os
import subprocess
import sys
import unittest

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
import torch
from safetensors.torch import load_file
from transformers import AutoModelForImageClassification, ViTConfig, ViTForImageClassification

PROBE = os.path.abspath(sys.argv.pop(1))
FOLDER = os.path.join(os.environ["TEST_TMPDIR"], "vit")
FLOAT32, FLOAT64 = 2.0**-24, 2.0**-53
LAYERS, WIDTH, CLASSES = 2, 32, 7
# Both form the same sums in different orders. The longest chain of a block: norms, products of 32, 32, 32 and 44
# terms, attention of 8 and 10; before and behind them 48, then norm and head. Values are below 8, norms scale by less
# than 4.
LENGTH = LAYERS * (32 + 32 + 8 + 10 + 32 + 32 + 32 + 44) + 48 + 32 + 32
BOUND = LENGTH * 8 * 4
# Our names, and those of Transformers in memory. Files have the names of earlier versions, which both read and write.
NAMES = {"cls_token": "vit.embeddings.cls_token", "pos_embed": "vit.embeddings.position_embeddings",
         "patch_embed.proj": "vit.embeddings.patch_embeddings.projection", "norm": "vit.layernorm", "head": "classifier"} | {
    "blocks.%d.%s" % (layer, ours_): "vit.layers.%d.%s" % (layer, theirs_) for layer in range(LAYERS)
    for ours_, theirs_ in {"norm1": "layernorm_before", "norm2": "layernorm_after", "attn.proj": "attention.o_proj",
                           "mlp.fc1": "mlp.fc1", "mlp.fc2": "mlp.fc2"}.items()}


def folder(name):
    path = os.path.join(FOLDER, name)
    os.makedirs(path, exist_ok=True)
    return path


def probe(*arguments):
    return subprocess.run([PROBE, *map(str, arguments)], check=True, stderr=subprocess.PIPE, text=True)


# Their "eager" attention has its softmax in float32, whatever type a model has.
def theirs(**options):
    model = ViTForImageClassification(ViTConfig(
        hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=4, intermediate_size=44, image_size=12, patch_size=4,
        num_labels=CLASSES, attn_implementation="sdpa", **options))
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0 if parameter.dim() >= 2 else 0.8, 0.2)
    return model.eval()


def batch():
    torch.manual_seed(4)
    return torch.randn(3, 3, 12, 12), torch.tensor([5, 0, 6])


def ours(where, dtype):
    from safetensors.torch import save_file
    inputs, targets = batch()
    save_file({"inputs": inputs, "targets": targets}, os.path.join(FOLDER, "batch.safetensors"))
    out = os.path.join(FOLDER, "out.safetensors")
    probe("run", where, os.path.join(FOLDER, "batch.safetensors"), dtype, out)
    return load_file(out)


def split(found):
    """Returns our parameters under the names of Transformers."""
    parts = {}
    for name, value in found.items():
        stem, dot, kind = name.rpartition(".") if name.endswith((".weight", ".bias")) else (name, "", "")
        if stem.endswith("attn.qkv"):
            layer = stem.split(".")[1]
            for part, third in zip("qkv", value.chunk(3)):
                parts["vit.layers.%s.attention.%s_proj.%s" % (layer, part, kind)] = third
        else:
            parts[NAMES[stem] + dot + kind] = value
    return parts


class Vit(unittest.TestCase):
    def compare(self, model, where, dtype, eps):
        found = ours(where, dtype)
        inputs, targets = batch()
        model = model.double()
        logits = model(inputs.double()).logits
        loss = torch.nn.functional.cross_entropy(logits, targets)
        model.zero_grad()
        loss.backward()
        self.assertGreater(logits.std().item(), 0.3)
        self.assertLess((found.pop("logits") - logits).abs().max().item(), BOUND * eps)
        self.assertLess(abs(found.pop("loss").item() - loss.item()), BOUND * eps)
        found, gradients = split(found), {name: parameter.grad for name, parameter in model.named_parameters()}
        self.assertEqual(set(found), set(gradients))
        for name, expected in gradients.items():
            # The way back is as long as the way forward.
            self.assertLess((found[name] - expected).abs().max().item(),
                            2 * BOUND * eps * max(1.0, expected.abs().max().item()), name)
            # A bias of the keys moves all scores of a query alike.
            if not name.endswith("k_proj.bias"):
                self.assertGreater(expected.norm().item(), 1e-4, name)

    def test_theirs(self):
        for bias in (True, False):
            for dtype, eps in (("float64", FLOAT64), ("float32", FLOAT32)):
                model, where = theirs(qkv_bias=bias, layer_norm_eps=0.01), folder("theirs")
                model.save_pretrained(where)
                self.compare(model, where, dtype, eps)

    def test_theirs_with_their_defaults_in_shards_and_half_precision(self):
        model, where = theirs().bfloat16(), folder("shards")
        model.save_pretrained(where, max_shard_size="10KB")
        self.assertTrue(os.path.exists(os.path.join(where, "model.safetensors.index.json")))
        self.compare(model, where, "float64", FLOAT64)

    def test_ours(self):
        for bias in ("yes", "no"):
            where = folder("ours-" + bias)
            probe("save-vit", where, bias)
            model, loading = AutoModelForImageClassification.from_pretrained(
                where, output_loading_info=True, attn_implementation="sdpa", dtype=torch.float32)
            for problem, names in loading.items():
                self.assertFalse(names, (problem, names))
            self.compare(model.eval(), where, "float64", FLOAT64)
            self.assertEqual(model.config.id2label[6], "LABEL_6")

    def test_a_copy_has_the_same_tensors(self):
        model, where = theirs(), folder("original")
        model.save_pretrained(where)
        probe("copy", where, folder("copy"), 10**9)
        found, expected = (load_file(os.path.join(path, "model.safetensors")) for path in (folder("copy"), where))
        self.assertEqual(set(found), set(expected))
        for name, value in expected.items():
            self.assertTrue(torch.equal(found[name], value), name)
        with open(os.path.join(folder("copy"), "config.json")) as file:
            config = ViTConfig(**json.load(file))
        for key in ("image_size", "patch_size", "num_channels", "hidden_size", "num_hidden_layers", "num_attention_heads",
                    "intermediate_size", "hidden_act", "layer_norm_eps", "qkv_bias", "num_labels"):
            self.assertEqual(getattr(config, key), getattr(model.config, key), key)


if __name__ == "__main__":
    unittest.main()
