"""What train_gru prints: every line of the published command's output, on several ranks and on one."""
import re
import unittest

import runs

FLOAT = r"\d+\.\d{6}"
EXPONENT = r"-?\d\.\d\de[+-]\d\d"
PUBLISHED = ("--lp-levels 3 --lp-cfactor 4 --epochs=4 --lp-iters=1 --lp-fwd-finerelax=0 --lp-fwd-relax=1 "
             "--seed 3649905550453979348 --lp-fwd-iters 2").split()
MARK = r"\t\(synthetic data\)"

LINES = [
    r"Plait REV:      ([0-9a-f]{40}|unknown)",
    r"MPI: procs = \d",
    r"DEVICE=cpu",
    r"INPUT: Namespace\(seed=\d+, log_interval=\d+, percent_data=[\d.]+, ensemble_size=1, sequence_length=128, "
    r"tf=128\.0, .*lp_levels=3, lp_iters=1, lp_fwd_iters=2, .*lp_cfactor=4, .*\)",
    r"Prepared 2400 \+ 600 sequences in [\d.]+ s: synthetic.*",
    r"No recordings in .*: synthetic stand-in",
    r"USING SEED: 3649905550453979348",
    r"Loading UCI HAR Dataset: synthetic.*: 240 \+ 60 sequences of 128 x 9",
    r"Using (Parallel|Serial)Net:",
    r"-- (max_levels = 3|max_iters  = 1|fwd_iters  = 2|cfactor    = 4|fwd0 relax = 0|fwd relax  = 1|skip down  = True)",
    r"-- (bwd relax|cell     |serial   |coarse   |dtype    ) +?= \w+",
    r"-- (cfactor   |hold      ) = \d+(,\d+)*",
    r"\[[-\d :.]+\]\[INFO\]\[trainer:\d+\] - ",
    r"\[[-\d :.]+\]\[INFO\]\[trainer:\d+\] - solver: 3 levels, factor 4, 2 \+ 1 iterations takes \S+ s a step, "
    r"serial propagation would take about \S+ s.*; --lp-auto would .*",
    r"Memory plan of a rank: \d+ parameters, ddp, dp_replicate=1, dp_shard=1",
    r"  (parameters|gradients|moments|activations|total) +\d+\.\d{3} MB   .*",
    rf"Train Epoch:  [1-4] \[ *\d+/ 240\]\tLoss: {FLOAT}\tTime Per Batch {FLOAT} - F ?\d/{EXPONENT}, B ?\d/{EXPONENT}"
    rf"(, fp={FLOAT}, cm={FLOAT}, bp={FLOAT})?{MARK}",
    rf"(PARALLEL:|SERIAL:  ) Test set epoch  [1-4]: Accuracy: \d+/60 \(\d+%\)\tTime Per Batch {FLOAT}{MARK}",
    r"   \*\*\* Proc = \d        \*\*\*",
    r"              timer              \|\|      count       \|      total       \|       mean       \|      stdev       \|",
    r"=+",
    r"  [\w:]+ +\|\| +\d+ +\|( +\d\.\d{4}e[+-]\d\d +\|){3}",
    rf"TIME PER EPOCH: {EXPONENT}{MARK}",
    rf"TIME PER TEST:  {EXPONENT}{MARK}",
]


