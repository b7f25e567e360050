"""What export_model writes is what --save-model writes at the end of the same run, and what transformers loads."""
import json
import os
import pathlib
import re

import numpy
import safetensors.torch
import torch
import transformers
from PIL import Image

import program_runs

EXPORT, GPT, LLAMA, VIT = program_runs.programs(4)

ALL = ["--nproc=2", "--strategy=fsdp", "--no-plots", "--no-trace", "--max-iters=2", "--batch-size=2", "--checkpoint-dir=kept",
       "--checkpoint-interval=2", "--outputs=out_kept"]
TEXT = ["--eval-interval=0", "--sample-tokens=0"]
RUNS = {
    "gpt": [GPT, *ALL, *TEXT, "--data=input.txt", "--n-layer=1", "--n-head=2", "--n-embd=16", "--block-size=8", "--bias"],
    "llama": [LLAMA, *ALL, *TEXT, "--n-layers=1", "--dim=16", "--n-heads=2", "--n-kv-heads=1", "--hidden=24", "--vocab-size=50",
              "--seq-length=8"],
    "vit": [VIT, *ALL, "--fake-samples=8", "--image-size=16", "--patch-size=8", "--dim=16", "--depth=1", "--heads=2", "--head-dim=8",
            "--mlp-dim=32", "--classes=3", "--pool=class", "--qkv-bias", "--no-evaluate"],
}
CLASSES = {"gpt": transformers.GPT2LMHeadModel, "llama": transformers.LlamaForCausalLM, "vit": transformers.ViTForImageClassification}


