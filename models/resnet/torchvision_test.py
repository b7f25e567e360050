"""Compares ResNets with torchvision for the same weights: torchvision_test.py PROBE."""

import os
import subprocess
import sys
import unittest

import torch
import torchvision
from safetensors.torch import load_file, save_file

PROBE = os.path.abspath(sys.argv.pop(1))
FOLDER = os.environ["TEST_TMPDIR"]
EPSILON = {"float32": 2.0**-24, "float64": 2.0**-53}
# Number of summed products along the longest path: stem, blocks, mean and fc. Both sum in different orders.
LENGTH = {
    "resnet18": 147 + 9 * (4 * 64 + 64 + 3 * 128 + 128 + 3 * 256 + 256 + 3 * 512) + 4 + 512,
    "resnet34": 147 + 9 * (6 * 64 + 64 + 7 * 128 + 128 + 11 * 256 + 256 + 5 * 512) + 4 + 512,
    "resnet50": 147 + 3 * 11 * 64 + 4 * 11 * 128 * 2 + 6 * 11 * 256 * 2 + 3 * 11 * 512 * 2 + 4 + 2048,
}


def path(name):
    return os.path.join(FOLDER, name)


def probe(*arguments):
    return subprocess.run([PROBE, *arguments], stderr=subprocess.PIPE, text=True)


def theirs(name):
    """Random weights and statistics, with values that stay near one."""
    torch.manual_seed(7)
    model = getattr(torchvision.models, name)()
    with torch.no_grad():
        for part in model.modules():
            if isinstance(part, torch.nn.BatchNorm2d):
                part.weight.uniform_(0.3, 0.9)
                part.bias.normal_(0, 0.2)
                part.running_mean.normal_(0, 0.2)
                part.running_var.uniform_(0.5, 2)
    return model.eval()


def pixels():
    torch.manual_seed(8)
    return torch.randint(0, 256, (2, 64, 48, 3), dtype=torch.uint8)


def preset(frames):
    """Returns torchvision's preset inputs, for images that need no resizing."""
    made = torchvision.models.ResNet18_Weights.DEFAULT.transforms()
    functional = torchvision.transforms.functional
    return functional.normalize(functional.convert_image_dtype(frames.permute(0, 3, 1, 2), torch.float), made.mean, made.std)


class ResNet(unittest.TestCase):
    def compare(self, name, weights, model, dtype):
        frames = pixels()
        save_file({"pixels": frames}, path("frames.safetensors"))
        found = probe(name, path(weights), path("frames.safetensors"), dtype, path("out.safetensors"))
        self.assertEqual(found.returncode, 0, found.stderr)
        ours = load_file(path("out.safetensors"))
        inputs = preset(frames)
        # Two roundings of numbers below 2.7, with a constant of one more.
        self.assertLess((ours["inputs"] - inputs).abs().max().item(), 3 * 2.7 * 2**-23)
        with torch.no_grad():
            expected = model.double()(ours["inputs"].double())
        self.assertGreater(expected.std().item(), 0.1)
        scale = max(1.0, expected.abs().max().item())
        self.assertLess((ours["scores"] - expected).abs().max().item(), LENGTH[name] * scale * EPSILON[dtype], (name, dtype))

    def test_scores(self):
        for name in ("resnet18", "resnet34", "resnet50"):
            model = theirs(name)
            save_file(model.state_dict(), path(name + ".safetensors"))
            for dtype in EPSILON:
                self.compare(name, name + ".safetensors", model, dtype)

    def test_torch_script(self):
        model = theirs("resnet18")
        torch.jit.script(model).save(path("resnet18.pt"))
        self.compare("resnet18", "resnet18.pt", model, "float64")

    def refuse(self, weights, expected, name="resnet18"):
        save_file({"pixels": pixels()}, path("frames.safetensors"))
        found = probe(name, path(weights), path("frames.safetensors"), "float32", path("out.safetensors"))
        self.assertEqual(found.returncode, 1)
        self.assertRegex(found.stderr, expected)
        self.assertEqual(found.stderr.count("\n"), 1, found.stderr)

    def test_other_files(self):
        state = theirs("resnet18").state_dict()
        save_file({name: value for name, value in state.items() if name != "layer3.1.bn2.running_var"}, path("less.safetensors"))
        self.refuse("less.safetensors", r"less.safetensors: .*layer3.1.bn2.running_var")
        save_file({**state, "more": torch.zeros(1)}, path("more.safetensors"))
        self.refuse("more.safetensors", r'more.safetensors: holds "more", which this ResNet does not have')
        save_file(state, path("18.safetensors"))
        self.refuse("18.safetensors", r"18.safetensors: .*", name="resnet50")
        self.refuse("none.safetensors", r"none.safetensors: .*No such file")
        torch.jit.script(theirs("resnet34")).save(path("34.pt"))
        self.refuse("34.pt", r'34.pt: holds "layer\S+", which this ResNet does not have')
        self.refuse("34.pt", r'34.pt: "fc.weight" has shape \[1000, 512\]; expected \[1000, 2048\]', name="resnet50")
        torch.save(state, path("state.pt"))
        self.refuse("state.pt", r"state.pt: cannot be read as TorchScript .*safetensors.torch.save_file")
        with open(path("cut.pt"), "wb") as cut, open(path("34.pt"), "rb") as whole:
            cut.write(whole.read()[:100000])
        self.refuse("cut.pt", r"cut.pt: cannot be read as TorchScript")
        self.refuse("none.pt", r"none.pt: no such file")


if __name__ == "__main__":
    unittest.main()
