"""Wrong flags, variables and files; terminals that can do little."""
import os

import runs

FEW = ["--nproc=2", "--train-iters=8"]


class BadInputTest(runs.DistTest):
    def fails(self, expected, *flags, code=2, variables=None, outputs="out"):
        run = self.run_program(*flags, code=code, variables=variables, outputs=outputs)
        self.assertEqual(len(run.errors()), 1, run.err)
        self.assertRegex(run.errors()[0], "test_dist: " + expected)

    def test_flags(self):
        for expected, *flags in [
                ("unknown flag --train-iter; did you mean --train-iters", "--train-iter=3"),
                ("--train-iters=1: no step is left", "--train-iters=1"),
                ("--layer-sizes=12,x: expected positive integers", "--layer-sizes=12,x"),
                ("--dtype=int8: expected one of float32, fp32", "--dtype=int8"),
                ("--timeout=5q: expected a time such as 5s", "--timeout=5q"),
                ("--fault=crash: expected one of none, hang", "--fault=crash"),
                ("--batch-size=0: expected at least 1", "--batch-size=0"),
                ("--strategy: strategy .zero.: expected ddp or zero1", "--strategy=zero"),
                ("--mesh=dp_shard=2: ddp replicates everything", "--mesh=dp_shard=2", "--nproc=2"),
                ("--mesh=dp_shard=3: .* but there are 2", "--mesh=dp_shard=3", "--strategy=fsdp", "--nproc=2"),
                ("--device=gpu: expected auto, cpu or cuda", "--device=gpu"),
                ("--threads=-1: expected 0 or more", "--threads=-1")]:
            with self.subTest(flags=flags):
                self.fails(expected, *flags)
                self.assertFalse(os.path.exists(self.path("out")))

    def test_variables(self):
        self.fails("environment variable TRAIN_ITERS=many: .*; unset it or correct it", variables={"TRAIN_ITERS": "many"})

    def test_variables_of_one_rank(self):
        """mpirun does not pass variables on to other hosts."""
        rank = ["-n", "1", runs.PROGRAM, "--train-iters=8", "--outputs=out"]
        run = self.finish(self.start(["mpirun", "--allow-run-as-root", "--oversubscribe", "-x", "BATCH_SIZE=8", *rank, ":", *rank]), 1)
        self.assertEqual(len(run.errors_of_ranks()), 1, run.err)
        self.assertRegex(run.errors_of_ranks()[0], "--batch-size=8 on rank 0 and --batch-size=64 on rank 1; start all ranks with")

    def test_fault_behind_the_last_step(self):
        self.fails("--history: expected --collectives to be left out", "--collectives", "--history=x.h5")
        self.fails("--fault: expected --collectives to be left out, which trains nothing", "--collectives", "--fault=hang")
        self.fails("--seed: expected --collectives to be left out, which trains nothing", "--collectives", "--seed=7")
        self.fails("--device=cuda: --collectives measures .* host memory; expected cpu", "--collectives", "--device=cuda")
        self.fails("--collectives-sizes: expected --collectives", "--collectives-sizes=8,4M,8")
        self.fails("--fault-iter=12: there are 12 steps; expected 0 to 11", "--fault=exit", "--train-iters=12", "--fault-iter=12")

    def test_fault_on_a_rank_that_is_not_there(self):
        self.fails("--fault-rank=2: there are 2 ranks; expected 0 to 1", "--nproc=2", "--fault=exit", "--fault-rank=2", code=1)

    def test_cuda_without_gpus(self):
        self.fails(r"--device=cuda: LibTorch finds no GPU on \S+ \(rank 0\);.*or use --device=cpu", "--nproc=2", "--device=cuda",
                   code=1, variables={"CUDA_VISIBLE_DEVICES": ""})
        self.assertFalse(os.path.exists(self.path("out")))

    def test_files_in_the_way(self):
        with open(self.path("file"), "w"):
            pass
        self.fails("--outputs: .*file", *FEW, code=1, outputs="file")
        self.fails("--history: .*nowhere", *FEW, "--history=" + self.path("nowhere/run.h5"), code=1, outputs="other")
        self.run_program(*FEW, "--no-plots")
        before = os.path.getsize(self.path("out/history.h5"))
        self.fails(".*history.h5", *FEW, "--no-plots", code=1)  # never appended to silently
        self.assertEqual(os.path.getsize(self.path("out/history.h5")), before)

    def test_no_gnuplot(self):
        tools = self.path("bin")
        os.mkdir(tools)
        for name in ("mpirun", "orted"):
            os.symlink(os.path.realpath("/usr/bin/" + name), os.path.join(tools, name))
        run = self.run_program(*FEW, variables={"PATH": tools, "OMPI_MCA_plm": "isolated"})
        self.assertRegex(run.out, r"\[WARNING\]\[\w+:\d+\] - no plots: .*gnuplot.*gnuplot-nox")
        self.assertTrue(os.path.exists(self.path("out/history.h5")))

    def test_narrow_terminal_without_utf8(self):
        run = self.run_program(*FEW, variables={"LC_ALL": "C", "COLUMNS": "40", "NO_COLOR": "1"})
        self.assertTrue(run.out.isascii())
        plot = run.out.split("train/dt [", 1)[1].split("train/dtf [", 1)[0]
        self.assertLessEqual(max(len(line) for line in plot.splitlines()), 40)
        self.assertIn("  * DEVICE=cpu", run.out)


if __name__ == "__main__":
    runs.main()
