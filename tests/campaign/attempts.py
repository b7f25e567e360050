"""One run of a trainer: its output line by line, its ranks, its exit."""
import os
import re
import signal
import subprocess
import threading
import time

SECONDS = 240  # longer than any attempt takes on a busy machine: what takes longer hangs
STEP = re.compile(r"\b(?:step|iter)=(\d+) loss=|Train Epoch: .*Loss:|\bepoch=(\d+) |\blevel=\d+ ")
CRASH = re.compile(r"Segmentation fault|Bus error|terminate called|core dumped|is dead: it crashed", re.I)


def environment(data, folder):
    """A minimal environment; MPI's files go into the folder."""
    keep = {name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH", "GLIBC_TUNABLES") if name in os.environ}
    return {**keep, "OMP_NUM_THREADS": "1", "TMPDIR": folder, "LC_ALL": "C.UTF-8", "CUDA_VISIBLE_DEVICES": "",
            "XDG_CACHE_HOME": data, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def alive(pid):
    return read(f"/proc/{pid}/stat").rpartition(b") ")[2][:1] not in (b"", b"Z")


def tell(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class Attempt:
    def __init__(self, command, data, folder, enter=(), before=None, more=None):
        """`enter`: words in front of the command; `before`: called in the new process; `more`: variables."""
        self.program, self.folder = os.path.basename(command[0]), folder.encode()
        self.lines, self.said, self.ended = [], [], False
        self.news = threading.Condition()
        self.process = subprocess.Popen([*enter, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, cwd=folder, env={**environment(data, folder), **(more or {})}, preexec_fn=before,
                                        encoding="utf-8", errors="backslashreplace")
        self.readers = [threading.Thread(target=self.gather, daemon=True),
                        threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True)]
        for reader in self.readers:
            reader.start()

    def gather(self):
        for line in self.process.stdout:
            with self.news:
                self.lines.append(line.rstrip("\n"))
                self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    def wait_for_lines(self, count, seconds=SECONDS):
        """False where it ended before."""
        with self.news:
            self.news.wait_for(lambda: self.ended or len(self.lines) >= count, seconds)
            return len(self.lines) >= count and not self.ended

    def wait_for_process(self, seconds):
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass

    def processes(self):
        """Live processes with the run's folder in their command: the program, mpirun, ranks."""
        return [int(pid) for pid in filter(str.isdigit, os.listdir("/proc"))
                if self.folder in read(f"/proc/{pid}/cmdline") and alive(pid)]

    def ranks(self):
        """Rank to process, as far as started."""
        found = {}
        for pid in sorted(self.processes()):
            variables = dict(entry.split(b"=", 1) for entry in read(f"/proc/{pid}/environ").split(b"\0") if b"=" in entry)
            if b"OMPI_COMM_WORLD_RANK" in variables:
                found.setdefault(int(variables[b"OMPI_COMM_WORLD_RANK"]), pid)
        return found

    def wait_for_ranks(self, count):
        """Rank to process, of --nproc; of one rank the process itself. Fewer if the run ended before."""
        if count == 1:
            return {0: self.process.pid} if self.process.poll() is None else {}
        until = time.monotonic() + SECONDS
        while len(found := self.ranks()) < count and self.process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        return found

    def end(self, seconds=SECONDS):
        """The exit code, or None where something of it had not ended in time and was killed."""
        until = time.monotonic() + seconds
        while (left := self.process.poll() is None or self.processes()) and time.monotonic() < until:
            time.sleep(0.1)
        self.kill()
        self.errors_at_end()
        return None if left else self.process.returncode

    def kill(self):
        """SIGKILL for all, including processes started meanwhile."""
        while (left := self.processes()) or self.process.poll() is None:
            for pid in [*left, self.process.pid]:
                tell(pid, signal.SIGKILL)
            time.sleep(0.05)

    def steps_seen(self):
        return sum(STEP.search(line) is not None for line in self.lines)

    def errors(self):
        return "".join(self.said)

    def errors_at_end(self):
        for reader in self.readers:
            reader.join(20)
        return self.errors()

    def text(self):
        return "\n".join(self.lines) + "\n" + self.errors()
