"""Errors of programs under other ulimits than of address space, with an unwritable home, and with a closed standard output."""
import os
import resource
import subprocess

import program_runs

GPT, GRU, DOCTOR, LAUNCH = program_runs.programs(4)
RUN = ["--data=input.txt", "--n-layer=1", "--n-head=2", "--n-embd=16", "--block-size=8", "--batch-size=2", "--eval-interval=0",
       "--sample-tokens=0", "--no-plots", "--no-trace"]


class SurroundingsTest(program_runs.ProgramTest):
    variables = {}

    def environment(self):
        return {**super().environment(), "XDG_CACHE_HOME": self.shared, **self.variables}

    def setUp(self):
        super().setUp()
        with open(self.path("input.txt"), "w", encoding="utf-8") as file:
            file.write("to be or not to be, that is the question\n" * 50)

    def run_limited(self, kind, most, command, code):
        """Its lines of error."""
        run = subprocess.run(command, env=self.environment(), cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=240, preexec_fn=lambda: resource.setrlimit(kind, (most, most)))
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run.stderr.splitlines()

    def test_far_too_many_ranks(self):
        cores = len(os.sched_getaffinity(0))
        ranks = 100 * cores  # 200 on two cores
        expected = (f"--nproc={ranks}: this process may use {cores} processors; expected at most 32 ranks for each, or ranks that mpirun starts on "
                    "several machines")
        for program, flags, code in ((GPT, RUN, 1), (LAUNCH, ["--", "true"], 2)):
            run = self.finish(self.start([program, f"--nproc={ranks}", *flags]), code)
            self.assertEqual(run.err, f"{os.path.basename(program)}: {expected}\n")
        run = self.finish(self.start([DOCTOR, f"--nproc={ranks}"]), 1)
        self.assertIn(f"ERROR    start: {ranks} ranks do not start: {expected}; the checks below are of this host alone\n", run.out)
        self.assertEqual(run.err, "")

    def test_few_open_files(self):
        """mpirun hangs with so few."""
        expected = "this process may have 32 files open; 2 ranks need 80: raise the limit (ulimit -n)"
        for program, flags, code in ((GPT, RUN, 1), (LAUNCH, ["--", "true"], 2)):
            errors = self.run_limited(resource.RLIMIT_NOFILE, 32, [program, "--nproc=2", *flags], code)
            self.assertEqual(errors, [f"{os.path.basename(program)}: {expected}"])

    def test_small_files(self):
        """mpirun may hang where its files of shared memory cannot be made; a single rank has none."""
        expected = "this process may write files of 20480 bytes; to start 2 ranks needs 16 MiB: raise the limit (ulimit -f)"
        for program, flags, code in ((GPT, RUN, 1), (LAUNCH, ["--", "true"], 2)):
            errors = self.run_limited(resource.RLIMIT_FSIZE, 20480, [program, "--nproc=2", *flags], code)
            self.assertEqual(errors, [f"{os.path.basename(program)}: {expected}"])

    def test_data_that_cannot_be_written(self):
        """A limit on files is met as a full disk is: prepared data is not kept, which is one line of error."""
        self.variables = {"XDG_CACHE_HOME": self.path("cache")}
        for program, flags in ((GPT, RUN), (GRU, ["--percent-data=0.02", "--epochs=1"])):
            for size in (1000, 6000):
                errors = self.run_limited(resource.RLIMIT_FSIZE, size, [program, *flags, "--nproc=1"], 1)
                self.assertEqual(len(errors), 1, errors)
                self.assertRegex(errors[0], rf"^{os.path.basename(program)}: .*/cache/.* not written: .*File too large")

    def test_reader_that_goes_away(self):
        """In a private /dev/shm: other tests use the machine's."""
        script = 'mount -t tmpfs none /dev/shm && "$0" "$@" | head -1; ls -A /dev/shm'
        own = ["unshare", *([] if os.getuid() == 0 else ["--map-root-user"]), "--mount", "sh", "-c", script]
        for ranks in (1, 2):
            run = subprocess.run([*own, GPT, *RUN, f"--nproc={ranks}", "--log-interval=1", "--max-iters=100000000", f"--outputs={ranks}"],
                                 env=self.environment(), cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertEqual(len(run.stdout.splitlines()), 1, run.stdout)

    def test_home_that_cannot_be_written(self):
        self.variables = {"XDG_CACHE_HOME": "", "HOME": "/proc"}
        for program, flags in ((GPT, RUN), (GRU, ["--percent-data=0.02", "--epochs=1"])):
            for ranks in (1, 2):
                run = self.finish(self.start([program, *flags, f"--nproc={ranks}"]), 1)
                self.assertEqual(run.errors(), [f"{os.path.basename(program)}: cannot create directory /proc/.cache/plait/data: No such file or "
                                                "directory; set XDG_CACHE_HOME to a folder that can be written"])

    def test_no_home(self):
        """A user whom no table of users knows, as in a container."""
        environment = {name: value for name, value in self.environment().items() if name not in ("HOME", "XDG_CACHE_HOME")}
        for program, flags in ((GPT, RUN), (GRU, ["--percent-data=0.02", "--epochs=1"])):
            with self.subTest(program=program):
                run = subprocess.run(["unshare", "--user", "--map-user=54321", program, *flags, "--nproc=1"], env=environment,
                                     cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)
                self.assertEqual(run.returncode, 1, run.stderr)
                self.assertEqual(run.stderr, f"{os.path.basename(program)}: no home folder: set HOME or XDG_CACHE_HOME\n")
        run = subprocess.run(["unshare", "--user", "--map-user=54321", GPT, *RUN, "--nproc=2"], env=environment, cwd=self.folder,
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)
        self.assertEqual((run.returncode, run.stderr), (1, "train_gpt: no home folder, which mpirun needs: set HOME\n"))


if __name__ == "__main__":
    program_runs.main(4)
