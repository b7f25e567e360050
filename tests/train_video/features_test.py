"""Features of frames against torchvision's network and its preset, and how other programs read them."""
import glob
import os

import numpy
import torch
import torchvision
import xarray
from PIL import Image
from safetensors.torch import save_file
from torchvision.transforms._presets import ImageClassification

import runs


class FeaturesTest(runs.VideoTest):
    def weights(self):
        """A network with random weights and statistics, with values near one; in files of both kinds."""
        torch.manual_seed(7)
        model = torchvision.models.resnet18().eval()
        with torch.no_grad():
            for part in model.modules():
                if isinstance(part, torch.nn.BatchNorm2d):
                    part.weight.uniform_(0.3, 0.9)
                    part.bias.normal_(0, 0.2)
                    part.running_mean.normal_(0, 0.2)
                    part.running_var.uniform_(0.5, 2)
        save_file(model.state_dict(), self.path("weights.safetensors"))
        torch.jit.script(model).save(self.path("weights.pt"))
        return model

    def expected(self, model, folder, frames, size, step):
        """By torchvision alone: its preset on tensors, whose resizing is not rounded in between."""
        preset = ImageClassification(crop_size=size, resize_size=size)
        names = sorted(os.listdir(folder), key=lambda name: int(name.split(".")[0]))[::step][:frames]
        pictures = [torch.from_numpy(numpy.array(Image.open(os.path.join(folder, name)))).permute(2, 0, 1) for name in names]
        pictures = [torch.zeros_like(pictures[0])] * (frames - len(pictures)) + pictures
        inputs = torch.stack([preset(picture) for picture in pictures])
        with torch.no_grad():
            features = model.double()(inputs.double()).numpy()
            # And what a change of every pixel by a level, up or down at random, does to them.
            level = (inputs + torch.randn(inputs.shape).sign() / 255 / 0.225).double()
            return features, numpy.abs(model(level).numpy() - features).max()

    def test_torchvision(self):
        self.write_videos()
        model = self.weights()
        # Sums of a network's longest path, as in models/resnet/torchvision_test.py.
        rounding = 2.0**-24 * (147 + 9 * (5 * 64 + 4 * 128 + 4 * 256 + 3 * 512) + 516)
        for size, step in ((32, 1), (40, 2)):  # resized, and as they are
            features = f"features-{size}"
            self.train("--epochs=1", "--data=" + self.path("videos"), "--weights=" + self.path("weights.safetensors"),
                       f"--frame-size={size}", f"--frame-step={step}", features=features)
            found = self.features(features)
            self.assertEqual(len(found), 6)
            for name, (values, made_from) in found.items():
                self.assertEqual(values.shape, (8, 1000))
                self.assertRegex(made_from, rf"^resnet18, weights [0-9a-f]{{16}}, frames=8 step={step} size={size} pixels=2, video \S+$")
                expected, level = self.expected(model, self.path("videos/" + name), 8, size, step)
                self.assertGreater(expected.std(), 0.1)
                # Where a resized pixel lies within rounding of a half, the two sides may differ by a level there. Of one in
                # a thousand pixels the effect is sqrt(1 / 1000) of that of all; three times this.
                bound = rounding * max(1, numpy.abs(expected).max()) + (level / 10 if size == 32 else 0)
                self.assertLess(numpy.abs(values - expected).max(), bound, (name, size))
        # The same weights from another file are the same features.
        run = self.train("--epochs=1", "--data=" + self.path("videos"), "--weights=" + self.path("weights.pt"), "--frame-size=40",
                         "--frame-step=2", features="features-40")
        self.assertEqual(run.work(), (0, 6))

    def test_xarray(self):
        self.train("--epochs=1", "--percent-data=0.3", ranks=1)
        paths = glob.glob(self.path("features") + "/*/**/*.h5", recursive=True)
        self.assertTrue(paths)
        for path in paths:
            with xarray.open_dataset(path, engine="h5netcdf") as data:
                self.assertEqual(data["features"].dims, ("frame", "feature"))
                self.assertEqual(data["features"].shape, (8, 1000))
                self.assertIn("random weights", data.attrs["made_from"])


if __name__ == "__main__":
    runs.main()
