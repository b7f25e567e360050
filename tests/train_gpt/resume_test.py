"""Interrupted and resumed runs are bitwise identical to uninterrupted ones."""
import os
import re
import shutil
import signal
import time

import program_runs
import runs


class ResumeTest(runs.TrainTest):
    more = {}  # of the environment

    def environment(self):
        return {**super().environment(), **self.more}

    FSDP = ["--nproc=2", "--strategy=fsdp", "--dropout=0.1"]

    def test_same_bits_on_the_same_mesh(self):
        self.train(*self.FSDP, outputs="whole")
        kept = ["--checkpoint-dir=kept", "--checkpoint-interval=3", "--keep-last=2"]
        # The schedule of the learning rate is that of the whole run.
        self.train(*self.FSDP, *kept, outputs="kept_run")
        self.assertEqual(self.numbers("whole"), self.numbers("kept_run"))  # a checkpoint changes no bit
        steps = sorted(name for name in os.listdir(self.path("kept")) if name.startswith("step"))
        self.assertEqual(steps, ["step-000000006", "step-000000008"])
        run = self.train(*self.FSDP, "--resume=kept/step-000000006", outputs="rest")
        self.assertIn("Resuming after step 6", run.out)
        for outputs, says in (("whole", "repeats this run: 2 ranks"), ("rest", "begins a run like this one, which was resumed: 2 ranks")):
            with open(self.path(outputs + "/settings.flags"), encoding="utf-8") as file:
                self.assertTrue(file.readline().startswith("# train_gpt --flagfile=THIS_FILE " + says))
        rest, whole = self.numbers("rest"), self.numbers("whole")
        self.assertEqual(rest, {name: values[6:] for name, values in whole.items()})
        # Again, as after a kill before the first checkpoint: the steps of the first attempt are replaced.
        self.train(*self.FSDP, "--resume=kept/step-000000006", outputs="rest")
        self.assertEqual(self.numbers("rest"), rest)
        self.assertEqual(len(self.draws("rest")["step"]), 2)
        # What is sent in a step does not depend on whether it is the first one of a program.
        name = "comm_bytes_dp_shard"
        self.assertEqual(self.history("rest")[name], self.history("whole")[name][6:])
        # Gone on in the same history: as if there had been no interruption.
        self.train(*self.FSDP, "--resume=kept/step-000000006", outputs="kept_run")
        self.assertEqual(self.numbers("whole"), self.numbers("kept_run"))

    def test_evaluation_alone(self):
        estimates = r"estimates after step (\d+): train_loss=(\S+) val_loss=(\S+), 2 x (\d+) batches"
        trained = self.train(*self.FSDP, "--checkpoint-dir=kept", outputs="whole").out
        run = self.train(*self.FSDP, "--resume=kept", "--eval-only", outputs="none")
        self.assertEqual(re.findall(estimates, run.out), re.findall(estimates, trained)[-1:])
        self.assertEqual(run.steps(), [])
        self.assertFalse(os.path.exists(self.path("none")))
        run = self.train("--nproc=1", "--eval-only", "--resume=auto", "--checkpoint-dir=empty", code=1)
        self.assertEqual(len(run.errors()), 1, run.err)
        self.assertRegex(run.errors()[0], "^train_gpt: --eval-only: there is no checkpoint; expected --resume=DIR")

    def test_settings_of_a_run_repeat_it(self):
        self.train("--nproc=2", "--strategy=zero1", "--sample-prompt=to\nbe", "--learning-rate=0.00123", "--checkpoint-dir=kept", "--grace=60",
                   outputs="first")
        path = self.path("first/settings.flags")
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertIn("# --checkpoint-dir=kept", lines)
        self.assertTrue(any(line.startswith("# --grace=") for line in lines))
        self.assertIn('--sample-prompt="to\\nbe"', lines)
        run = self.finish(self.start(runs.TRAIN, ["--flagfile=" + path, "--outputs=" + self.path("again")]))
        self.assertEqual(self.numbers("first"), self.numbers("again"))
        with open(self.path("again/settings.flags"), encoding="utf-8") as file:
            again = file.read().splitlines()
        flags = [line for line in lines if not line.startswith("#")]
        self.assertEqual([line for line in again if not line.startswith("#")], flags)
        run = self.finish(self.start(runs.TRAIN, ["--flagfile=" + path, "--outputs=" + self.path("b"), "--max-iters=2"]))
        self.assertEqual(len(run.steps()), 2, "later flags win")

    def test_needs_no_sizes(self):
        whole = ["--nproc=2", "--strategy=fsdp", "--beta2=0.9", "--grad-clip=0.5", "--dropout=0.1"]
        self.train(*whole, outputs="whole")
        self.train(*whole, "--checkpoint-dir=kept", "--checkpoint-interval=5", outputs="first")
        run = self.train("--nproc=2", "--strategy=fsdp", "--resume=kept/step-000000005", "--eval-interval=4", "--eval-iters=2",
                         "--sample-tokens=12", "--no-plots", small=[], outputs="rest")
        self.assertNotIn("with other settings", run.out)
        self.assertEqual(self.numbers("rest"), {name: values[5:] for name, values in self.numbers("whole").items()})
        run = self.train("--nproc=1", "--resume=kept/step-000000005", "--learning-rate=0.002", "--max-iters=6", outputs="other")
        self.assertIn("resuming with other settings than before: max_iters 8 -> 6, learning_rate 0.001 -> 0.002", run.out)
        # Nor does it make a model that the checkpoint cannot hold.
        program_runs.change_settings(self.path("kept/step-000000005/index.h5"), n_layer="99999")
        run = self.train("--resume=kept/step-000000005", small=[], outputs="other", code=1)
        self.assertRegex(run.errors()[-1], "the options ask for 99999 layers, but the files hold \\d+ tensors")

    def test_on_another_mesh(self):
        double = ["--dtype=float64"]
        self.train(*self.FSDP, *double, "--dropout=0", outputs="whole")
        self.train(*self.FSDP, *double, "--dropout=0", "--checkpoint-dir=kept", "--checkpoint-interval=5", outputs="first")
        whole = [float.fromhex(x) for x in self.numbers("whole")["loss"][5:]]
        for count, mesh in enumerate((["--nproc=1"], ["--nproc=3", "--strategy=zero1"], ["--nproc=2"],
                                      ["--nproc=4", "--strategy=fsdp", "--mesh=dp_shard=2,dp_replicate=2"])):
            self.train(*mesh, *double, "--resume=kept/step-000000005", outputs=f"rest{count}")
            rest = [float.fromhex(x) for x in self.numbers(f"rest{count}")["loss"]]
            self.assertEqual(len(rest), 3)
            for x, y in zip(whole, rest):
                self.assertLessEqual(abs(x - y), 1e-12 * x)  # as in strategies_test
        # Gone on in the same history.
        self.train("--nproc=1", *double, "--resume=kept/step-000000005", outputs="first")
        self.assertEqual(self.numbers("first")["loss"], self.numbers("whole")["loss"][:5] + self.numbers("rest0")["loss"])
        self.assertEqual(len(self.history("first")["dt_per_rank_of_1"]), 8)

    def test_scale_of_the_loss_is_kept(self):
        half = ["--nproc=2", "--strategy=zero1", "--dtype=float16"]
        self.train(*half, outputs="whole")
        self.train(*half, "--checkpoint-dir=kept", "--checkpoint-interval=4", outputs="first")
        self.train(*half, "--resume=kept/step-000000004", outputs="rest")
        self.assertEqual(self.numbers("rest"), {name: values[4:] for name, values in self.numbers("whole").items()})

    def test_latest_checkpoint_is_damaged(self):
        self.train(*self.FSDP, "--checkpoint-dir=kept", "--checkpoint-interval=3")
        os.remove(self.path("kept/step-000000008/rank-00001.h5"))
        run = self.train(*self.FSDP, "--resume=kept", outputs="rest")
        said = run.logged("--resume: ")
        self.assertEqual(len(said), 1, run.out)
        self.assertRegex(said[0], "taking .*/kept/step-000000006: the latest cannot be opened: .*/kept/step-000000008/rank-00001.h5: ")
        self.assertIn("Resuming after step 6", run.out)
        # The next save removes the damaged one, not the one that the run has come from.
        self.train(*self.FSDP, "--resume=kept", "--checkpoint-dir=kept", "--checkpoint-interval=3", "--max-iters=9", outputs="more")
        steps = sorted(name for name in os.listdir(self.path("kept")) if name.startswith("step"))
        self.assertEqual(steps, ["step-000000006", "step-000000009"])

    def test_checkpoints_are_gone(self):
        """Killed, and its checkpoints removed: the same command begins again, and the history of the first attempt is kept."""
        flags = ["--nproc=1", "--eval-interval=0", "--checkpoint-interval=2", "--resume=auto"]
        process, _ = self.begin(*flags, "--max-iters=100000")  # the fifth step behind it, the fourth is in the history
        process.kill()
        process.communicate()
        shutil.rmtree(self.path("kept"))
        run = self.train(*flags, "--checkpoint-dir=kept")
        self.assertRegex(run.out, r"--history: \S+/out/history.h5 has draws of an attempt .*; kept as \S+/out/history.h5.1\n")
        before = program_runs.print_history(runs.PRINT_HISTORY, self.path("out/history.h5.1"))
        self.assertGreaterEqual(len(before["step"]), 4)
        self.train("--nproc=1", "--eval-interval=0", outputs="whole")
        self.assertEqual(self.numbers(), self.numbers("whole"))

    def test_offloaded_moments(self):
        self.train("--nproc=2", "--strategy=zero1", outputs="whole")
        self.train("--nproc=2", "--strategy=zero1", "--offload=.", "--checkpoint-dir=kept", "--checkpoint-interval=4",
                   outputs="first")
        self.train("--nproc=2", "--strategy=zero1", "--offload=.", "--resume=kept/step-000000004", outputs="rest")
        self.assertEqual(self.numbers("rest"), {name: values[4:] for name, values in self.numbers("whole").items()})

    def begin(self, *flags):
        """A run of many steps, its fifth behind it, and what it has written."""
        process = self.start(runs.TRAIN, [*runs.SMALL, *flags, "--data=" + self.path("input.txt"), "--outputs=out",
                                          "--checkpoint-dir=kept"])
        out = []
        while sum("step=" in line for line in out) < 5:
            line = process.stdout.readline()
            self.assertTrue(line, "".join(out))
            out.append(line)
        return process, out

    def below(self, pid):
        """Processes that it has started, and theirs."""
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = [int(child) for child in file.read().split()]
        return children + [each for child in children for each in self.below(child)]

    def test_scheduler_that_signals_every_process(self):
        """Slurm and PBS send SIGTERM to mpirun, too, which by itself gives its ranks a second."""
        for grace, saved in (("--grace=1", False), ("--grace=600", True)):
            with self.subTest(grace):
                for name in ("kept", "out"):
                    shutil.rmtree(self.path(name), ignore_errors=True)
                process, out = self.begin("--nproc=2", "--strategy=fsdp", "--max-iters=100000", "--eval-interval=0", grace)
                mpirun, *ranks = self.below(process.pid)
                os.kill(ranks[0], signal.SIGSTOP)  # a step that takes longer
                for pid in (mpirun, *ranks, process.pid):
                    os.kill(pid, signal.SIGTERM)
                time.sleep(4)
                if saved:
                    os.kill(ranks[0], signal.SIGCONT)
                rest, err = process.communicate(timeout=100)
                self.assertEqual(process.returncode, 143, "".join(out) + rest + err)
                self.assertEqual("Stopped (SIGTERM) after step" in rest, saved, rest + err)
                self.assertEqual(os.path.exists(self.path("kept/latest")), saved)

    def stop_and_go_on(self, ranks, number=signal.SIGTERM, code=143):
        flags = [f"--nproc={ranks}", "--strategy=fsdp", "--max-iters=100000", "--lr-decay-iters=100", "--eval-interval=0"]
        process, out = self.begin(*flags)
        # The program passes it on to its ranks and waits until they have saved; mpirun would give them one second.
        os.kill(process.pid, number)
        rest, err = process.communicate(timeout=100)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn(f"Stopped ({number.name}) after step", rest, "".join(out) + err)
        self.assertEqual(process.returncode, code)
        self.go_on(flags, least=5)

    def go_on(self, flags, least):
        with open(self.path("kept/latest")) as file:
            done = int(file.read().split("-")[1])
        self.assertGreaterEqual(done, least)
        end = f"--max-iters={done + 3}"
        run = self.train(*flags, end, "--resume=kept", "--init-from=resume")
        self.assertIn(f"Resuming after step {done}: ", run.out)
        self.train(*flags, end, outputs="whole")
        self.assertEqual(self.numbers(), self.numbers("whole"))

    def test_stopped_by_sigterm(self):
        self.stop_and_go_on(1)

    def test_launched_ranks_stopped_by_sigterm(self):
        self.stop_and_go_on(2)

    def test_end_of_the_jobs_time(self):
        """It is nearly over a minute before."""
        flags = ["--nproc=2", "--strategy=fsdp", "--max-iters=100000", "--lr-decay-iters=100", "--eval-interval=0"]
        self.more = {"SLURM_JOB_END_TIME": str(int(time.time()) + 60)}
        run = self.train(*flags, "--checkpoint-dir=kept", code=143)
        self.assertIn("Stopped (the job's time is nearly over) after step", run.out)
        self.more = {}
        self.go_on(flags, least=1)

    def test_terminal_is_closed(self):
        self.stop_and_go_on(2, signal.SIGHUP, 128 + signal.SIGHUP)

    def test_a_rank_hangs_in_an_evaluation_alone(self):
        """--timeout counts there, too, and not the longer one of set-up."""
        self.train(*self.FSDP, "--checkpoint-dir=kept", outputs="whole")
        process = self.start(runs.TRAIN, [*runs.SMALL, *self.FSDP, "--data=" + self.path("input.txt"), "--resume=kept", "--eval-only",
                                          "--eval-iters=1000000", "--timeout=2"])
        while "Resuming" not in (line := process.stdout.readline()):
            self.assertTrue(line)
        time.sleep(3)  # set-up is over
        _, *ranks = self.below(process.pid)
        os.kill(ranks[-1], signal.SIGSTOP)
        _, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 70, err)
        self.assertRegex(err, r"rank [01] \([^)]*\) does not answer: its process is stopped")


if __name__ == "__main__":
    runs.main()
