"""A run that was interrupted and resumed has the numbers of one that was not."""
import os
import signal

import program_runs
import runs

# 16 steps an epoch: levels of 2, 4 and 8 layers end with steps 32, 64 and 96.
NESTED = ["--nested", "--nested-levels=3", "--nested-epochs=2", "--dtype=float64", "--tikhonov=1e-4", "--tikhonov-time=1e-4"]


class ResumeTest(runs.OdeNetTest):
    def timeless(self, points):
        return [{**point, "dt": 0} for point in points]

    def expect_same_model(self, expected, actual):
        self.assertEqual({name: value.tobytes() for name, value in expected.items()},
                         {name: value.tobytes() for name, value in actual.items()})

    def test_on_every_level(self):
        kept = self.path("kept")
        run, model = self.model(*NESTED, "--checkpoint-dir=" + kept, "--checkpoint-interval=5", "--keep-last=0", name="whole")
        whole, history = run.points(), self.history("whole_out")
        self.assertEqual([point["level"] for point in whole], [2, 2, 1, 1, 0, 0])
        self.assertEqual(list(history["step"]), [16, 32, 48, 64, 80, 96])
        # In the midst of a level, where one ends, and behind the last step.
        for step, before in ((5, 0), (32, 2), (50, 3), (64, 4), (70, 4), (96, 6)):
            with self.subTest(step=step):
                resumed, other = self.model(f"--resume={kept}/step-{step:09d}", name=f"from{step}")
                level = min(2 - (step - 1) // 32, 2)
                self.assertRegex(resumed.out, f"Resuming on level {level}, at epoch .*, step {step}: ")
                self.assertEqual(self.timeless(resumed.points()), self.timeless(whole[before:]))
                self.assertEqual(resumed.logged(r" *[0-2]  "), run.logged(r" *[0-2]  "))
                self.expect_same_model(model, other)
                if before == 6:
                    alone = self.train(*NESTED, f"--resume={kept}/step-{step:09d}", "--eval-only", outputs="none").points()
                    names = ("level", "layers", "epoch", "val_loss", "val_acc")
                    self.assertEqual(alone, [{name: whole[-1][name] for name in names}])
                    continue
                # All levels before the finest, and what this run has of that.
                parts = self.history(f"from{step}_out")
                for name in ("step", "level", "work_units", "train_loss", "val_loss"):
                    self.assertEqual(list(parts[name]), list(history[name][4 if step > 64 else 0:]), name)

    def test_the_same_command_goes_on(self):
        """Stopped on the coarse level by a signal, with more epochs than it is given time for."""
        flags = ["--nested", "--nested-levels=2", "--nested-epochs=60", "--epochs=1", "--dtype=float64"]
        command = [*flags, "--checkpoint-dir=" + self.path("kept"), "--resume=auto"]
        process = self.start([runs.PROGRAM, *self.flags(*command, outputs="parts")])
        while True:
            line = process.stdout.readline()
            self.assertTrue(line)
            if "level=1" in line:
                break
        process.send_signal(signal.SIGTERM)
        stopped = self.finish(process, code=143)
        self.assertIn("Stopped (SIGTERM) on level 1, at epoch", stopped.out)
        self.assertFalse(os.path.exists(self.path("parts/history.h5")))
        rest = self.train(*command, outputs="parts").points()
        self.assertLess(len(rest), 61)  # what was done is not done again
        whole = self.train(*flags, outputs="whole").points()
        self.assertEqual(self.timeless(rest), self.timeless(whole[-len(rest):]))
        history, expected = self.history("parts"), self.history("whole")
        for name in ("level", "layers", "epoch", "work_units", "train_loss", "val_loss", "val_acc", "lr"):
            self.assertEqual(list(history[name]), list(expected[name]), name)

    def test_stopped_in_the_comparison(self):
        """The serial run, which has no checkpoints, is stopped too, and the same command repeats it."""
        command = ["--compare", "--lp-cfactor=2", "--epochs=100", "--checkpoint-dir=" + self.path("kept"), "--resume=auto"]
        process = self.start([runs.PROGRAM, *self.flags(*command, ranks=2)])
        while " epoch=100 " not in process.stdout.readline():
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        stopped = self.finish(process, code=143)
        self.assertRegex(stopped.out, r"Stopped \(SIGTERM\) .*, in a part of the run that has no checkpoints")
        self.assertNotIn("serial: ", stopped.out)
        run = self.train(*command, ranks=2)
        self.assertEqual(len(run.logged("layer-parallel: ") + run.logged("serial: ")), 2, run.out)

    def test_flags_that_need_the_settings_of_the_checkpoint(self):
        self.train("--nested", "--nested-levels=2", "--force-lp", "--lp-cfactor=2", "--checkpoint-dir=" + self.path("kept"), outputs="a")
        resume = "--resume=" + self.path("kept")
        run = self.train("--epochs=2", "--compare", resume, outputs="b")  # --compare needs the solver
        self.assertEqual(len(run.logged("layer-parallel: ") + run.logged("serial: ")), 2, run.out)
        self.train("--epochs=2", "--nested-levels=2", resume, outputs="c")  # --nested-levels needs --nested
        run = self.train("--timeout=-1", resume, code=2, outputs="d")
        self.assertIn("train_odenet: --timeout=-1: ", run.err)

    def test_on_other_ranks(self):
        """A checkpoint of a coarse level of two ranks, on one."""
        flags = [*NESTED, "--layers=16", "--lp-cfactor=2", "--lp-fwd-iters=9", "--lp-iters=9"]
        kept = self.path("kept")
        _, model = self.model(*flags, "--checkpoint-dir=" + kept, "--keep-last=0", ranks=2, name="two")
        _, other = self.model(*flags, f"--resume={kept}/step-000000048", name="one")
        self.assertEqual(set(model), set(other))
        for name, value in model.items():
            # Converged solves and the serial sweep: rounding, through 48 steps of Adam.
            self.assertLess(abs(value - other[name]).max(), 1e-9, name)
        # Sizes that the checkpoint cannot hold make no model.
        for setting, value, expected in (("channels", 10**9, "parameters of 4 x 1000000000 x 1000000000 numbers"),
                                         ("layers", 10**9, "--layers=1000000000: expected at most 100000")):
            program_runs.change_settings(f"{kept}/step-000000048/index.h5", **{setting: str(value)})
            run = self.finish(self.start([runs.PROGRAM, f"--resume={kept}/step-000000048", "--no-plots"]), code=1)
            self.assertIn(expected, run.errors()[-1])
            program_runs.change_settings(f"{kept}/step-000000048/index.h5", channels="8", layers="16")


if __name__ == "__main__":
    runs.main()
