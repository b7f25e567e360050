"""What bench_moe prints: every line, and that its counts agree with each other and with numbers known beforehand."""
import runs

SMALL = ["--preset=cpu", "--model-dim=16", "--hidden-size=24", "--samples=70", "--num-tokens=32", "--num-steps=4", "--warmup=1"]


class OutputTest(runs.BenchTest):
    def small(self, *flags, experts="4"):
        return self.run_program(*SMALL, "--num-local-experts=" + experts, *flags).configurations()

    def check_counts(self, c, ranks, k=2, samples=70, has_experts=True):
        routed, computed, lost = c.numbers("tokens")
        self.assertEqual([routed, computed, lost], [ranks * samples * k] * 2 + [0])
        once_per_expert, as_sent = c.numbers("rows")
        self.assertLessEqual(as_sent, once_per_expert)
        self.assertLessEqual(once_per_expert, routed)
        self.assertGreaterEqual(as_sent * k, once_per_expert)
        of_bytes = c.numbers("bytes")
        # Dispatch, combine and both of the gradients, 16 numbers of 4 bytes each.
        self.assertAlmostEqual(of_bytes[0], 4 * as_sent * 16 * 4e-6, delta=0.06 * 4 * 64e-6)
        if ranks > 1:
            self.assertEqual(c.one("bytes")[3], "1.000")
        else:
            self.assertEqual(c.one("bytes"), ("0.000000", "0.000000", "0.000000", None))
        overload, worst, _, _, replicas, _ = c.numbers("load")
        self.assertTrue(1 <= overload <= worst <= ranks + 1e-3)
        # In and out weights and biases, there and back.
        if has_experts:
            self.assertAlmostEqual(of_bytes[2], replicas * 2 * 4e-6 * (2 * 16 * 24 + 16 + 24), delta=0.06 * 7e-3)

    def test_ranks(self):
        for ranks in (1, 2, 4):
            with self.subTest(ranks=ranks):
                first, second = self.small("--nproc=%d" % ranks, "--exact", "--rank-lines=2", experts="3,8")
                for c, local in ((first, 3), (second, 8)):
                    self.assertEqual(c.one("benchmark"), (str(ranks), "float32", "16", "24", "70", str(local), "2", "1"))
                    self.assertEqual(c["rank"], [(str(rank), str(ranks)) for rank in range(ranks)])
                    self.assertEqual(len(c["device"]), ranks)
                    self.assertTrue(any("num_expert=%d," % (local + min(6, local * (ranks - 1))) in line for line, in c["tree"]))
                    self.assertEqual(c.one("exact")[:3], (str(local * ranks), str(ranks), "10"))
                    self.assertEqual(int(c.one("exact")[3]) > 0, ranks > 1)
                    self.assertEqual(c.one("calibration")[1], "measured" if ranks > 1 else None)
                    self.assertEqual([int(step) for step, *_ in c["step"]], [0, 1, 2, 3])
                    expert = 2 * 4e-6 * (2 * 16 * 24 + 16 + 24)
                    for value, count in zip(c.numbers("memory"), (local, min(6, local * (ranks - 1)))):
                        self.assertAlmostEqual(value, count * expert, delta=2e-6)
                    self.check_counts(c, ranks)
                    self.check_rank_lines(c, ranks)
                    self.check_times(c, ranks)

    def check_rank_lines(self, c, ranks):
        """Of two steps, in the order of ranks."""
        self.assertEqual([int(line[0]) for line in c["process"]], list(range(ranks)) * 2)
        for line, wait, (blocks, remote), (bare,) in zip(c["process"], c["wait"], c["blocks"], c["bare"]):
            p, *parts = map(float, line[1:])
            self.assertAlmostEqual(p, sum(parts), delta=3e-6)
            self.assertAlmostEqual(float(wait[1]), p, delta=6e-4)
            self.assertEqual(bare, blocks)
            self.assertLessEqual(int(remote), int(blocks))
            self.assertGreaterEqual(sum(int(b) for b, _ in c["blocks"][:ranks]), ranks * 140 / 64)
        self.assertEqual(len(c["start"]), 2 * ranks)
        self.assertEqual([(int(r), way) for r, way, *_ in c["phases"]],
                         [(r, way) for _ in range(2) for r in range(ranks) for way in ("forward", "backward")])
        for i, (forward,) in enumerate(c["forward"]):
            phases = [float(text) for text in c["phases"][2 * i][2:]]
            self.assertAlmostEqual(float(forward), sum(phases), delta=3e-3)
            self.assertGreater(phases[3], 0)
            self.assertGreater(float(c["phases"][2 * i + 1][5]), 0)

    def check_times(self, c, ranks):
        """Of the steps behind the first one, which warms up."""
        steps = [tuple(map(float, line[1:4])) for line in c["step"][1:]]
        for value, column in zip(c.numbers("summary"), zip(*steps)):
            self.assertAlmostEqual(value, sum(column) / 3, delta=2e-6)
        low, middle, high = sorted(step for step, *_ in steps)
        count, median, p90, perf, *_ = c.numbers("time")
        self.assertEqual(count, 3)
        self.assertAlmostEqual(median, middle, delta=1e-6)
        self.assertAlmostEqual(p90, middle + 0.8 * (high - middle), delta=2e-6)
        *_, planner, places, permutation, share = c.numbers("overhead")
        self.assertGreater(permutation, 0)
        self.assertAlmostEqual(share, 100 * (planner + places + permutation) / median, delta=0.006)
        self.assertAlmostEqual(perf, 140 * 16 * 24 * 4 * 3e-12 / (median / 1e3), delta=6e-5)
        for step, forward, backward in steps:
            self.assertLessEqual(forward + backward, step + 1e-5)
        predicted, compute, exchange, replicas, measured, ratio = c.numbers("cost")
        self.assertAlmostEqual(predicted, compute + exchange + replicas, delta=2e-6)
        self.assertAlmostEqual(ratio, predicted / measured, delta=1e-3)
        self.assertAlmostEqual(measured, sum(f + b for _, f, b in steps) / 3, delta=2e-6)
        self.assertEqual(exchange > 0, ranks > 1)
        busiest, mean, predicted, ratio = c.numbers("critical")
        self.assertTrue(0 < mean <= busiest + 1e-6)
        self.assertAlmostEqual(ratio, predicted / busiest, delta=1e-3)

    def test_workloads(self):
        """Routing is the workload's: loads are known."""
        c, = self.small("--nproc=4", "--workload=W0", "--placement=home", "--samples=64")
        self.check_counts(c, 4, samples=64)
        overload, _, max_vio, dead, replicas, slots = c.numbers("load")
        self.assertEqual([overload, max_vio, dead, replicas, slots], [1, 0, 0, 0, 0])
        self.assertEqual(c["stale"] + c["without"], [])
        # Half of all first choices, and a share of the second ones, go to rank 0 alone.
        c, = self.small("--nproc=4", "--workload=hot-rank", "--placement=home")
        self.assertGreater(c.numbers("load")[0], 1.5)
        c, = self.small("--nproc=4", "--workload=W2", "--placement=balanced")
        self.check_counts(c, 4)
        self.assertAlmostEqual(c.numbers("load")[0], 1, delta=0.005)
        self.assertGreater(c.numbers("load")[4], 0)
        self.assertGreaterEqual(c.numbers("stale")[0], 1)

    def test_prediction_of_the_gain(self):
        """A run without replicas has the overload and takes the time that one with them says it would."""
        rates = ["--link-bytes-per-second=1e8", "--latency-seconds=1e-6", "--rank-flops-per-second=1e8"]
        home, balanced = (self.small("--nproc=4", "--workload=W2", "--placement=" + placement, *rates)[0]
                          for placement in ("home", "balanced"))
        overload, of_experts, of_all = balanced.numbers("without")
        self.assertEqual(overload, home.numbers("load")[0])
        self.assertGreater(overload, 1.5)
        without, with_replicas = home.numbers("cost"), balanced.numbers("cost")
        self.assertAlmostEqual(of_experts, without[1] / with_replicas[1], delta=1e-3)
        self.assertAlmostEqual(of_all, without[0] / with_replicas[0], delta=1e-3)
        # Rank 0 has no token; the last rank no load but what replicas bring.
        for workload in ("W4", "W5", "W6", "W7"):
            c, = self.small("--nproc=3", "--workload=" + workload, "--placement=eplb", "--mode=moe_fwd_bwd")
            self.check_counts(c, 3)

    def test_modes_and_types(self):
        for flags in (["--mode=dispatch_only", "--placement=balanced", "--workload=W3"], ["--mode=dispatch_only", "--chunks=3"]):
            c, = self.small("--nproc=2", *flags)
            self.check_counts(c, 2, has_experts=False)
            self.assertEqual(c["phases"] + c["forward"] + c["cost"] + c["critical"], [])
            self.assertEqual([line[4] for line in c["step"]], ["0.00"] * 4)
            c.one("exchange")
        for flags in (["--chunks=3", "--optimizer=adamw"], ["--gated"], ["--dtype=float64"], ["--dtype=bfloat16"], ["--top=1"],
                      ["--top=8", "--mode=moe_fwd_bwd"]):
            with self.subTest(flags=flags):
                c, = self.small("--nproc=2", "--exact", *flags)
                self.assertEqual(c.numbers("tokens")[2], 0)
                self.assertEqual(c.one("bytes")[3], "1.000")

    def test_given_rates(self):
        """A link that costs nothing makes replicas pay; where it is all that counts, a replica has to save more rows than the 200
        hidden columns of an expert, and a rank has 140 rows."""
        rates = ["--hidden-size=200", "--rank-flops-per-second=1e9", "--latency-seconds=1e-9"]
        c, = self.small("--nproc=2", "--workload=W2", "--link-bytes-per-second=1e12", *rates)
        self.assertGreater(c.numbers("load")[4], 0)
        self.assertEqual(c.one("calibration"), ("1000.000", "given", "0.0", "given", "1.00", "given"))
        c, = self.small("--nproc=2", "--workload=W2", "--link-bytes-per-second=1", *rates)
        self.assertEqual(c.numbers("load")[4], 0)

    def test_placement_table(self):
        run = self.run_program("--placement-table", "--samples=2000", "--num-replica-slots=8")
        rows = [line.split() for line in run.lines[4:]]
        self.assertEqual(len(rows), 3 * 2 * 5)
        for zipf, experts, *rest in rows:
            overload, remote, replicas, megabytes, exchanged = map(float, rest[-5:])
            self.assertGreaterEqual(overload, 1)
            self.assertAlmostEqual(megabytes, replicas * 2 * 2 * 1024 * 4096 * 4e-6, delta=0.06)
            self.assertAlmostEqual(exchanged, 4 * remote * 4 * 2000 * 2 * 4096e-6, delta=0.5 + 4 * 0.0006 * 16000 * 4096e-6)
            if rest[0] == "home":
                self.assertEqual(replicas, 0)
            if rest[0] == "balanced":
                self.assertLessEqual(overload, 1.001)


if __name__ == "__main__":
    runs.main()
