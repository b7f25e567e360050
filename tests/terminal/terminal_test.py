"""Progress bars, ^C and the last lines of jobs that fail, as a user sees them."""
import os
import re
import time

import program_runs
import screen

NAMES = ["train_cnn", "train_gpt", "train_gru", "train_llama", "train_odenet", "train_video", "train_vit", "test_dist"]
PROGRAMS = dict(zip(NAMES, program_runs.programs(len(NAMES))))

FOREVER = "100000000"
GPT = ["train_gpt", "--data=input.txt", "--n-layer=1", "--n-head=2", "--n-embd=32", "--block-size=16", "--batch-size=4",
       "--max-iters=" + FOREVER, "--log-interval=50", "--sample-tokens=0"]
ESTIMATES = [*GPT, "--eval-iters=" + FOREVER]
STEPS = [*GPT, "--eval-interval=0"]
VIT = ["train_vit", "--preset=cpu", "--dim=16", "--heads=2", "--head-dim=8", "--mlp-dim=24"]
WIDTHS = (80, 100, 160)
DRAWN = 4  # different bars to wait for
# Seconds from ^C to the line that answers it. Where other work keeps all cores busy, the scheduler's delays come on top.
def answer_seconds():
    return 1 if os.getloadavg()[0] <= len(os.sched_getaffinity(0)) else 5


AT_ONCE = 20  # seconds in which a program ends; a step of test_two_interrupts takes minutes
# Flags, and what stands before the bar.
RUNS = [
    ([*STEPS, "--nproc=2"], r"step \d+ of \d+ "),
    ([*ESTIMATES, "--nproc=1"], "training loss "),
    (["train_cnn", "--nproc=2", "--epochs=50", "--max-samples=512", "--batch-size=16"], r"epoch \d+ of \d+ "),
    (["train_gru", "--percent-data=0.05", "--batch-size=20", "--hidden-size=12", "--log-interval=1",
      "--epochs=1000000"], r"epoch \d+ of \d+ "),
    (["train_llama", "--n-layers=1", "--n-heads=2", "--n-kv-heads=2", "--dim=32", "--hidden=40", "--vocab-size=50",
      "--seq-length=8", "--batch-size=4", "--max-iters=" + FOREVER], r"step \d+ of \d+ "),
    (["train_odenet", "--layers=4", "--samples=1000", "--epochs=1000000"], r"epoch \d+ of \d+ "),
    (["train_video", "--sequence-length=8", "--frame-size=32", "--hidden-size=16", "--synthetic-videos=1000",
      "--synthetic-classes=2"], r"frame features "),
    ([*VIT, "--patch-size=8", "--depth=1", "--max-iters=" + FOREVER], r"step \d+ of \d+ "),
    # One step; each of the test's 1000 images is a batch of 1024 patches.
    ([*VIT, "--patch-size=1", "--depth=8", "--max-iters=1", "--batch-size=1", "--test-batch-size=1"], "test ")]
BAR = r"%s\[[=> ]*\] +(\d+)%% [-:\d]+ (left|so far)"
REST = re.compile(r"\d+% [-:\d]+ (left|so far)|\[=*>? *\] +\d+%|^(preparing|finishing|checkpoint|sample) \d+:\d\d")

# What Open MPI's shared memory writes behind whatever stands on the line, where one rank ends while another reads from it.
READ_OF_ENDED = re.compile(r"\[.*:\d+\] Read -1, expected \d+, errno = 3")


