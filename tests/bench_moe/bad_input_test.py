"""Flags that cannot work: one line on standard error and exit code 2, before ranks are started."""
import runs


class BadInputTest(runs.BenchTest):
    def test_flags(self):
        for expected, *flags in [
                ("unknown flag --num-expert; did you mean", "--num-expert=3"),
                ("--top=9: expected at most 8, the experts of 2 ranks with 4 each", "--top=9", "--num-local-experts=64,4"),
                ("--top=0: expected at least 1", "--top=0"),
                ("--num-replica-slots=-1: expected 0 or more", "--num-replica-slots=-1"),
                ("--workload: unknown workload 'W8'; expected one of W0 balanced, .*, or gate", "--workload=W8"),
                # Only 3 of 6 experts may have tokens there.
                ("--workload: .*k is 4; expected 1 to 2, the experts that may have tokens", "--workload=W5", "--top=4", "--num-local-experts=3"),
                ("--placement: .*expected .*home.*shadow.*eplb.*balanced", "--placement=random"),
                ("--mode=train: expected one of dispatch_only, moe_fwd_bwd, training_step", "--mode=train"),
                ("--dtype=float16: expected one of float32, bfloat16, float64", "--dtype=float16"),
                ("--preset=gpu: expected cpu", "--preset=gpu"),
                ("--optimizer=lamb: expected sgd or adamw", "--optimizer=lamb"),
                ("--chunks=0: expected at least 1", "--chunks=0"),
                ("--lr: expected --mode=training_step", "--lr=1", "--mode=moe_fwd_bwd"),
                ("--zipf-exponent: expected --workload=W3 or W6", "--zipf-exponent=1"),
                ("--num-replica-slots: expected a --placement with replicas", "--num-replica-slots=2", "--placement=home"),
                ("--samples=-5: expected at least 1", "--samples=-5"),
                ("--hidden-size=0: expected at least 1", "--hidden-size=0"),
                ("--num-local-experts=0: expected positive numbers such as 8,16", "--num-local-experts=8,0"),
                ("--num-local-experts=x: expected", "--num-local-experts=x"),
                ("--model-dim=12: expected a multiple of the 8 heads", "--model-dim=12"),
                ("--warmup=100: expected fewer than the 100 steps", "--warmup=100"),
                ("--link-bytes-per-second=-1: expected 0 or a positive number", "--link-bytes-per-second=-1"),
                ("--rank-flops-per-second=nan: expected 0 or a positive number", "--rank-flops-per-second=nan"),
                # 2^21 * 1024 rows; 2 * 2^30 numbers of weights; 64 * 2 experts for 2^25 tokens.
                ("--samples times --top of all ranks are 2147483648 numbers; expected at most 2147483647, which 32 bits count",
                 "--samples=8388608", "--top=128", "--num-local-experts=64"),
                ("--num-local-experts and --num-replica-slots times .* are 2147483648 numbers", "--model-dim=32768",
                 "--hidden-size=32768", "--num-local-experts=2", "--placement=home"),
                ("--samples times the experts of all ranks are 4294967296 numbers", "--samples=33554432", "--num-local-experts=64"),
                ("--samples times --top times the larger of --model-dim and --hidden-size are 2147483648 numbers",
                 "--samples=262144", "--num-local-experts=4"),
                ("--world=3: expected the 2 ranks of --nproc", "--world=3"),
                ("--placement-table: .*k is 33; expected 1 to 32", "--placement-table", "--top=33"),
                ("--world=-1: expected 0 or more", "--world=-1")]:
            with self.subTest(flags=flags):
                run = self.run_program("--nproc=2", *flags, code=2)
                self.assertEqual(len(run.errors()), 1, run.err)
                self.assertRegex(run.errors()[0], "^bench_moe: " + expected)
                self.assertEqual(run.out, "")

    def test_another_launcher(self):
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", runs.PROGRAM, "--world=4"]
        run = self.finish(self.start(command), 2)
        self.assertEqual(len(run.errors_of_ranks()), 1, run.err)
        self.assertRegex(run.errors_of_ranks()[0], "^bench_moe: --nproc=4.*2 ranks")

    def test_a_rank_with_other_flags(self):
        small = ["--preset=cpu", "--model-dim=16", "--hidden-size=24", "--samples=32", "--num-local-experts=4"]
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "1", runs.PROGRAM, *small, "--top=1",
                   ":", "-n", "1", runs.PROGRAM, *small, "--top=2"]
        run = self.finish(self.start(command), 1)
        self.assertEqual(len(run.errors_of_ranks()), 1, run.err)
        self.assertRegex(run.errors_of_ranks()[0], "--top")
        self.assertEqual(run.out, "")


if __name__ == "__main__":
    runs.main()
