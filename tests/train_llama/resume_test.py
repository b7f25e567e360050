"""The same losses on any ranks, strategies and meshes; runs that were interrupted go on with the same bits."""
import os
import re

import llama_runs
import runs

RUNS = [["--nproc=2"], ["--nproc=2", "--strategy=ddp"], ["--nproc=3", "--strategy=zero1"],
        ["--nproc=4", "--mesh=dp_replicate=2,dp_shard=2", "--activation-checkpointing=full"], ["--mesh=pp=2"],
        ["--mesh=tp=2"]]


class ResumeTest(llama_runs.LlamaTest):
    def test_double_precision(self):
        for data in ([], self.TEXT):
            self.train("--nproc=1", "--dtype=float64", *data, outputs="one%d" % len(data))
            one = self.numbers("one%d" % len(data))
            for count, mesh in enumerate(RUNS):
                with self.subTest(mesh=mesh, data=data):
                    outputs = f"run{len(data)}_{count}"
                    self.train(*mesh, "--dtype=float64", *data, outputs=outputs)
                    other = self.numbers(outputs)
                    for x, y in zip(one["loss"], other["loss"], strict=True):
                        x, y = float.fromhex(x), float.fromhex(y)
                        self.assertLessEqual(abs(x - y), 1e-12 * x)  # as in tests/train_gpt/strategies_test

    def test_reproducible(self):
        """Every bit in float32 on any mesh, and other bits without the flag."""
        flags = ["--reproducible", "--global-batch-size=16", "--grad-clip=0.1", "--max-iters=5"]

        def trained(name, *mesh):
            self.train(*flags, *mesh, "--save-model=" + name, outputs="out_" + name)
            with open(self.path(name + "/model.safetensors"), "rb") as file:
                return self.numbers("out_" + name), file.read()

        one = trained("one", "--nproc=1")
        for count, mesh in enumerate((["--mesh=dp_replicate=2,dp_shard=2"], ["--mesh=pp=2,dp_replicate=2", "--strategy=ddp"],
                                      ["--mesh=pp=2", "--pipeline-schedule=gpipe", "--activation-checkpointing=full"])):
            with self.subTest(mesh=mesh):
                self.assertEqual(trained(f"run{count}", *mesh), one)
        self.assertNotEqual(trained("plain", "--nproc=2", "--no-reproducible"), one)

    def test_reproducible_refuses_split_products(self):
        for axis in ("tp", "cp"):
            run = self.train("--reproducible", f"--mesh={axis}=2", code=2)
            self.assertEqual(run.errors(), [f"train_llama: --reproducible: not with {axis}=2 in --mesh, which splits products; "
                                            "expected pp, dp_replicate and dp_shard"])

    def test_same_bits(self):
        for ranks in (1, 2):
            for data in ([], self.TEXT):
                with self.subTest(ranks=ranks, data=data):
                    case = f"{ranks}_{len(data)}"
                    flags = [f"--nproc={ranks}", "--checkpoint-interval=3", *data]
                    self.train(f"--nproc={ranks}", *data, outputs="whole" + case)
                    whole = self.numbers("whole" + case)
                    self.train(*flags, "--checkpoint-dir=kept" + case, "--keep-last=0", outputs="first" + case)
                    self.assertEqual(self.numbers("first" + case), whole)  # a checkpoint changes no bit
                    # Sizes come from the checkpoint.
                    run = self.train(f"--nproc={ranks}", *data[:1], f"--resume=kept{case}/step-000000003", "--no-plots",
                                     small=[], outputs="rest" + case)
                    self.assertIn("Resuming after step 3", run.out)
                    self.assertNotIn("with other settings", run.out)
                    self.assertEqual([step["iter"] for step in run.steps()], [3, 4, 5, 6, 7])
                    self.assertEqual(self.numbers("rest" + case), {name: values[3:] for name, values in whole.items()})

    def test_evaluation_alone(self):
        estimates = r"estimates after step (\d+): (train_loss=\S+ val_loss=\S+), 2 x (\d+) batches"
        run = self.train("--nproc=2", *self.TEXT, "--checkpoint-dir=kept", "--save-model=saved")
        trained = re.findall(estimates, run.out)
        self.assertEqual([step for step, *_ in trained], ["0", "4", "8"])
        for begin, step in (("--resume=kept", "8"), ("--init-from=saved", "0")):
            run = self.train("--nproc=2", *self.TEXT, begin, "--eval-only", outputs="none")
            self.assertEqual(re.findall(estimates, run.out), [(step, *trained[-1][1:])])
            self.assertEqual(run.steps(), [])
        self.assertFalse(os.path.exists(self.path("none")))

    def test_other_settings_than_the_checkpoint(self):
        self.train("--nproc=2", "--checkpoint-dir=kept")
        for expected, *flags in (("n_kv_heads is 2 there and 4 here", "--n-kv-heads=4"),
                                 ("rope_theta is 10000.0 there and 500.0 here", "--rope-theta=500"),
                                 ("vocab_size is 50 there and 60 here", "--vocab-size=60"),
                                 ("training_tokens is 1048576 there and|vocabulary is 00000000 there and", "--data=input.txt")):
            with self.subTest(flags=flags):
                run = self.train("--nproc=1", "--resume=kept", *flags, code=None, outputs="a")
                self.assertNotEqual(run.code, 0)
                self.assertRegex(run.err, "^train_llama: --resume: .*kept/step-000000008: checkpoint of another run: (" + expected + ")")
                self.assertEqual(len(run.errors()), 1)


if __name__ == "__main__":
    runs.main()
