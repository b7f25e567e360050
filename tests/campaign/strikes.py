"""Kinds of faults: how each is injected into an attempt, and the output and exit code expected of it.

A kind is a function of a `Strike` that returns the problems it found, as lines of text; an empty list if there are none.
"""
import os
import re
import resource
import signal
import subprocess
import time

import attempts
import ends

WATCHED_SECONDS = 12  # --timeout of runs in which a rank is stopped for good
STOPPED = 143
SAVED = "history saved in"  # the last line of a run


class Strike:
    """`moment`: lines of output after which it comes, and `delay` seconds more."""

    def __init__(self, case, ranks, make_command, data, folder, moment, delay, rng):
        self.case, self.ranks, self.make_command, self.data, self.folder = case, ranks, make_command, data, folder
        self.moment, self.delay, self.rng = moment, delay, rng
        self.kept = os.path.join(folder, "kept")
        self.code, self.attempt, self.holder = None, None, None

    def start(self, timeout=180, enter=(), before=None, **environment):
        self.attempt = attempts.Attempt(self.make_command(timeout), self.data, self.folder, enter, before, environment)
        return self.attempt

    def wait(self):
        """Until the moment; False where the run has ended before."""
        if not self.attempt.wait_for_lines(self.moment):
            return False
        time.sleep(self.delay)
        return self.attempt.process.poll() is None

    def choose_rank(self, attempt):
        """A rank and its process; None for both where not all ranks are there any more."""
        ranks = attempt.wait_for_ranks(self.ranks)
        if len(ranks) != self.ranks:
            return None, None
        rank = self.rng.choice(sorted(ranks))
        return rank, ranks[rank]

    def end(self):
        self.code = self.attempt.end()
        if self.code is None:
            return [f"hangs: not over after {attempts.SECONDS} s"]
        return [f"crash: {found[0]}"] if (found := attempts.CRASH.search(self.attempt.errors())) else []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.attempt is not None:
            self.attempt.kill()
        if self.holder is not None:
            self.holder.kill()
            self.holder.wait()

    def hold_mounts(self, script):
        """Words that enter a mount namespace in which `script` has been run; it ends with this strike."""
        self.holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-ec", script + "\necho ready\nexec sleep infinity"],
                                       stdout=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            raise RuntimeError("mounts for a fault could not be made")
        return ["nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt", f"--wd={self.folder}"]

    def in_mounts(self, *command):
        subprocess.run(["nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt", *command], check=True)


def kill_rank(strike):
    attempt = strike.start()
    struck = None
    if strike.wait():
        struck, process = strike.choose_rank(attempt)
        if struck is not None:
            attempts.tell(process, signal.SIGKILL)
    problems = strike.end()
    if struck is None or strike.ranks == 1 or problems:
        return problems
    if strike.code == 0:
        return [] if SAVED in attempt.text() else ["exit code 0 after the loss of a rank"]
    named = re.search(rf"rank {struck}\b", attempt.errors())
    return [] if named else [f"rank {struck} was killed and is not named"]


def kill_all(strike):
    attempt = strike.start()
    if strike.wait():
        attempt.kill()
    return strike.end()


def kill_parent(strike):
    """Of --nproc: its ranks must not stay."""
    attempt = strike.start()
    if strike.wait():
        attempt.wait_for_ranks(strike.ranks)
        attempts.tell(attempt.process.pid, signal.SIGKILL)
    return strike.end()


def pause_rank(strike):
    """Stopped and continued: nothing has happened."""
    attempt = strike.start()
    if strike.wait():
        rank, process = strike.choose_rank(attempt)
        if rank is not None:
            attempts.tell(process, signal.SIGSTOP)
            time.sleep(strike.rng.uniform(0.5, 3))
            attempts.tell(process, signal.SIGCONT)
    problems = strike.end()
    return problems or ([] if strike.code == 0 else [f"exit code {strike.code} after a pause"])


def stop_rank(strike):
    """Stopped for good: named."""
    if strike.ranks == 1:
        return pause_rank(strike)
    attempt = strike.start(timeout=WATCHED_SECONDS)
    stopped = None
    if strike.wait():
        stopped, process = strike.choose_rank(attempt)
        if stopped is not None:
            attempts.tell(process, signal.SIGSTOP)
            # When it has left the job and its process is about to end, nobody watches a rank any more.
            attempt.wait_for_process(4 * WATCHED_SECONDS)
            if SAVED in attempt.text():
                attempts.tell(process, signal.SIGCONT)
                stopped = None
    problems = strike.end()
    if stopped is None or problems:
        return problems
    if strike.code == 0:
        return ["exit code 0 with a stopped rank"]
    return [] if re.search(rf"rank {stopped}\b", attempt.errors()) else [f"rank {stopped} was stopped and is not named"]


def ask(number, code, times=1):
    """A signal after which a run saves and stops."""
    def strike_with(strike):
        attempt = strike.start()
        before, asked = ends.latest_step(strike.kept), False
        if strike.wait():
            seen, asked = attempt.steps_seen(), True
            for _ in range(times):
                attempt.process.send_signal(number)
                time.sleep(0.1)
        problems = strike.end()
        if not asked or problems or strike.code == 0 or not seen:
            return problems  # or before the first step: nothing to save
        if strike.code != code:
            return [f"exit code {strike.code} after {number.name}, not {code}"]
        if times > 1:
            return []
        name = f"Stopped ({number.name})"
        if name not in attempt.text():
            return [f"no line {name}"]
        return [] if ends.latest_step(strike.kept) > before else [f"{number.name} after {seen} lines of steps, no new checkpoint"]
    return strike_with