class ExportTest(program_runs.ProgramTest):
    def setUp(self):
        super().setUp()
        with open(self.path("input.txt"), "w", encoding="utf-8") as file:
            file.write("to be or not to be, that is the question\n" * 40)

    def environment(self):
        return {**super().environment(), "XDG_CACHE_HOME": self.shared}

    def bytes_of(self, *path):
        with open(self.path(os.path.join(*path)), "rb") as file:
            return file.read()

    def test_files_are_those_of_save_model(self):
        for name, command in RUNS.items():
            with self.subTest(name):
                os.mkdir(self.path(name))
                command = [word.replace("kept", f"kept_{name}") for word in command]
                self.finish(self.start([*command, f"--save-model={name}"]))
                run = self.finish(self.start([EXPORT, f"--checkpoint=kept_{name}", f"--out=exported_{name}"]))
                self.assertRegex(run.out, rf"kept_{name}/step-000000002: model written to .*/exported_{name}\n\Z")
                self.assertEqual(sorted(os.listdir(self.path(name))), sorted(os.listdir(self.path(f"exported_{name}"))))
                for file in os.listdir(self.path(name)):
                    self.assertEqual(self.bytes_of(name, file), self.bytes_of(f"exported_{name}", file), file)
                _, found = CLASSES[name].from_pretrained(self.path(f"exported_{name}"), output_loading_info=True)
                self.assertFalse(found["missing_keys"] or found["unexpected_keys"] or found["mismatched_keys"], found)

    def test_tokens_that_begin_and_end_texts(self):
        """Those of an imported model whose tokenizer names none: in its checkpoints, what they resume to, and the files of both."""
        ids = {"bos_token_id": 3, "eos_token_id": [4, 700]}
        run = [word for word in RUNS["gpt"] if not word.startswith(("--checkpoint-dir", "--outputs"))]
        os.mkdir(self.path("model"))
        self.finish(self.start([*run, "--outputs=out", "--checkpoint-dir=kept", "--save-model=model"]))
        with open(self.path("model/config.json"), encoding="utf-8") as file:
            config = json.load(file)
        self.assertEqual({key: config[key] for key in ids}, {"bos_token_id": None, "eos_token_id": None})
        with open(self.path("model/config.json"), "w", encoding="utf-8") as file:
            json.dump(config | ids, file)
        self.finish(self.start([*run, "--outputs=out_begun", "--init-from=model", "--checkpoint-dir=begun", "--save-model=saved_begun"]))
        self.finish(self.start([*run, "--outputs=out_again", "--resume=begun", "--max-iters=4", "--checkpoint-dir=again",
                                "--save-model=saved_again"]))
        for name in ("begun", "again"):
            self.finish(self.start([EXPORT, f"--checkpoint={name}", f"--out=exported_{name}"]))
            for folder in (f"saved_{name}", f"exported_{name}"):
                with open(self.path(folder + "/config.json"), encoding="utf-8") as file:
                    config = json.load(file)
                self.assertEqual({key: config[key] for key in ids}, ids, folder)

    def test_images_as_transformers_prepares_them(self):
        """The test that train_vit prints, by transformers, of images whose sizes differ."""
        random = numpy.random.default_rng(3)
        # Sides of which 16/18 are whole pixels, and long ones that are whole where the short one is 18.
        for k, size in enumerate(((72, 96), (90, 90), (144, 108), (36, 54), (72, 72), (108, 144))):
            for part in ("train", "val"):
                folder = self.path(f"photos/{part}/{'ab'[k % 2]}")
                os.makedirs(folder, exist_ok=True)
                coarse = Image.fromarray(random.integers(0, 256, (6, 8, 3)).astype(numpy.uint8))
                coarse.resize(size, Image.Resampling.BICUBIC).save(f"{folder}/{k}.png")
        flags = [word for word in RUNS["vit"]
                 if not word.startswith(("--fake-samples", "--no-evaluate", "--classes", "--checkpoint"))]
        flags += ["--data=photos", "--dtype=float64"]
        self.finish(self.start([*flags, "--learning-rate=0.1", "--save-model=saved"]))
        # A model that sees more in its images than one that was trained for two steps.
        weights = safetensors.torch.load_file(self.path("saved/model.safetensors"))
        for name in ("vit.embeddings.patch_embeddings.projection.weight", "classifier.weight"):
            weights[name] *= 10
        safetensors.torch.save_file(weights, self.path("saved/model.safetensors"), metadata={"format": "pt"})
        loss, = self.losses_of(*flags, "--init-from=saved", "--eval-only")
        processor = transformers.AutoImageProcessor.from_pretrained(self.path("saved"))
        model = transformers.ViTForImageClassification.from_pretrained(self.path("saved"), dtype=torch.float64).eval()
        paths = sorted(pathlib.Path(self.path("photos/val")).rglob("*.png"))
        labels = torch.tensor(["ab".index(path.parent.name) for path in paths])

        def distance(inputs):
            with torch.no_grad():
                return abs(torch.nn.functional.cross_entropy(model(inputs.double()).logits, labels).item() - loss)
        inputs = processor([Image.open(path).convert("RGB") for path in paths], return_tensors="pt")["pixel_values"]
        # transformers resizes before it cuts, to 8 bits. Another mean, or the whole image squeezed, is far away.
        self.assertLess(distance(inputs), 0.03)
        self.assertGreater(distance(inputs + 0.1), 0.3)
        mean, deviation = (torch.tensor(numbers).view(3, 1, 1) for numbers in (processor.image_mean, processor.image_std))
        squeezed = [numpy.asarray(Image.open(path).convert("RGB").resize((16, 16), Image.Resampling.BILINEAR)) for path in paths]
        pixels = torch.tensor(numpy.stack(squeezed)).permute(0, 3, 1, 2) / 255
        self.assertGreater(distance((pixels - mean) / deviation), 0.2)
        with open(self.path("saved/preprocessor_config.json"), encoding="utf-8") as file:
            config = json.load(file)
        with open(self.path("saved/preprocessor_config.json"), "w", encoding="utf-8") as file:
            json.dump(config | {"image_mean": [0.1, 0.2, 0.3]}, file)
        moved = self.finish(self.start([*flags, "--init-from=saved", "--eval-only"]))
        self.assertIn("preprocessor_config.json has them: mean 0.1,0.2,0.3, deviation 0.229,0.224,0.225", moved.out)
        self.assertGreater(abs(float(re.findall(r"test_loss=(\S+)", moved.out)[0]) - loss), 0.3)
        # A model whose images are squeezed, and the file that is saved of it.
        transformers.ViTImageProcessor(size={"height": 16, "width": 16}, resample=2).save_pretrained(self.path("saved"))
        loss, = self.losses_of(*flags, "--init-from=saved", "--eval-only", "--save-model=again")
        for folder in ("saved", "again"):
            processor = transformers.AutoImageProcessor.from_pretrained(self.path(folder))
            inputs = processor([Image.open(path).convert("RGB") for path in paths], return_tensors="pt")["pixel_values"]
            self.assertLess(distance(inputs), 0.03)
        with open(self.path("saved/preprocessor_config.json"), "w", encoding="utf-8") as file:
            file.write("{")
        broken = self.finish(self.start([*flags, "--init-from=saved", "--eval-only"]), 1)
        self.assertRegex(broken.err, r"^train_vit: --init-from: .*saved/preprocessor_config.json: is not a JSON object\n$")

    def losses_of(self, *command):
        return [float(loss) for loss in re.findall(r"test_loss=(\S+)", self.finish(self.start(command)).out)]

    def test_settings_that_do_not_fit(self):
        """Of a checkpoint whose checksums are right: no model of these sizes is made."""
        self.finish(self.start(RUNS["vit"]))
        index = self.path("kept/step-000000002/index.h5")
        for wrong, right, message in (({"depth": "2147483647"}, {"depth": "1"}, "asks? for|layers"),
                                      ({"patch_size": "5"}, {"patch_size": "8"}, "patch")):
            with self.subTest(**wrong):
                program_runs.change_settings(index, **wrong)
                run = self.finish(self.start([EXPORT, "--checkpoint=kept", "--out=out"]), 1)
                self.assertEqual(len(run.err.splitlines()), 1, run.err)
                self.assertRegex(run.err, f"kept/step-000000002: .*({message})")
                program_runs.change_settings(index, **right)
        self.finish(self.start([EXPORT, "--checkpoint=kept", "--out=out"]))

    def test_bad_input(self):
        os.mkdir(self.path("empty"))
        for expected, code, flags in [
                ("expected --checkpoint=DIR and --out=DIR", 2, []),
                ("nothing: ", 1, ["--checkpoint=nothing", "--out=out"]),
                ("empty: ", 1, ["--checkpoint=empty", "--out=out"])]:
            with self.subTest(flags=flags):
                run = self.finish(self.start([EXPORT, *flags]), code)
                self.assertEqual(len(run.err.splitlines()), 1, run.err)
                self.assertIn(expected, run.err)
                self.assertFalse(os.path.exists(self.path("out")))


if __name__ == "__main__":
    program_runs.main(4)
