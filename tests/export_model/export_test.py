"""What export_model writes is what --save-model writes at the end of the same run, and what transformers loads."""
import os

import transformers

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
