"""Runs programs for their tests, each in a temporary folder, and captures their output."""
import json
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib


def programs(count):
    """Paths of the first programs of the command line."""
    return [os.path.abspath(path) for path in sys.argv[1:1 + count]]


class Run:
    def __init__(self, code, out, err):
        self.code = code
        self.out, self.err = out.replace("\r\n", "\n"), err.replace("\r\n", "\n")
        self.lines = self.out.splitlines()

    def logged(self, first):
        """What follows the head of logged lines, where it begins with the pattern `first`."""
        return re.findall(r"\]\[INFO\]\[\w+:\d+\] - (%s.*)" % first, self.out)

    def errors(self):
        """Lines of standard error: of a program under --nproc nothing of mpirun's."""
        return [line for line in self.err.splitlines() if line.strip()]

    def errors_of_ranks(self):
        """The same of a job that was started with mpirun, without mpirun's own messages."""
        own = re.split(r"-{20,}", self.err)[::2]
        return [line for line in "".join(own).splitlines() if line.strip() and "mpirun" not in line]


class ProgramTest(unittest.TestCase):
    run_class = Run

    @classmethod
    def setUpClass(cls):
        """A folder for what the tests of a class share."""
        cls.shared = tempfile.mkdtemp(prefix="shared")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.shared)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="run")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def environment(self):
        """A minimal environment: independent of the caller's settings and GPUs."""
        keep = {name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH", "GLIBC_TUNABLES") if name in os.environ}
        return {**keep, "OMP_NUM_THREADS": "1", "TMPDIR": "/tmp", "LC_ALL": "C.UTF-8", "CUDA_VISIBLE_DEVICES": ""}

    def start(self, command, largest_file=None, stdin=subprocess.DEVNULL):
        """`largest_file`: in bytes; a write beyond it fails, as on a full disk (EFBIG)."""
        def limit():
            if largest_file is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
        # Python ignores the signal that comes with such a write; so does the program then.
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=stdin,
                                encoding="utf-8", errors="backslashreplace", env=self.environment(), cwd=self.folder,
                                preexec_fn=limit, restore_signals=False)

    def finish(self, process, code=0):
        """The run; `code` is the exit status that it must have, or None."""
        out, err = process.communicate(timeout=240)
        run = self.run_class(process.returncode, out, err)
        if code is not None:
            self.assertEqual(run.code, code, run.out + run.err)
        return run


def change_settings(index, **settings):
    """Writes other settings into a checkpoint's index.h5, with checksums that are right (data/hdf5/address_table.h)."""
    with open(index, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[-16:-8])[0]
    hdf5, table = data[:-20 - size], json.loads(data[-20 - size:-20])
    offset, size, _ = table["arrays"]["/plait/contents"]
    contents = json.loads(hdf5[offset:offset + size])
    for name, value in settings.items():
        assert "setting." + name in contents["texts"], name
        contents["texts"]["setting." + name] = value
    changed = json.dumps(contents).encode()
    table["arrays"]["/plait/contents"] = [len(hdf5), len(changed), zlib.crc32(changed)]
    text = json.dumps(table).encode()
    with open(index, "wb") as file:
        file.write(hdf5 + changed + text + struct.pack("<IQ", zlib.crc32(text), len(text)) + b"plaitad1")


def print_history(program, path):
    """Numbers by name, as text that shows every bit."""
    text = subprocess.run([program, path], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {line.split()[0]: line.split()[1:] for line in text.splitlines()}


def main(count):
    """Runs the tests that are named behind `count` programs, or all."""
    unittest.main(argv=[sys.argv[0]] + sys.argv[1 + count:], verbosity=2)
