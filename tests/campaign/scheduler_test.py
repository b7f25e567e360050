"""Jobs of a private Slurm on this machine that are requeued, preempted, signalled, or started twice on one folder: the unchanged
batch script resumes until the run is done, and its final state is bitwise identical to an uninterrupted run."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "launch"))

import attempts
import ends
import slurm
import trainers

PROGRAMS = os.path.dirname(os.path.abspath(sys.argv.pop(1)))
SECONDS = 120
cluster = None


def setUpModule():
    global cluster
    if missing := slurm.reason():
        raise RuntimeError("this test starts a Slurm of its own; " + missing)
    cluster = slurm.Cluster(nodes=1, cores=2).__enter__()
    unittest.addModuleCleanup(cluster.__exit__)


class SchedulerTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="jobs")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.data = os.path.join(self.folder, "data")
        os.mkdir(self.data)
        trainers.write_data(self.data)

    def command(self, case, name, steps):
        folder = os.path.join(self.folder, name)
        os.makedirs(folder, exist_ok=True)
        return [*trainers.command(case, PROGRAMS, self.data, folder, timeout=100), f"--max-iters={steps}", "--lr-decay-iters=100"]

    def whole(self, case, steps):
        """The end of a run without interruption."""
        folder = os.path.join(self.folder, "whole")
        attempt = attempts.Attempt(self.command(case, "whole", steps), self.data, folder)
        self.assertEqual(attempt.end(), 0, attempt.text())
        return ends.end_of(folder)

    def submit(self, case, steps, *options):
        """Submits the batch script, the same each time; returns the job id."""
        script = os.path.join(self.folder, "job.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n#SBATCH --ntasks=2 --requeue --open-mode=append\nexec " + " ".join(self.command(case, "run", steps)) + "\n")
        environment = {**attempts.environment(self.data, self.folder), **cluster.environment}
        said = subprocess.run(["sbatch", "--output=" + self.path("out-%a"), "--error=" + self.path("err-%a"), *options, script],
                              env=environment, cwd=self.folder, check=True, stdout=subprocess.PIPE, text=True).stdout
        return re.search(r"\d+", said)[0]

    def path(self, name):
        return os.path.join(self.folder, name)

    def text(self, name):
        return attempts.read(self.path(name)).decode()

    def wait(self, condition, what):
        until = time.monotonic() + SECONDS
        while not condition():
            self.assertLess(time.monotonic(), until, f"waited in vain for {what}\n{self.said()}\n{cluster.logs()}")
            time.sleep(0.1)

    def said(self):
        return "\n".join(self.text(name)[-2000:] for name in sorted(os.listdir(self.folder)) if name.startswith(("out", "err")))

    def wait_for_end(self):
        self.wait(lambda: cluster.run("squeue", "--noheader") == "", "the end of all jobs")

    def steps_of(self, name):
        return len(attempts.STEP.findall(self.text(name)))

    def out(self):
        return next((name for name in os.listdir(self.folder) if name.startswith("out-")), "out-none")

    def test_requeued(self):
        self.requeue(lambda job: cluster.run("scontrol", "requeue", job))

    def test_preempted(self):
        """A job of a partition that comes first takes the node, as long as it runs."""
        self.requeue(lambda job: self.assertEqual(cluster.run("srun", "--partition=urgent", "--ntasks=2", "echo", "urgent"), 2 * "urgent\n"))

    def requeue(self, strike):
        """SIGTERM to all processes of the job, SIGKILL a second later; then the same job runs again. If one of mpirun's daemons ends
        first, the run resumes from an earlier checkpoint."""
        job = self.submit("gpt-fsdp", 200)
        self.wait(lambda: self.steps_of(self.out()) > 20, "steps")
        strike(job)
        self.wait(lambda: "Restarts=1" in cluster.run("scontrol", "show", "job", job), "the requeue")
        # It would begin when the credentials of its first start have expired.
        self.wait(lambda: (cluster.run("scontrol", "update", "JobId=" + job, "StartTime=now"),
                           "Resuming after step" in self.text(self.out()))[1], "the second start")
        self.wait_for_end()
        self.assertEqual(ends.differences(self.whole("gpt-fsdp", 200), self.path("run")), [], self.said())

    def test_signals_until_done(self):
        """As Slurm's --signal does before the time limit."""
        for number in ("USR1", "TERM"):
            self.submit("gpt", 1500)
            before = self.steps_of(self.out())
            self.wait(lambda seen=before: self.steps_of(self.out()) > seen + 20, "steps")
            cluster.run("scancel", "--signal=" + number, "--batch", "--name=job.sh")
            self.wait_for_end()
            self.assertIn(f"Stopped (SIG{number}) after step", self.text(self.out()), self.said())
        self.submit("gpt", 1500)
        self.wait_for_end()
        self.assertEqual(ends.differences(self.whole("gpt", 1500), self.path("run")), [], self.said())

    def test_array_on_one_folder(self):
        """One of two tasks is refused with one line; the other loses nothing."""
        self.submit("gpt", 1500, "--ntasks=1", "--array=0-1")
        self.wait_for_end()
        told = [self.text(f"err-{task}") for task in (0, 1)]
        refused = [text for text in told if "is writing checkpoints there; wait for it" in text]
        self.assertEqual(len(refused), 1, self.said())
        self.assertRegex(refused[0], r"^train_gpt: --checkpoint-dir: \S+/lock: process \d+ on \S+ \(job \d+\) is writing")
        self.assertEqual(ends.differences(self.whole("gpt", 1500), self.path("run")), [], self.said())


if __name__ == "__main__":
    unittest.main(verbosity=2)
