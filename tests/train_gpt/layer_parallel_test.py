"""Blocks solved layer-parallel: the numbers of one rank, checkpoints on any mesh, the control of the bias, bad input."""
import math
import re

import runs

FLAGS = ["--dtype=float64", "--sample-tokens=5", "--dropout=0.1", "--n-head=4", "--n-layer=8", "--lp-cfactor=2"]
# Exact: as many iterations as coarse points, behind the one that begins on the coarse level.
CONVERGED = ["--lp-fwd-iters=5", "--lp-iters=5"]
MESHES = [
    ["--mesh=lp=2"],
    ["--mesh=lp=2,dp_shard=2", "--strategy=fsdp"],
    ["--mesh=lp=2", "--activation-checkpointing=full"],
    ["--mesh=lp=2,dp_shard=2", "--strategy=fsdp", "--activation-checkpointing=every-2"],
    ["--mesh=lp=2,tp=2"],
    ["--mesh=lp=4"],
]


class LayerParallelTest(runs.TrainTest):
    def test_converged_is_one_rank(self):
        self.train("--nproc=1", *FLAGS, outputs="one")
        for count, mesh in enumerate(MESHES):
            with self.subTest(mesh=mesh):
                self.train(*FLAGS, *CONVERGED, *mesh, outputs=f"run{count}")
                self.expect_same("one", f"run{count}")
        # The first step sends what each step does; messages that measure the link for the advice count in none.
        self.assertEqual(len(set(self.history("run0")["comm_bytes_lp"])), 1)

    def test_more_ranks_than_intervals(self):
        """Of three ranks the first has no layers."""
        few = [*FLAGS, "--n-layer=4"]
        self.train("--nproc=1", *few, outputs="one")
        self.train(*few, *CONVERGED, "--mesh=lp=3", outputs="three")
        self.expect_same("one", "three")

    def test_checkpoints_go_on_on_any_mesh(self):
        kept = ["--checkpoint-interval=5", "--keep-last=0"]
        self.train("--nproc=1", *FLAGS, *kept, "--checkpoint-dir=of_one", outputs="one")
        self.train(*FLAGS, *CONVERGED, *kept, *MESHES[1], "--checkpoint-dir=of_four", outputs="four")
        for count, (mesh, folder) in enumerate([(["--nproc=1"], "of_four"), (["--mesh=pp=2"], "of_four"), (["--mesh=lp=2,tp=2"], "of_one")]):
            with self.subTest(mesh=mesh, folder=folder):
                self.train(*mesh, *FLAGS, *CONVERGED, f"--resume={folder}/step-000000005", outputs=f"again{count}")
                self.expect_same("one", f"again{count}", skip=5)
        run = self.generate(f"--checkpoint={self.path('of_four')}", "--max-new-tokens=5")
        self.assertIn("5 tokens in", run.out)

    def test_the_bias_is_kept_below_its_limit(self):
        flags = [*FLAGS, "--lp-fwd-iters=1", "--lp-iters=1", "--lp-bias-every=1", "--lp-bias-limit=0.01", "--mesh=lp=2"]
        run = self.train(*flags, "--checkpoint-dir=kept", outputs="controlled")
        history = self.history("controlled")
        bias, residuals = [float.fromhex(b) for b in history["gradient_bias"]], history["forward_residual"]
        self.assertGreater(bias[0], 0.01)
        self.assertLess(bias[-1], 0.01)
        self.assertTrue(all(math.isfinite(b) for b in bias), bias)
        self.assertEqual(len(residuals), len(bias))
        self.assertRegex(run.out, r"gradient bias [0-9.e-]+ of the gradient, limit 0.01: next \d forward and \d backward iterations")
        # Every step takes the exact gradient; an evaluation is solved with the iterations of the next step.
        self.train("--nproc=1", *FLAGS, outputs="one")
        evaluated = ("train_loss", "val_loss")
        self.expect_same("one", "controlled", without=evaluated)
        for metric in evaluated:
            exact, solved = (float.fromhex(self.history(name)[metric][-1]) for name in ("one", "controlled"))
            self.assertNotAlmostEqual(solved / exact, 1, delta=1e-12)
        estimates = r"estimates after step (\d+): train_loss=(\S+) val_loss=(\S+)"
        alone = self.train(*flags, "--resume=kept", "--eval-only", outputs="none")
        self.assertEqual(re.findall(estimates, alone.out), re.findall(estimates, run.out)[-1:])

    def test_auto_takes_exact_gradients_until_it_has_chosen(self):
        run = self.train(*FLAGS, "--mesh=lp=2", "--lp-auto", "--lp-fwd-iters=1", "--lp-iters=1", outputs="auto")
        bias = [float.fromhex(b) for b in self.history("auto")["gradient_bias"]]
        tried = sum(math.isfinite(b) for b in bias)
        self.assertGreater(tried, 1)
        self.assertTrue(all(0 < b < 10 for b in bias[:tried]), bias)
        self.train("--nproc=1", *FLAGS, outputs="one")
        of_auto, of_one = ([float.fromhex(x) for x in self.history(name)["gradient_norm"][:tried]] for name in ("auto", "one"))
        for auto, one in zip(of_auto, of_one, strict=True):
            self.assertAlmostEqual(auto / one, 1, delta=1e-12)
        self.assertNotIn("--lp-auto would", run.out)

    def test_auto_chooses_once_and_says_why(self):
        run = self.train(*FLAGS, "--mesh=lp=2", "--lp-auto", "--lp-bias-limit=0.2", "--max-iters=120")
        chosen = [line for line in run.out.splitlines() if "--lp-auto chose" in line]
        self.assertEqual(len(chosen), 1, run.out)
        self.assertRegex(chosen[0], r"chose (serial propagation, \S+ s a step|2 levels, factor \d+, \d \+ \d iterations|3 levels)")

    def test_a_resumed_run_keeps_the_choice_of_its_ranks(self):
        flags = [*FLAGS, "--lp-auto", "--lp-bias-limit=0.9", "--checkpoint-dir=chosen", "--checkpoint-interval=120"]
        first = self.train(*flags, "--max-iters=120", "--mesh=lp=2")
        chosen = re.search(r"--lp-auto chose (\d levels, factor \d+, \d \+ \d iterations|serial propagation)", first.out)
        self.assertIsNotNone(chosen, first.out)
        resume = [*flags, "--resume=chosen/step-000000120"]
        again = self.train(*resume, "--max-iters=122", "--mesh=lp=2", outputs="again")
        self.assertIn(f"--lp-auto continues with {chosen[1]}, chosen before", again.out)
        self.assertNotIn("--lp-auto chose", again.out)
        other = self.train(*resume, "--max-iters=240", "--mesh=lp=4", outputs="other")
        self.assertIn("--lp-auto chose", other.out)

    def test_without_auto_one_line_says_what_it_would_look_at(self):
        run = self.train(*FLAGS, "--mesh=lp=2")
        advice = [line for line in run.out.splitlines() if "--lp-auto would" in line]
        self.assertEqual(len(advice), 1, run.out)
        self.assertRegex(advice[0], r"solver: 2 levels, factor 2, 2 \+ 1 iterations takes \S+ s a step, serial propagation would take about")

    def test_bad_input(self):
        lp = "--mesh=lp=2"
        table = [
            ("--lp-levels, --lp-cfactor, --n-layer: 4 levels with coarsening factor 2 do not fit 7 steps: at most 3 levels do",
             lp, "--n-layer=7", "--lp-levels=4"),
            ("lp=2 in --mesh: not with pp", "--mesh=lp=2,pp=2"),
            ("lp=2 in --mesh: not with cp", "--mesh=lp=2,cp=2"),
            ("lp=2 in --mesh: not with ep", "--mesh=lp=2,dp_replicate=2,ep=2", "--moe"),
            ("lp=2 in --mesh: not with experts", lp, "--moe", "--moe-experts=2"),
            ("--sequence-parallel: not with lp=2 in --mesh", "--mesh=lp=2,tp=2", "--sequence-parallel"),
            ("--reproducible: not with --force-lp", "--nproc=1", "--force-lp", "--reproducible", "--global-batch-size=8"),
            ("--lp-cfactor=1: must be at least 2", lp, "--lp-cfactor=1"),
            ("--lp-bias-limit=2: expected 0 to 1", lp, "--lp-bias-limit=2"),
            ("--lp-bias-reference=best: expected serial or iteration", lp, "--lp-bias-reference=best"),
            ("--lp-may-be-serial: not with --lp-auto", lp, "--lp-auto", "--lp-may-be-serial", "--lp-bias-limit=0.1"),
            ("--lp-auto: expected --lp-levels of at least 2", lp, "--lp-auto", "--lp-levels=1"),
            ("--lp-may-be-serial: expected --lp-bias-limit above 0", lp, "--lp-may-be-serial"),
        ]
        for expected, *flags in table:
            with self.subTest(flags=flags):
                run = self.train(*FLAGS, *flags, code=None)
                self.assertNotEqual(run.code, 0)
                errors = [line for line in run.errors() if "[WARNING]" not in line]
                self.assertEqual(len(errors), 1, errors)
                self.assertIn(expected, errors[0])
                self.assertNotIn("step=1 ", run.out)


if __name__ == "__main__":
    runs.main()
