"""A run that was interrupted and resumed has the numbers of one that was not."""
import runs


class ResumeTest(runs.OdeNetTest):
    def test_on_the_finest_level(self):
        flags = ["--nested", "--nested-levels=2", "--dtype=float64", "--tikhonov=1e-4", "--tikhonov-time=1e-4"]
        whole = self.train(*flags, "--epochs=4", outputs="whole").points()
        kept = self.path("kept")
        self.train(*flags, "--epochs=2", "--nested-epochs=4", "--checkpoint-dir=" + kept, "--checkpoint-interval=5",
                   "--keep-last=0", outputs="first")
        for step in (5, 32):  # in the midst of an epoch, and after the last one
            run = self.train("--epochs=4", "--resume=" + kept + f"/step-{step:09d}", outputs=f"second{step}")
            self.assertIn(f"step {step}", run.out)
            resumed = run.points()
            self.assertEqual({point["level"] for point in resumed}, {0})
            for a, b in zip(whole[-len(resumed):], resumed, strict=True):
                self.assertEqual({**a, "dt": 0}, {**b, "dt": 0})


if __name__ == "__main__":
    runs.main()
