"""Bad input: one clear line, a non-zero exit code, nothing overwritten."""
import os
import shutil

import runs


class BadInputTest(runs.TrainTest):
    def fails(self, expected, *flags, code=None, **options):
        """Fails with one line of error."""
        run = self.train(*flags, code=None, **options)
        self.assertNotEqual(run.code, 0, run.out)
        if code is not None:
            self.assertEqual(run.code, code)
        errors = [line for line in run.errors() if "[WARNING]" not in line]
        self.assertEqual(len(errors), 1, errors)
        self.assertRegex(errors[0], expected)
        self.assertNotIn("step=1 ", run.out)  # before any training
        return run

    def test_settings(self):
        table = [
            ("unknown flag --n-layers; did you mean --n-layer", "--n-layers=3"),
            ("--preset=gpt3: expected one of shakespeare-cpu, shakespeare, gpt2", "--preset=gpt3"),
            ("--n-embd=32: must be a multiple of --n-head=3", "--n-head=3"),
            ("--strategy=zero4: expected ddp or zero1 or zero2 or fsdp", "--strategy=zero4"),
            ("--mesh=dp_replicate=2,dp_shard=2: 2 x 2 = 4 ranks, but there are 2", "--mesh=dp_replicate=2,dp_shard=2",
             "--nproc=2", "--strategy=fsdp"),
            ("--mesh=dp=2: no axis \"dp\"", "--mesh=dp=2", "--nproc=2"),
            ("--mesh=dp_shard=2: ddp replicates everything", "--mesh=dp_shard=2"),
            ("--offload-params: expected --offload=DIR", "--offload-params", "--strategy=fsdp"),
            ("--offload-params: zero1 replicates the parameters", "--offload-params", "--offload=.", "--strategy=zero1"),
            ("--dtype=int8: expected float32", "--dtype=int8"),
            ("--device=tpu: expected auto, cpu or cuda", "--device=tpu"),
            ("--global-batch-size=1: 2 data-parallel ranks; expected at least one sample for each", "--global-batch-size=1", "--nproc=2"),
            ("--max-iters.*expected an integer", "--max-iters=many"),
            ("--memory-limit=much: expected a size such as 8G", "--memory-limit=much"),
            ("--memory-limit=inf: expected a size such as 8G", "--memory-limit=inf"),
            ("--peak-flops=fast: expected a number", "--peak-flops=fast"),
            ("--optimizer=lion: expected adamw or muon", "--optimizer=lion"),
            ("--optimizer=muon: not with tp=2 in --mesh", "--optimizer=muon", "--mesh=tp=2", "--nproc=2"),
            ("--optimizer=muon: not with --offload=.", "--optimizer=muon", "--offload=."),
            ("--init-from=resume: expected --resume=DIR or --checkpoint-dir=DIR", "--init-from=resume"),
            ("--checkpoint-interval: expected --checkpoint-dir=DIR", "--checkpoint-interval=3"),
            (r"--lp-levels, --lp-cfactor, --n-layer: 2 levels with coarsening factor 4 do not fit 2 steps", "--mesh=lp=2", "--nproc=2"),
            ("--mesh=ep=2: 1 ranks, but there are 2", "--mesh=ep=2", "--nproc=2"),
            ("--mesh=dp_shard=65536,tp=65536: more ranks than can be counted", "--mesh=dp_shard=65536,tp=65536"),
            ("--n-layer=2147483648: expected at most 100000", "--n-layer=2147483648"),
            ("--moe-experts: expected --moe", "--moe-experts=4"),
            ("--lr-schedule: the learning rate does not decay; expected --lr-decay-iters=N", "--lr-schedule=wsd", "--lr-decay-iters=0"),
            ("--lr-decay-fraction: expected --lr-schedule=wsd", "--lr-decay-fraction=0.5"),
            ("--muon-momentum: expected --optimizer=muon", "--muon-momentum=0.9"),
            ("--keep-last: expected --checkpoint-dir=DIR", "--keep-last=3"),
            ("--reproducible-leaves: expected --reproducible", "--reproducible-leaves=4"),
            ("--resume and --init-from are mutually exclusive", "--resume=x", "--init-from=y"),
        ]
        for expected, *flags in table:
            with self.subTest(flags=flags):
                run = self.fails(expected, *flags, code=2)
                self.assertEqual(run.out, "")  # before any work
        self.assertEqual(os.listdir(self.folder), ["input.txt"])

    def test_cuda_without_a_gpu(self):
        self.fails(r"train_gpt: --device=cuda: LibTorch finds no GPU on \S+ \(rank 0\);.*or use --device=cpu",
                   "--device=cuda", "--nproc=2", code=1)

    def test_text(self):
        self.fails("/nonexistent", "--nproc=1", "--data=/nonexistent")
        self.write("empty.txt", "")
        self.fails("empty.txt", "--nproc=2", data="empty.txt")
        self.write("short.txt", "to be or not to be")
        self.fails("--block-size: the train(ing)? text of 16 tokens is too short", "--nproc=2", data="short.txt")
        # The part for validation is the shorter one.
        self.fails("--block-size: the validation text of .*2000", "--nproc=1", "--block-size=2000")
        self.fails("--block-size.*20000", "--nproc=1", "--block-size=20000")
        self.fails("activation.*transformer.h.7|transformer.h.7", "--nproc=1", "--activation-checkpointing=transformer.h.7")

    def test_memory(self):
        run = self.fails("memory", "--nproc=2", "--memory-limit=100K")
        self.assertIn("Memory plan of a rank: ", run.out)
        # In one process: 16 ranks are not started.
        mesh = ("--mesh=pp=2,dp_shard=4,tp=2", "--strategy=fsdp", "--gradient-accumulation-steps=2")
        run = self.train(*mesh, "--dry-run")
        self.assertRegex(run.out, r"Dry run of a step on 16 ranks: 4 of them in .*")
        self.assertRegex(run.out, r" 0 pp=0,dp_shard=0,tp=0 +4 .* dp_shard [\d.]+, pp [\d.]+, pp_ends [\d.]+, tp [\d.]+")
        self.assertNotIn("step=1 ", run.out)
        self.fails(r"rank 0 needs [\d.]+ GB, but only 0.000 GB are available \(--memory-limit\)", *mesh, "--dry-run", "--memory-limit=100K")

    def test_flags_of_a_run_that_does_not_resume_yet(self):
        """The first start of a job that goes on by the same command."""
        first = ("--nproc=2", "--checkpoint-dir=none", "--resume=auto")
        self.fails("train_gpt: --moe-experts: expected --moe", *first, "--moe-experts=4", outputs="a", code=1)
        self.fails("train_gpt: --lr-decay-fraction: expected --lr-schedule=wsd", *first, "--lr-decay-fraction=0.2", outputs="a", code=1)

    def test_checkpoints(self):
        self.train("--nproc=2", "--strategy=fsdp", "--checkpoint-dir=kept")
        self.fails("--resume: .*nothing|nothing", "--nproc=1", "--resume=nothing", outputs="a")
        self.fails("--resume: .*kept/step-000000008: checkpoint of another run: n_embd is 32 there and 64 here", "--nproc=2", "--resume=kept", "--n-embd=64", outputs="a")
        self.fails("--resume: .*kept/step-000000008.*n_layer is 2 there and 3 here", "--nproc=1", "--resume=kept", "--n-layer=3", outputs="a")
        self.write("other.txt", runs.text_of_words() + "0123")
        self.fails(r"--resume: .*vocabulary is \w+ there and \w+ here|training_tokens is", "--nproc=2", "--resume=kept", data="other.txt", outputs="a")
        self.write("reversed.txt", runs.text_of_words()[::-1])
        self.fails(r"--resume: .*training_tokens_crc32 is \w+ there and \w+ here", "--nproc=2", "--resume=kept", data="reversed.txt",
                   outputs="a")
        folder = self.path("kept/step-000000008")
        shards = sorted(name for name in os.listdir(folder) if "rank" in name or "shard" in name)
        self.assertEqual(len(shards), 2, os.listdir(folder))
        shutil.copytree(folder, self.path("flipped"))
        with open(os.path.join(self.path("flipped"), shards[1]), "r+b") as file:
            file.seek(os.path.getsize(file.name) // 2)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 4]))
        self.fails("--resume: .*flipped", "--nproc=2", "--resume=flipped", outputs="a")
        shutil.copytree(folder, self.path("cut"))
        os.remove(os.path.join(self.path("cut"), shards[0]))
        self.fails(f"cut.*{shards[0]}|{shards[0]}", "--nproc=2", "--resume=cut", outputs="a")
        # The good one is still good.
        self.train("--nproc=1", "--resume=kept", "--max-iters=9", outputs="b")

    def test_places(self):
        self.write("file", "in the way")
        self.fails("--outputs: .*file", "--nproc=1", outputs="file/folder")
        self.fails("--history: .*nonexistent", "--nproc=2", "--history=nonexistent/run.h5")
        self.train("--nproc=1", "--max-iters=2", outputs="twice")
        self.fails("twice/history.h5", "--nproc=1", outputs="twice")
        self.fails("--offload|nonexistent", "--nproc=2", "--strategy=zero1", "--offload=nonexistent", outputs="c")

    def test_initial_model(self):
        self.fails("--init-from: .*nonexistent", "--nproc=2", "--init-from=nonexistent")
        os.mkdir(self.path("model"))
        self.write("model/config.json", "{")
        self.fails("--init-from: .*config.json", "--nproc=1", "--init-from=model")

    def test_numbers_that_are_none(self):
        run = self.train("--nproc=2", "--learning-rate=1e30", "--min-lr=0", "--warmup-iters=0", "--grad-clip=0",
                         "--checkpoint-dir=kept", "--checkpoint-interval=1", "--eval-interval=0", code=1)
        errors = run.errors()
        self.assertEqual(len(errors), 1, errors)
        self.assertRegex(errors[0], r"the (loss|norm of the gradients) is -?(nan|inf) in step \d, after step \d; first "
                                    r"non-finite tensor: (parameter|gradient of) transformer\.\S+; the last good checkpoint "
                                    r"stays in \S+/kept; try a smaller learning rate")
        # The history has the steps up to there, and nobody has asked for them yet.
        run = self.train("--nproc=2", "--learning-rate=1e30", "--min-lr=0", "--warmup-iters=0", "--grad-clip=0", "--eval-interval=0",
                         code=1, outputs="unkept")
        self.assertGreater(len(run.steps()), 0)
        self.assertEqual([float.fromhex(step) for step in self.history("unkept")["step"]], [step["step"] for step in run.steps()])
        # That checkpoint is good.
        self.train("--nproc=1", "--resume=kept", "--max-iters=1", outputs="good")

    def test_other_settings_than_the_checkpoint(self):
        self.train("--nproc=2", "--strategy=fsdp", "--checkpoint-dir=kept")
        for expected, flag in (("n_head is 2 there and 4 here", "--n-head=4"),
                               ("dropout is 0.0 there and 0.1 here", "--dropout=0.1"),
                               ("seed is 1337 there and 5 here", "--seed=5"),
                               ("batch_size_of_all_ranks is 7 there and 8 here", "--global-batch-size=8"),
                               ("weight_decay is 0.1 there and 0.2 here", "--weight-decay=0.2"),
                               ("beta1 is 0.9 there and 0.8 here", "--beta1=0.8"),
                               ("gradient_accumulation_steps is 2 there and 4 here", "--gradient-accumulation-steps=4")):
            with self.subTest(flag=flag):
                self.fails("--resume: .*kept/step-000000008: checkpoint of another run: " + expected, "--nproc=1",
                           "--resume=kept", flag, outputs="a")
        self.fails("batch_size_of_all_ranks is 7 there and 24 here", "--nproc=2", "--resume=kept", "--batch-size=12",
                   "--global-batch-size=0", outputs="a")


if __name__ == "__main__":
    runs.main()