class OutputTest(runs.TrainTest):
    def check_lines(self, run):
        for line in run.lines:
            if line.strip():
                self.assertTrue(any(re.fullmatch(shape, line) for shape in LINES), repr(line))

    def rows(self, run, rank):
        """Count and total by timer of a rank's table."""
        table = run.out.split(f"Proc = {rank} ")[1].split("***")[1]
        shape = r"^  ([\w:]+) +\|\| +(\d+) +\| +(\S+)"
        return {m[0]: (int(m[1]), float(m[2])) for m in re.findall(shape, table, re.M)}

    def test_published_command(self):
        self.shared = self.path("cache")  # empty: the data are prepared here
        run = self.train(4, *PUBLISHED, "--percent-data=0.1", "--batch-size=40",
                         "--hidden-size=20")
        self.check_lines(run)
        for shape in LINES:
            self.assertTrue(any(re.fullmatch(shape, line) for line in run.lines), shape)
        block = run.lines.index("Using ParallelNet:")
        self.assertEqual(run.lines[block + 1:block + 8],
                         ["-- max_levels = 3", "-- max_iters  = 1", "-- fwd_iters  = 2", "-- cfactor    = 4",
                          "-- fwd0 relax = 0", "-- fwd relax  = 1", "-- skip down  = True"])
        # A first batch and the end of each epoch, with the backward solve's residual, of which there is none.
        self.assertEqual(len(run.losses()), 8)
        self.assertEqual(len(re.findall(r"F 2/\d\.\d\de[+-]\d\d, B 1/-1\.00e\+00", run.out)), 8)
        ends = [line for line in run.lines if "fp=" in line]
        self.assertEqual(len(ends), 4)
        for line in ends:
            # Units: all are seconds per batch, so the parts make the whole.
            whole, fp, cm, bp = (float(x) for x in re.search(
                rf"Batch ({FLOAT}).*fp=({FLOAT}), cm=({FLOAT}), bp=({FLOAT})", line).groups())
            self.assertAlmostEqual(whole, fp + cm + bp, delta=3e-6)  # printed to 1e-6 each
        # Each rank takes its 32 fine steps, and more. 6 training and 2 test batches an epoch.
        for rank in range(4):
            rows = self.rows(run, rank)
            self.assertEqual(rows["ForWD::func:run"][0], 32)
            self.assertEqual(rows["BckWD::func:run"][0], 24)
            self.assertGreaterEqual(rows["ForWD::step"][0], 32 * 32)
            self.assertGreaterEqual(rows["BckWD::step"][0], 24 * 32)
            self.assertEqual(rows["optimizer"][0], 24)
        self.check_units(run, ends)

    def check_units(self, run, ends):
        """Lines say seconds per batch: their means over the epochs are those of the timers' totals."""
        rows = self.rows(run, 0)
        for row, name in (("forward", "fp"), ("loss", "cm"), ("backward", "bp")):
            shown = [float(re.search(rf"{name}=({FLOAT})", line)[1]) for line in ends]
            self.assertAlmostEqual(sum(shown) / 4, rows[row][1] / 24, delta=1e-6 + 1e-4 * rows[row][1] / 24)
        tests = [float(x) for x in re.findall(rf"^PARALLEL: .*Batch ({FLOAT})", run.out, re.M)]
        per_test = float(re.search(r"TIME PER TEST:  (\S+)", run.out)[1])
        self.assertAlmostEqual(2 * sum(tests) / 4, per_test, delta=0.01 * per_test)

    def test_parts_of_a_batch_are_of_its_passes(self):
        """Neither passes that measure the bias nor recomputed ones count as forward passes."""
        names = ["loss", "forward_time", "loss_time", "backward_time", "dtf"]
        for flags in (["--lp-bias-limit=0.1", "--lp-bias-every=1"], ["--lp-auto"], ["--activation-checkpointing=full"]):
            path = self.path(flags[0] + ".h5")
            run = self.train(1, "--force-lp", "--epochs=1", f"--history={path}", *flags, *runs.SMALL)
            if "--lp-bias-every=1" in flags:
                self.assertEqual(self.rows(run, 0)["BckWD::func:run"][0], 2 * 6)
            history = {name: [float.fromhex(value) for value in values]
                       for name, values in self.history(path).items() if name in names}
            batches = [i for i, loss in enumerate(history["loss"]) if loss == loss]
            self.assertEqual(len(batches), 6)
            for i in batches:
                forward, loss, backward, whole = (history[name][i] for name in names[1:])
                self.assertGreater(min(forward, loss, backward), 0, (flags, i))
                self.assertLessEqual(forward + loss, whole + 1e-9, (flags, i))

    def test_serial(self):
        run = self.train(1, "--epochs=1", *runs.SMALL)
        self.assertIn("Using SerialNet:", run.lines)
        self.assertIn("-- cell       = classic", run.lines)
        self.assertRegex(run.out, r"F 1/0\.00e\+00, B 1/0\.00e\+00")
        implicit = self.train(1, "--epochs=1", "--implicit-serial", *runs.SMALL)
        self.assertIn("-- cell       = implicit", implicit.lines)
        self.assertNotEqual(run.losses(), implicit.losses())

    def test_longer_steps_are_named(self):
        short = ["--epochs=1", "--percent-data=0.02", "--hidden-size=4", "--sequence-length=32"]
        self.assertIn("-- step size  = 4: tf = 128 over 32 items", self.train(1, *short).lines)
        self.assertNotIn("step size", self.train(1, "--tf=32", *short).out)

    def test_starts_itself_on_ranks(self):
        run = self.train(0, "--nproc=2", "--epochs=1", *runs.SMALL)
        self.assertIn("MPI: procs = 2", run.lines)
        self.assertIn("Using ParallelNet:", run.lines)

    def test_residuals_by_iteration(self):
        run = self.train(1, "--force_lp", "--epochs=1", "--lp_print=1", "--lp_iters=3", *runs.SMALL)
        self.assertEqual(len(re.findall(r"^  forward   iter 0  \|r\| = none$", run.out, re.M)), 6)
        self.assertEqual(len(re.findall(r"^  backward  iter 2  \|r\| = \S+e\S+  factor = 0\.\d+$", run.out, re.M)), 6)

    def test_ensemble(self):
        run = self.train(1, "--force-lp", "--ensemble-size=2", "--epochs=1", *runs.SMALL)
        seeds = re.findall(r"USING SEED: (\d+)", run.out)
        self.assertEqual(len(set(seeds)), 2)
        self.assertEqual(len(re.findall(r"AVG EPOCH TIME: [\d.]+s", run.out)), 3)
        shares = [int(x) for x in re.findall(r"parallel = (\d+)%", run.out)]
        self.assertAlmostEqual(shares[2], (shares[0] + shares[1]) / 2, delta=1.01)  # whole percents

    def test_help_names_every_flag(self):
        run = self.train(1, "--help")
        for flag in ("lp-levels lp-cfactor lp-iters lp-fwd-iters lp-fwd-relax lp-fwd-finerelax lp-use-downcycle lp-print "
                     "lp-braid-print lp-bwd-relax force-lp implicit-serial epochs batch-size seed lr use-sgd percent-data "
                     "gradient-accumulation-steps ensemble-size log-interval hidden-size num-layers sequence-length tf gru nproc data-dir dtype "
                     "checkpoint-dir resume history").split():
            self.assertRegex(run.out, rf"--(\[no\])?{flag}\s")


if __name__ == "__main__":
    runs.main()
