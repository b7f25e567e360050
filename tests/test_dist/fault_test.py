"""Every --fault ends the job, and one line names the rank. (That it ends in time: comm/testing:fault_test.)"""
import runs

TIMEOUT_SECONDS = 2


class FaultTest(runs.DistTest):
    def test_last_lines(self):
        """In a file: nothing of bars, mpirun has no last word."""
        for kind, code, expected in (
                ("hang", 70, [r"rank 1 \(\S+, pid \d+\) has not entered #\d+ .*; last entered .*"]),
                ("kill", 137, [r"rank 1 \(\S+, pid \d+\) is dead: its process is gone; .*; rank [02] waits for it in #\d+ \w+\[\w+\] .* at "
                               r"\S+:\d+, in phase training", r"test_dist: rank 1 exited on signal 9 \(Killed\)"])):
            with self.subTest(kind):
                run = self.run_program("--nproc=3", "--train-iters=100000", "--no-plots", "--log-freq=1000", "--fault=" + kind,
                                       "--fault-rank=1", "--fault-iter=3", f"--timeout={TIMEOUT_SECONDS}s", code=code, outputs=kind)
                errors = run.err.splitlines()
                self.assertEqual(len(errors), len(expected), run.err)
                for line, pattern in zip(errors, expected):
                    self.assertRegex(line, f"^{pattern}$")
                self.assertNotIn("\x1b", run.out + run.err)

    def strikes(self, kind, expected, rank=1, ranks=3, named=None):
        run = self.run_program(f"--nproc={ranks}", "--train-iters=100000", "--no-plots", "--log-freq=1000", f"--fault={kind}",
                               f"--fault-rank={rank}", "--fault-iter=7", f"--timeout={TIMEOUT_SECONDS}s", code=None)
        self.assertNotEqual(run.code, 0)
        guilty = [line for line in run.errors() if (named or f"rank {rank} (") in line]
        self.assertEqual(len(guilty), 1, run.err)
        self.assertRegex(guilty[0], expected)

    def test_hang(self):
        self.strikes("hang", r"has not entered #\d+ .*\[dp\].*in phase training")

    def test_hang_of_rank_0(self):
        self.strikes("hang", r"has not entered #\d+ .*in phase training", rank=0)

    def test_exit(self):
        self.strikes("exit", r"is dead: it called exit.3. in mid-run")

    def test_kill(self):
        self.strikes("kill", r"is dead: its process is gone", rank=2)

    def test_mismatch(self):
        # Each rank compares with its neighbour: rank 1 with rank 0, or rank 2, if it is first, with rank 1.
        self.strikes("mismatch", r"rank 1 \(.*is mismatched: it entered #\d+ broadcast\[dp\].* where rank 0 entered #\d+ all_reduce\[dp\]|"
                                 r"rank 2 \(.*is mismatched: it entered #\d+ all_reduce\[dp\].* where rank 1 entered #\d+ broadcast\[dp\]",
                     named="is mismatched")

    def test_slow_is_no_failure(self):
        import xarray
        self.run_program("--nproc=2", "--train-iters=12", "--no-plots", "--fault=slow", "--fault-rank=1", "--fault-iter=6")
        data = xarray.open_dataset(self.path("out/history.h5"))
        # It sleeps 0.1 s before its forward pass: the other rank waits in the all-reduce. The median, as a step of the other one may
        # be late, too.
        late = data["dtb_per_rank"].sel(rank=0).values
        self.assertGreater(sorted(late[6:])[3], 0.09, late)


if __name__ == "__main__":
    runs.main()