class TerminalTest(program_runs.ProgramTest):
    path_before, temporary = "", "/tmp"

    def environment(self):
        own = super().environment()
        return {**own, "TERM": "xterm", "XDG_CACHE_HOME": self.shared, "TMPDIR": self.temporary,
                "PATH": self.path_before + own["PATH"]}

    def setUp(self):
        super().setUp()
        with open(self.path("input.txt"), "w", encoding="utf-8") as file:
            file.write("to be or not to be, that is the question\n" * 50)

    def session(self, columns, flags):
        name, *flags = flags
        return screen.Session([PROGRAMS[name], *flags], columns, self.environment(), self.folder)

    def shown(self, session):
        """Lines at the end, without empty ones behind the last."""
        lines = session.screen.lines()
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def files(self):
        return {os.path.join(folder, name) for folder, _, names in os.walk(self.folder) for name in names}

    def test_bars(self):
        for number, (flags, label) in enumerate(RUNS):
            sessions, answers = [self.session(columns, [*flags, f"--outputs={number}-{columns}"]) for columns in WIDTHS], []
            most = answer_seconds()
            for columns, session in zip(WIDTHS, sessions):
                with self.subTest(program=flags[0], columns=columns, flags=flags[1:]):
                    answers.append(self.check_bar(session, columns, flags, label))
            with self.subTest(program=flags[0], flags=flags[1:]):
                most = max(most, answer_seconds())
                self.assertLess(min(answers, default=0), most)  # the others compete with the sessions behind them
        self.assertEqual([path for path in self.files() if path.endswith((".png", ".svg", ".partial"))], [])

    def check_bar(self, session, columns, flags, label):
        """Returns the seconds from ^C to its answer."""
        bar, count = re.compile(BAR % f"({label})"), re.compile(r"(\w+) (\d+) of (\d+)")
        bars = lambda: [found for found in map(bar.match, session.screen.drawn) if found]

        def enough():
            labels = {found[1] for found in bars()}
            return len({found[0] for found in bars()}) >= DRAWN and (len(labels) > 1 or "epoch" not in label)
        found = session.until(enough)
        typed = time.monotonic()
        session.type("\x03")
        session.until(lambda: flags[0] + ": interrupted" in session.screen.lines())
        answer = time.monotonic() - typed
        code = session.end()
        lines = [line for line in self.shown(session) if not READ_OF_ENDED.search(line)]
        self.assertTrue(found, lines)
        self.assertEqual(code, 130, lines)
        self.assertEqual(lines[-1], flags[0] + ": interrupted")
        self.assertEqual([line for line in session.screen.wrapped if REST.search(line)], [])
        self.assertEqual([line for line in lines if REST.search(line)], [])
        before = 0
        for drawn in bars():
            self.assertLess(len(drawn[0]), columns)
            # Of the whole run: an epoch or step begins where the one before it ended.
            percent = int(drawn[2])
            self.assertGreaterEqual(percent, before, drawn[0])
            before = percent
            if counted := count.match(drawn[1]):
                number, of = int(counted[2]), int(counted[3])
                self.assertLessEqual(percent, 100 * number / of, drawn[0])
                self.assertGreaterEqual(percent + 1, 100 * (number - 1) / of, drawn[0])
        return answer

    def expect_end_of(self, pid):
        """It may be ending, or a zombie that nobody waits for."""
        end = time.monotonic() + AT_ONCE
        while time.monotonic() < end:
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    if file.read().rpartition(") ")[2][0] == "Z":
                        return
            except OSError:
                return
            time.sleep(0.02)
        self.fail(f"process {pid} stays")

    def test_interrupted_plots(self):
        """A gnuplot that has written half of each picture: neither these nor it stay."""
        os.mkdir(self.path("bin"))
        slow = self.path("bin/gnuplot")
        with open(slow, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n"
                       "sed -n \"s/^set output '\\(.*\\)'/\\1/p\" \"$2\" | while read -r name; do echo half >\"$name\"; done\n"
                       f"echo $$ >{slow}.pid\nmv {slow}.pid {self.path('drawing')}\n"
                       "exec sleep 1000\n")
        os.chmod(slow, 0o755)
        self.path_before, self.temporary = self.path("bin") + ":", self.path("bin")
        for ranks in (1, 2):
            with self.subTest(ranks=ranks):
                drawing = self.path("drawing")
                session = self.session(100, [*STEPS, "--max-iters=3", f"--nproc={ranks}", f"--outputs={ranks}"])
                finishing = lambda: re.match(r"finishing \d+:\d\d", session.screen.lines()[-1])
                self.assertTrue(session.until(lambda: os.path.exists(drawing) and finishing()), self.shown(session))
                with open(drawing, encoding="utf-8") as file:
                    drawer = int(file.read())
                os.remove(drawing)
                session.type("\x03")
                self.assertEqual(session.end(AT_ONCE), 130, self.shown(session))
                self.assertEqual(self.shown(session)[-1], "train_gpt: interrupted")
                self.assertTrue(os.path.exists(self.path(f"{ranks}/history.h5")))
                self.assertEqual([path for path in self.files() if path.endswith((".png", ".svg", ".partial", ".tmp"))], [])
                self.expect_end_of(drawer)

    def test_help(self):
        """Lines as wide as the terminal, but for examples, which are pasted."""
        for name in NAMES:
            for columns in WIDTHS:
                with self.subTest(program=name, columns=columns):
                    session = self.session(columns, [name, "--help"])
                    self.assertEqual(session.end(), 0)
                    examples = re.search("\nExamples:\n(.*?)\n\n", "\n".join(session.screen.lines()), re.S)[1].splitlines()
                    self.assertEqual([line for line in session.screen.wrapped if line not in examples], [])
                    self.assertGreater(max(map(len, self.shown(session))), min(columns, 100) - 10)

    def test_two_interrupts(self):
        """A program that saves its state first says so at once, in an evaluation too; another ^C to stop there."""
        long = "--gradient-accumulation-steps=1000000"  # a step that does not end
        for flags, bar in ((ESTIMATES, "training loss ["),
                           (["train_gru", "--percent-data=0.05", "--batch-size=20", "--hidden-size=12", long], "epoch 1 of "),
                           (["train_cnn", "--max-samples=512", "--batch-size=16", long], "epoch 1 of ")):
            for ranks in (1, 2):
                with self.subTest(program=flags[0], ranks=ranks):
                    self.interrupt_twice(flags, bar, ranks)

    def interrupt_twice(self, flags, bar, ranks):
        folder = f"{flags[0]}-{ranks}"
        session = self.session(100, [*flags, f"--nproc={ranks}", f"--checkpoint-dir={folder}/kept", f"--outputs={folder}"])
        shows = lambda text: lambda: any(text in line for line in session.screen.lines())
        self.assertTrue(session.until(shows(bar)), self.shown(session))
        session.type("\x03")
        saving = flags[0] + ": interrupted; ends after this step, with its state saved (again: at once)"
        self.assertTrue(session.until(shows(saving)), self.shown(session))
        session.type("\x03")
        typed = time.monotonic()
        self.assertEqual(session.end(), 130, self.shown(session))
        self.assertLess(time.monotonic() - typed, AT_ONCE)
        lines = self.shown(session)
        self.assertEqual(lines[-1], flags[0] + ": interrupted")
        self.assertEqual(lines.count(saving), 1)
        self.assertEqual([line for line in lines if REST.search(line)], [])
        self.assertFalse(os.path.exists(self.path(f"{folder}/kept/latest")))

    def test_last_lines(self):
        """In a file: nothing of bars, mpirun has no last word. (Of ranks that hang or are killed: //tests/test_dist:fault_test.)"""
        with open(self.path("used.h5"), "w", encoding="utf-8") as file:
            file.write("of another run")
        for name, flags, code, expected in (
                ("train_gpt", ["--nproc=2", "--data=missing.txt"], 1, [r"train_gpt: .*/missing.txt: cannot be read: .*"]),
                ("train_gpt", [*GPT[1:], "--nproc=2", "--history=used.h5"], 1, [r"train_gpt: .*/used.h5: holds an earlier run: .*"])):
            with self.subTest(flags=flags):
                run = self.finish(self.start([PROGRAMS[name], *flags]), code)
                errors = run.err.splitlines()
                self.assertEqual(len(errors), len(expected), run.err)
                for line, pattern in zip(errors, expected):
                    self.assertRegex(line, f"^{pattern}$")
                self.assertNotIn("\x1b", run.out + run.err)


if __name__ == "__main__":
    program_runs.main(len(NAMES))
