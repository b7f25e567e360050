"""What launch finds and prints, and bad input: one clear line, exit code 2, nothing started."""
import os
import re
import subprocess

import launches


class DryRunTest(launches.LaunchTest):
    def test_summary(self):
        run = self.launch("--dry-run", "--nproc=2", "--", launches.BEHAVE, "a b")
        self.assertEqual(run.err, "")
        for pattern in (r"^\[HOSTS\]\n    . \[host:0\] - \S+ \(2 ranks\)\n\n\[DIST INFO\]\n    . NGPUS=\d+\n    . NHOSTS=1\n"
                        r"    . NGPU_PER_HOST=\d+\n    . HOSTFILE=none\n    . DIST_LAUNCH=mpirun .*-n 2", "SCHEDULER=LOCAL",
                        r"STARTER=mpirun \(Open MPI\)", "RANKS=2"):
            self.assertRegex(run.out, pattern)
        self.assertRegex(run.lines[-1], r"^mpirun .*-n 2.* \S*/behave.sh 'a b'$")

    def test_plain_bullets_without_utf8(self):
        run = self.launch("--dry-run", "--", "true", environment=self.environment(LC_ALL="C"))
        self.assertIn("    * NHOSTS=1", run.lines)
        self.assertTrue(run.out.isascii())
        run = self.launch("--dry-run", "--", "true", environment=self.environment(LC_ALL="C.UTF-8"))
        self.assertIn("    \u2022 NHOSTS=1", run.lines)

    def test_starts_nothing(self):
        self.launch("--dry-run", "--log-dir=logs", "--", "touch", self.path("made"))
        self.assertEqual(os.listdir(self.folder), [])

    def test_command_can_be_pasted(self):
        command = self.launch("--dry-run", "--nproc=3", "--", launches.BEHAVE, "place", "it's $HOME").lines[-1]
        ran = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, text=True, check=True,
                             env=self.environment(), timeout=launches.SECONDS)
        self.assertEqual(sorted(ran.stdout.split("\n")[:-1]), ["rank 0 of 3", "rank 1 of 3", "rank 2 of 3"])

    def test_binding(self):
        cores = len(os.sched_getaffinity(0))
        self.assertIn("--oversubscribe --bind-to none -n %d " % (cores + 1),
                      self.launch("--dry-run", f"--nproc={cores + 1}", "--", "true").lines[-1])
        self.assertIn("--bind-to core -n 1 ", self.launch("--dry-run", "--nproc=1", "--", "true").lines[-1])
        self.assertIn("--bind-to none -n 1 ", self.launch("--dry-run", "--nproc=1", "--bind=none", "--", "true").lines[-1])

    def test_help(self):
        text = self.launch("--help").out
        for part in ("Usage: launch [--flagfile=FILE] [--flag=value ...] -- PROGRAM [ARGUMENT ...]", "Examples:", "--idle-timeout", "--log-dir",
                     "launch --nproc=2 --label -- hostname"):
            self.assertIn(part, text)
        examples = re.search(r"Examples:\n(.*?)\n\n", text, re.S)[1].splitlines()
        self.assertEqual(len(examples), 4)
        for example in examples:
            with self.subTest(example=example):
                self.assertRegex(example, "^ +launch ")
                command = re.sub("^ +launch", launches.LAUNCH, example)
                subprocess.run(["sh", "-c", command], check=True, cwd=self.folder, env=self.environment(), timeout=launches.SECONDS)
        logs = [name for name in os.listdir(self.path("logs")) if name.startswith("rank-")]
        # Without --nproc: one rank for each physical core, or GPU.
        ranks = re.search(r"RANKS=(\d+)", self.launch("--dry-run", "--", "true").out)[1]
        self.assertEqual(len(logs), int(ranks))

    def test_needs_no_program(self):
        self.assertTrue(self.launch("--dry-run", "--nproc=2").lines[-1].endswith(" -n 2 PROGRAM"))


    def test_jobs_whose_hosts_are_not_read(self):
        with open(self.path("hosts"), "w", encoding="utf-8") as file:
            file.write("localhost slots=2\n")
        for scheduler, variable in (("Grid Engine", "PE_HOSTFILE"), ("LSF", "LSB_JOBID")):
            with self.subTest(scheduler):
                environment = self.environment(**{variable: "7"})
                run = self.launch("--dry-run", "--nproc=4", "--", "true", code=2, environment=environment)
                self.assertEqual(run.errors, [f"launch: the hosts of a job of {scheduler} are not read; write them into a file, "
                                              "one a line as NAME slots=N, and give it as --hostfile=FILE"])
                run = self.launch("--dry-run", "--hostfile=hosts", "--", "true", environment=environment)
                self.assertIn("RANKS=2", run.out)