def walltime(strike):
    """The job's end time comes within the margin, one minute, at once or up to 3 s after the start."""
    before, rest = ends.latest_step(strike.kept), strike.rng.choice([0, strike.rng.uniform(0, 3)])
    attempt = strike.start(SLURM_JOB_END_TIME=str(time.time() + 60 + rest))
    problems = strike.end()
    if problems:
        return problems
    if strike.code == 0:
        # A run that is complete takes no step.
        return [f"{attempt.steps_seen()} steps, and none stops the run at the end of its time"] if rest == 0 and attempt.steps_seen() else []
    stopped = strike.code == STOPPED and "Stopped (the job's time is nearly over)" in attempt.text()
    if not stopped:
        return [f"exit code {strike.code} where the job's time is over"]
    return [] if ends.latest_step(strike.kept) > before else ["no new checkpoint at the end of the job's time"]


def second_job(strike):
    """Like two tasks of a job array on one folder: the second is refused, the first continues."""
    attempt = strike.start()
    if strike.wait():
        holds = os.path.exists(os.path.join(strike.kept, "lock"))
        second = attempts.Attempt(strike.make_command(180), strike.data, strike.folder)
        code, said = second.process.wait(attempts.SECONDS), second.errors_at_end()
        if holds and code != 0 and "is writing checkpoints there" not in said:
            return [f"a second job ends with {code}: {said[-300:]}"]
        if code == 0 and second.steps_seen() and attempt.process.poll() is None:
            return ["a second job has trained while the first one did"]
    problems = strike.end()
    return problems or ([] if strike.code == 0 or "is writing checkpoints" in attempt.errors() else [f"exit code {strike.code} of the first job"])


def refused(strike):
    """Expected of a file system that refuses writes: success, or exit code 1 with a line of error."""
    problems = strike.end()
    if problems or strike.code == 0:
        return problems
    lines = [line for line in strike.attempt.errors().splitlines() if line.startswith(strike.attempt.program + ": ")]
    return [] if strike.code == 1 and lines else [f"exit code {strike.code}, lines of error: {lines}"]


def limit_files(strike):
    """No file may grow beyond some bytes: writes fail as on a full disk. Several ranks are not even started: mpirun might hang."""
    size = int(10 ** strike.rng.uniform(3, 5.3))
    strike.start(before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
    problems = refused(strike)
    if problems or strike.ranks == 1:
        return problems
    return [] if strike.code == 1 and "raise the limit (ulimit -f)" in strike.attempt.errors() else [f"exit code {strike.code} under a limit on files"]


def fill_disk(strike):
    size = strike.rng.randrange(8, 600)
    os.makedirs(strike.kept, exist_ok=True)
    # What is there moves onto the small disk, and from it in the end.
    enter = strike.hold_mounts(f"cp -a {strike.kept} {strike.kept}.before\nmount -t tmpfs -o size=4m none {strike.kept}\n"
                               f"cp -a {strike.kept}.before/. {strike.kept}")
    used = int(subprocess.run([*enter, "du", "-sk", strike.kept], stdout=subprocess.PIPE, check=True, text=True).stdout.split()[0])
    strike.in_mounts("mount", "-o", f"remount,size={used + size}k", strike.kept)
    strike.start(enter=enter)
    problems = refused(strike)
    strike.in_mounts("sh", "-ec", f"rm -rf {strike.kept}.before && cp -a {strike.kept} {strike.kept}.before")
    os.rename(strike.kept, strike.kept + ".under")
    os.rename(strike.kept + ".before", strike.kept)
    return problems


def fill_shared_memory(strike):
    """/dev/shm has little left; a run may do without or say so."""
    size = strike.rng.choice([4, 64, 1024, 3000, 5000, 9000])
    enter = strike.hold_mounts(f"mount -t tmpfs -o size={size}k none /dev/shm")
    strike.start(enter=enter)
    problems = strike.end()
    said = [line for line in strike.attempt.errors().splitlines() if line.strip()]
    return problems or ([] if strike.code == 0 or said else [f"exit code {strike.code} without a word"])


def forbid_writing(strike):
    """The folder of checkpoints becomes read-only in mid-run."""
    os.makedirs(strike.kept, exist_ok=True)
    enter = strike.hold_mounts(f"mount --bind {strike.kept} {strike.kept}")
    strike.start(enter=enter)
    if strike.wait():
        # Busy as long as a checkpoint is being written.
        script = f"for i in $(seq 200); do mount -o remount,bind,ro {strike.kept} 2>/dev/null && exit; sleep 0.01; done"
        subprocess.run([*enter, "sh", "-c", script], check=True)
    return refused(strike)


KINDS = {
    "kill rank": kill_rank, "kill all": kill_all, "kill parent": kill_parent, "pause rank": pause_rank, "stop rank": stop_rank,
    "SIGTERM": ask(signal.SIGTERM, STOPPED), "SIGUSR1": ask(signal.SIGUSR1, STOPPED), "SIGINT": ask(signal.SIGINT, 130),
    "SIGINT twice": ask(signal.SIGINT, 130, times=2), "walltime": walltime, "second job": second_job, "file size": limit_files,
}
# These need mount namespaces.
MOUNTED = {"full disk": fill_disk, "full /dev/shm": fill_shared_memory, "read-only": forbid_writing}
# Strike only once training has begun: until then a rank may take half an hour.
IN_TRAINING = {"stop rank"}
