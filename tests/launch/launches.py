"""Runs launch for the tests, and looks for processes that it leaves behind."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

LAUNCH, BEHAVE = (os.path.abspath(path) for path in sys.argv[1:3])
SECONDS = 60  # far more than anything here takes


class Run:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.lines, self.errors = out.splitlines(), err.splitlines()

    def own(self):
        """The lines of launch itself."""
        return [line for line in self.errors if line.startswith("launch: ")]


class LaunchTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="launch", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        self.mark = "mark" + uuid.uuid4().hex  # an argument that all processes of this test's jobs have
        self.addCleanup(self.end_processes)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def environment(self, **more):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("SLURM", "OMPI", "PMI", "PBS", "PLAIT", "HOSTFILE", "OMP_"))}
        return dict(environment, TMPDIR="/tmp", TERM="xterm", **more)

    def start(self, *arguments, environment=None, **options):
        options = dict({"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}, **options)
        return subprocess.Popen([LAUNCH, *arguments], env=environment or self.environment(), cwd=self.folder,
                                text=True, encoding="utf-8", **options)

    def launch(self, *arguments, code=0, environment=None, input=None):
        options = {} if input is None else {"stdin": subprocess.PIPE}
        process = self.start(*arguments, environment=environment, **options)
        out, err = process.communicate(input=input, timeout=SECONDS)
        self.assertEqual(process.returncode, code, out + err)
        return Run(process.returncode, out, err)

    def ranks(self, count, *behaviour, flags=(), **options):
        return self.launch(f"--nproc={count}", *flags, "--", BEHAVE, *behaviour, self.guilty(behaviour), self.mark, **options)

    def started(self, count, *behaviour, flags=(), ready="ready", **options):
        """A job whose ranks have all said that they are ready."""
        process = self.start(f"--nproc={count}", *flags, "--", BEHAVE, *behaviour, "1", self.mark, **options)
        self.addCleanup(self.close, process)
        for _ in range(count):
            self.assertIn(ready, process.stdout.readline())
        return process

    def close(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def ended(self, process, code):
        out, err = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, code, out + err)
        return Run(process.returncode, out, err)

    @staticmethod
    def guilty(behaviour):
        return "1" if len(behaviour) == 1 else ""

    def processes(self):
        """Those of this test's jobs that live, as "pid command"."""
        listed = subprocess.run(["ps", "-eo", "pid=,stat=,args="], check=True, stdout=subprocess.PIPE, text=True).stdout
        return [line for line in listed.splitlines() if self.mark in line and line.split()[1][0] != "Z"]

    def assert_nothing_left(self):
        """Kernel and mpirun need a moment to end processes whose agent has gone."""
        until = time.monotonic() + SECONDS
        while self.processes() and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual(self.processes(), [])

    def end_processes(self):
        for line in self.processes():
            try:
                os.kill(int(line.split()[0]), signal.SIGKILL)
            except ProcessLookupError:
                pass

    def assert_last_lines(self, run, *patterns):
        """The end of standard error, line by line."""
        last = run.errors[-len(patterns):]
        self.assertEqual(len(last), len(patterns), run.err)
        for line, pattern in zip(last, patterns):
            self.assertTrue(re.fullmatch(pattern, line), f"{line!r} is not {pattern!r} in\n{run.err}")


def main():
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