class BadInputTest(launches.LaunchTest):
    def fails(self, expected, *arguments, **environment):
        run = self.launch(*arguments, code=2, environment=self.environment(**environment))
        self.assertEqual(run.out, "")
        self.assertEqual(len(run.errors), 1, run.err)
        self.assertRegex(run.errors[0], "^launch: " + expected)

    def test_flags(self):
        self.fails("no program; write it behind two dashes: launch -- PROGRAM")
        self.fails("--nproc=0: expected a positive integer", "--nproc=0", "--", "true")
        self.fails("--nproc=two: expected a positive integer", "--nproc=two", "--", "true")
        self.fails("--idle-timeout=soon: expected a duration such as 30s", "--idle-timeout=soon", "--", "true")
        self.fails("--bind: 'cores' is no binding; expected none, core", "--bind=cores", "--", "true")
        self.fails("'torchrun' is not a launcher; expected mpirun, mpiexec or srun", "--starter=torchrun", "--", "true")
        self.fails("--nhosts=2: there is 1 host", "--nhosts=2", "--", "true")
        self.fails("unknown flag --hostfil; did you mean --hostfile", "--hostfil=x", "--", "true")

    def test_programs(self):
        self.fails("cannot start /nonexistent/x: there is no such file", "--", "/nonexistent/x")
        self.fails("cannot start no-such-program: it is not on the PATH", "--", "no-such-program")
        self.write("data", "no program")
        self.fails("cannot start ./data: it is no executable file", "--", "./data")
        self.fails("cannot start mpirun: neither mpirun nor mpiexec is on the PATH; install", "--", "/bin/true",
                   PATH=self.folder)

    def test_host_files(self):
        file = self.write("hosts", "localhost slots=1\nno-such-host.invalid slots=1\n")
        self.fails(f"{file}: no host is known by the name no-such-host.invalid", "--hostfile=hosts", "--", "true")
        file = self.write("bad", "localhost slots=x\n")
        self.fails(f"{file}:1: ", "--hostfile=bad", "--", "true")
        self.fails("/nonexistent", "--hostfile=/nonexistent", "--", "true")

    def test_node_files_of_pbs(self):
        here = {"PBS_JOBID": "7.server", "PBS_NODEFILE": self.write("nodes", "localhost\n"), "NCPUS": "3"}
        run = self.launch("--dry-run", environment=self.environment(LC_ALL="C", **here))
        self.assertIn("    * SCHEDULER=PBS", run.lines)
        self.assertIn("    * CORES_PER_HOST=3", run.lines)
        self.write("nodes", "localhost\nno-such-host.invalid\n")
        self.fails(f"{here['PBS_NODEFILE']}: no host is known by the name no-such-host.invalid", "--", "true", **here)

    def test_half_a_slurm_environment(self):
        self.fails("this SLURM job's environment cannot be trusted: .*SLURM_JOB_NODELIST", "--", "true",
                   SLURM_JOB_ID="7")

    def test_started_by_a_launcher(self):
        self.fails(r"it was itself started by mpirun \(Open MPI\), as rank 1 of 2", "--", "true",
                   OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_LOCAL_RANK="1",
                   OMPI_COMM_WORLD_LOCAL_SIZE="2")

    def test_logs_that_cannot_be_written(self):
        self.write("file", "")
        run = self.launch("--nproc=1", "--log-dir=file/logs", "--", "true", code=1)
        self.assertRegex(run.errors[-1], "^launch: --log-dir: cannot write .*file/logs: Not a directory")


if __name__ == "__main__":
    launches.main()
