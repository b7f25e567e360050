"""A run that was interrupted and resumed is bitwise identical to an uninterrupted one."""
import os
import re
import signal

import program_runs
import runs

# Augmentation and dropout must go on, too.
DRAWING = ["--augment=pad-crop", "--dropout=0.1", "--epochs=3", "--warmup-iters=4"]


class ResumeTest(runs.VitTest):
    def compare(self, run, model, *flags, **kwargs):
        whole, expected = self.model(*DRAWING, *flags, name="whole", **kwargs)
        self.assert_same_bits(expected, model)
        resumed = run.losses()
        self.assertTrue(resumed)
        self.assertEqual(whole.losses()[-len(resumed):], resumed)
        self.assertEqual(run.tests()[-1], whole.tests()[-1])

    def test_in_the_midst_of_an_epoch(self):
        kept = self.path("kept")
        self.train(*DRAWING, "--epochs=1", "--checkpoint-dir=" + kept, "--checkpoint-interval=3", "--keep-last=0")
        run, model = self.model("--epochs=3", "--resume=" + kept + "/step-000000003")
        self.assertIn("Resuming at epoch 1, sample 48, step 3", run.out)
        self.compare(run, model)

    def test_another_mesh_and_no_other_flags(self):
        kept = self.path("kept")
        flags = ["--strategy=fsdp", "--dtype=float64"]
        self.train(*DRAWING, *flags, "--dropout=0", "--epochs=1", "--checkpoint-dir=" + kept)
        os_flags = [f"--outputs={self.path('out2')}", "--no-plots", "--data=" + self.images, "--epochs=3", "--nproc=1",
                    "--resume=" + kept, "--test-batch-size=10"]
        process = self.start(os_flags)
        out, err = process.communicate(timeout=240)
        self.assertEqual(process.returncode, 0, out + err)
        resumed = runs.Run(0, out, err)
        whole, _ = self.model(*DRAWING, *flags, "--dropout=0", name="whole")
        self.assertEqual(whole.losses()[-10:], resumed.losses())
        # Sizes that the checkpoint cannot hold make no model.
        with open(kept + "/latest", encoding="utf-8") as latest:
            program_runs.change_settings(f"{kept}/{latest.read().strip()}/index.h5", mlp_dim="99999")
        run = self.finish(self.start(os_flags), code=1)
        self.assertRegex(run.errors()[-1], "the options ask for parameters of .* x 99999 numbers, but the files hold")

    def test_the_limit_that_is_given_decides(self):
        """Also where the checkpoint has reached the other one; 5 steps are an epoch."""
        for name, before, limit, steps in (("epochs", ["--epochs=0", "--max-iters=3"], "--epochs=2", range(3, 10)),
                                           ("steps", ["--epochs=1"], "--max-iters=8", range(5, 8)),
                                           ("one of both", ["--epochs=1", "--max-iters=3"], "--max-iters=6", range(3, 6))):
            with self.subTest(name):
                kept = self.path(name)
                self.train(*before, "--checkpoint-dir=" + kept, outputs=name + "_out")
                flags = self.flags("--resume=" + kept, outputs=name + "_resumed")
                run = self.finish(self.start([flag for flag in flags if flag != "--epochs=1"] + [limit]))
                self.assertEqual([int(step) for step, _ in run.losses()], list(steps))

    def test_evaluation_alone(self):
        kept, saved = self.path("kept"), self.path("saved")
        run = self.train("--checkpoint-dir=" + kept, "--save-model=" + saved)
        last, = run.logged(r"iter=\d+ test_loss=")
        again = self.train("--resume=" + kept, "--eval-only", outputs="none")
        self.assertEqual(again.logged(".*loss="), [last])
        # A model has no steps.
        again = self.train("--init-from=" + saved, "--eval-only", outputs="none")
        self.assertEqual(again.logged(".*loss="), [last.split(" ", 1)[1]])
        self.assertFalse(os.path.exists(self.path("none")))

    def test_of_more_classes_than_the_images_have(self):
        """The scheduler's unchanged command, and a command without the flag."""
        kept, saved = self.path("kept"), self.path("saved")
        self.train("--classes=20", "--checkpoint-dir=" + kept, "--save-model=" + saved)
        self.train("--resume=" + kept, "--epochs=2", outputs="rest")
        again = ["--init-from=" + saved, "--checkpoint-dir=" + self.path("tuned"), "--resume=auto"]
        self.train(*again, outputs="a")
        run = self.train(*again, "--epochs=2", outputs="b")
        self.assertIn("Resuming", run.out)

    def test_sigterm(self):
        kept = self.path("kept")
        process = self.start(self.flags(*DRAWING, "--epochs=100000", "--checkpoint-dir=" + kept, ranks=1))
        for line in process.stdout:
            if "iter=12 " in line:
                break
        process.send_signal(signal.SIGTERM)
        rest, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143, rest + err)
        stopped = re.search(r"Stopped \(SIGTERM\) at epoch (\d+), sample \d+, step (\d+); resume with --resume=", rest)
        self.assertTrue(stopped, rest)
        epochs = f"--epochs={int(stopped[1]) + 1}"
        run, model = self.model("--resume=" + kept, epochs, ranks=1)
        self.compare(run, model, epochs, ranks=1)


if __name__ == "__main__":
    runs.main()
