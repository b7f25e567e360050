"""A run that was interrupted and resumed is bitwise identical to an uninterrupted one."""
import os
import re
import signal

import numpy as np

import runs


class ResumeTest(runs.CnnTest):
    def whole(self, *flags, name="whole"):
        run, model = self.model("--epochs=3", *flags, name=name)
        return run.epochs(), model

    def compare(self, whole, run, model):
        epochs, expected = whole
        self.assert_same_bits(expected, model)
        resumed = run.epochs()
        self.assertGreater(len(resumed), 0)
        for a, b in zip(epochs[-len(resumed):], resumed, strict=True):
            self.assertEqual({**a, "dt": 0}, {**b, "dt": 0})

    def test_after_an_epoch(self):
        for name, flags in (("plain", []), ("mixed", ["--strategy=ddp", "--dtype=bfloat16"])):
            with self.subTest(flags=flags):
                folder = self.path(name + "_kept")
                self.train("--epochs=1", "--checkpoint-dir=" + folder, *flags, outputs=name + "_first")
                run, model = self.model("--epochs=3", "--checkpoint-dir=" + folder, "--resume=" + folder, *flags, name=name)
                self.assertIn("Resuming at epoch 2, sample 0, step 9", run.out)
                self.compare(self.whole(*flags, name=name + "_whole"), run, model)

    def test_evaluation_alone(self):
        run = self.train("--epochs=2", "--checkpoint-dir=" + self.path("kept"))
        last = re.sub("dt=.* test_loss", "test_loss", run.logged("epoch=")[-1])
        run = self.train("--resume=" + self.path("kept"), "--eval-only", outputs="none")
        self.assertEqual(run.logged("epoch="), [last])
        self.assertFalse(os.path.exists(self.path("none")))

    def test_evaluation_alone_saves_the_model(self):
        _, trained = self.model("--checkpoint-dir=" + self.path("kept"), name="trained")
        run, evaluated = self.model("--resume=" + self.path("kept"), "--eval-only", name="evaluated")
        self.assert_same_bits(trained, evaluated)
        self.assertNotRegex(run.out, "epochs? took")

    def test_offloaded_moments(self):
        flags = ["--strategy=zero1", "--offload=" + self.shared]
        folder = self.path("kept")
        self.train("--epochs=1", "--checkpoint-dir=" + folder, *flags, outputs="first")
        run, model = self.model("--epochs=3", "--resume=" + folder, *flags)
        self.compare(self.whole("--strategy=zero1"), run, model)

    def test_in_the_midst_of_an_epoch(self):
        kept = "--checkpoint-dir=" + self.path("kept")
        self.train("--epochs=2", kept, "--checkpoint-interval=5", "--keep-last=0")
        self.assertEqual(sorted(os.listdir(self.path("kept"))),
                         ["latest", "step-000000005", "step-000000010", "step-000000015", "step-000000018"])
        run, model = self.model("--epochs=3", "--resume=" + self.path("kept/step-000000005"))
        self.assertIn("Resuming at epoch 1, sample 80, step 5", run.out)
        self.compare(self.whole(), run, model)
        # An epoch's sums have the steps before the interruption; on another mesh they are not known.
        self.train("--epochs=2", "--resume=" + self.path("kept/step-000000005"), "--strategy=ddp", outputs="other")
        whole, rest, other = (self.history(name) for name in ("whole_out", "model_out", "other"))
        self.assertEqual(list(rest["comm_bytes_dp_shard"]), list(whole["comm_bytes_dp_shard"]))
        self.assertEqual([np.isnan(sent) for sent in other["comm_bytes_dp_replicate"]], [True, False])

    def test_history_goes_on(self):
        history = "--history=" + self.path("run.h5")
        self.train("--epochs=1", "--checkpoint-dir=" + self.path("kept"), history)
        self.train("--epochs=3", "--resume=" + self.path("kept"), history)
        os.mkdir(self.path("again"))
        os.rename(self.path("run.h5"), self.path("again/history.h5"))
        numbers = self.history("again")
        self.assertEqual(list(numbers["epoch"]), [1, 2, 3])

    def test_on_another_mesh_and_strategy(self):
        self.train("--dtype=float64", "--epochs=1", "--checkpoint-dir=" + self.path("kept"), "--strategy=zero1")
        _, model = self.model("--dtype=float64", "--epochs=3", "--resume=" + self.path("kept"), "--batch-size=16", ranks=1)
        _, whole = self.model("--dtype=float64", "--epochs=3", "--batch-size=16", ranks=1, name="one")
        self.assertLess(self.difference(whole, model), 1e-10)  # as in ranks_test.py

    def test_settings_come_from_the_checkpoint(self):
        flags = ["--seed=7", "--dropout1=0.1", "--weight-decay=0.1", "--lr=2e-3", "--gamma=0.5", "--dtype=float64"]
        self.train("--epochs=1", "--checkpoint-dir=" + self.path("kept"), *flags)
        run, model = self.model("--epochs=3", "--resume=" + self.path("kept"))
        self.compare(self.whole(*flags), run, model)
        run = self.train("--epochs=2", "--resume=" + self.path("kept"), "--lr=1e-4")
        self.assertIn("resuming with other settings than before: epochs 1 -> 2, lr 0.002 -> 0.0001", run.out)

    def test_one_command_goes_on(self):
        """Killed after the start, then after a checkpoint: the same command resumes."""
        command = ["--checkpoint-dir=" + self.path("kept"), "--resume=auto", "--checkpoint-interval=7", "--batch-size=8",
                   "--data=" + self.images, "--no-plots", "--outputs=" + self.path("out"), "--nproc=1", "--epochs=3"]
        lines = ["model=", "Saved model to: "]
        for expected in lines:
            process = self.start([flag.replace("--epochs=3", "--epochs=100000") for flag in command])
            out = []
            while not any(expected in line for line in out):
                line = process.stdout.readline()
                self.assertTrue(line, "".join(out))
                out.append(line)
            process.kill()
            process.communicate()
        self.train(*command, "--epochs=1000000", "--max-samples=1", code=1)  # another run: told, nothing lost
        step = max(int(name[5:]) for name in os.listdir(self.path("kept")) if name.startswith("step") and name[5:].isdigit())
        epochs = step // 17 + 2
        run, model = self.model(*command, f"--epochs={epochs}", ranks=1)
        self.assertIn("Resuming at epoch", run.out)
        _, whole = self.model(f"--epochs={epochs}", ranks=1, name="whole")
        self.assert_same_bits(whole, model)
        self.assertIn("Resuming at epoch", self.train(*command, f"--epochs={epochs}").out)  # nothing is left to do

    def test_a_second_job_on_the_folder_is_told(self):
        kept = "--checkpoint-dir=" + self.path("kept")
        first = self.start([kept, "--resume=auto", "--batch-size=8", "--data=" + self.images, "--no-plots", "--nproc=1",
                            "--outputs=" + self.path("first"), "--epochs=100000"])
        while "epoch=1 " not in (line := first.stdout.readline()):
            self.assertTrue(line, first.stderr.read() if first.poll() is not None else "")
        run = self.train(kept, "--resume=auto", code=1, outputs="second")
        first.kill()
        first.communicate()
        self.assertEqual(len(run.errors()), 1, run.err)
        self.assertRegex(run.errors()[0], rf"--checkpoint-dir: .*kept/lock: process {first.pid} on \S+ is writing checkpoints")
        self.train(kept, "--resume=auto", "--epochs=1", outputs="third", ranks=1)  # of a process that is gone

    def test_keeps_the_last_ones(self):
        self.train("--epochs=4", "--checkpoint-dir=" + self.path("kept"), "--keep-last=2")
        self.assertEqual(sorted(os.listdir(self.path("kept"))), ["latest", "step-000000027", "step-000000036"])

    def test_sigterm(self):
        flags = ["--batch-size=8", "--data=" + self.images, "--no-plots", "--checkpoint-dir=" + self.path("kept"),
                 "--outputs=" + self.path("stopped"), "--nproc=1", "--epochs=100000"]
        process = self.start(flags)
        out = []
        while not any("epoch=2 " in line for line in out):
            line = process.stdout.readline()
            self.assertTrue(line, "".join(out))
            out.append(line)
        process.send_signal(signal.SIGTERM)
        rest, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143, rest + err)
        stopped = re.search(r"Stopped \(SIGTERM\) at epoch (\d+), sample \d+, step \d+; resume with --resume=", rest)
        self.assertTrue(stopped, rest)
        epochs = int(stopped[1]) + 1
        _, resumed = self.model(f"--epochs={epochs}", "--resume=" + self.path("kept"), ranks=1)
        _, whole = self.model(f"--epochs={epochs}", ranks=1, name="whole")
        self.assert_same_bits(whole, resumed)


if __name__ == "__main__":
    runs.main()
