"""Progress bars, ^C and the last lines of jobs that fail, as a user sees them."""
import os
import re

import program_runs
import screen

NAMES = ["train_cnn", "train_gpt", "train_gru", "train_llama", "train_odenet", "train_video", "train_vit", "test_dist"]
PROGRAMS = dict(zip(NAMES, program_runs.programs(len(NAMES))))

FOREVER = "100000000"
GPT = ["train_gpt", "--data=input.txt", "--n-layer=1", "--n-head=2", "--n-embd=32", "--block-size=16", "--batch-size=4",
       "--max-iters=" + FOREVER, "--log-interval=50", "--sample-tokens=0"]
ESTIMATES = [*GPT, "--eval-iters=" + FOREVER]
STEPS = [*GPT, "--eval-interval=0"]
WIDTHS = (80, 100, 160)
# Flags, and what stands before the bar.
RUNS = [
    ([*STEPS, "--nproc=2"], r"step \d+ of \d+ "),
    (ESTIMATES, "training loss "),
    (["train_cnn", "--nproc=2", "--epochs=20"], r"epoch \d+ of \d+ "),
    (["train_gru", "--percent-data=0.05", "--batch-size=20", "--hidden-size=12", "--log-interval=1",
      "--epochs=1000000"], r"epoch \d+ of \d+ "),
    (["train_llama", "--n-layers=1", "--n-heads=2", "--n-kv-heads=2", "--dim=32", "--hidden=40", "--vocab-size=50",
      "--seq-length=8", "--batch-size=4", "--max-iters=" + FOREVER], r"step \d+ of \d+ "),
    (["train_odenet", "--layers=4", "--samples=1000", "--epochs=1000000"], r"epoch \d+ of \d+ "),
    (["train_video", "--sequence-length=8", "--frame-size=32", "--hidden-size=16", "--synthetic-videos=1000",
      "--synthetic-classes=2"], r"frame features "),
    (["train_vit", "--preset=cpu", "--patch-size=8", "--dim=16", "--depth=1", "--heads=2", "--head-dim=8",
      "--mlp-dim=24", "--max-iters=" + FOREVER], r"step \d+ of \d+ ")]
BAR = r"%s\[[=> ]*\] +\d+%% [-:\d]+ (left|so far)"
REST = re.compile(r"\d+% [-:\d]+ (left|so far)|\[=*>? *\] +\d+%|^(preparing|finishing|checkpoint|sample) \d+:\d\d")


class TerminalTest(program_runs.ProgramTest):
    def environment(self):
        return {**super().environment(), "TERM": "xterm", "XDG_CACHE_HOME": self.shared}

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
            sessions = [self.session(columns, [*flags, f"--outputs={number}-{columns}"]) for columns in WIDTHS]
            for columns, session in zip(WIDTHS, sessions):
                with self.subTest(program=flags[0], columns=columns, flags=flags[1:]):
                    self.check_bar(session, columns, flags, label)
        self.assertEqual([path for path in self.files() if path.endswith((".png", ".svg", ".partial"))], [])

    def check_bar(self, session, columns, flags, label):
        bar, seen = re.compile(BAR % label), set()

        def enough():
            seen.update(line for line in session.screen.lines()[-3:] if bar.match(line))
            return len(seen) >= 2
        found = session.until(enough)
        session.type("\x03")
        code = session.end()
        lines = self.shown(session)
        self.assertTrue(found, lines)
        self.assertEqual(code, 130, lines)
        self.assertEqual(lines[-1], flags[0] + ": interrupted")
        for line in seen:
            self.assertLess(len(line), columns)
        self.assertEqual([line for line in session.screen.wrapped if REST.search(line)], [])
        self.assertEqual([line for line in lines if REST.search(line)], [])

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
        for ranks in (1, 2):
            with self.subTest(ranks=ranks):
                session = self.session(100, [*ESTIMATES, f"--nproc={ranks}", "--checkpoint-dir=kept"])
                shows = lambda text: lambda: any(text in line for line in session.screen.lines())
                self.assertTrue(session.until(shows("training loss [")), self.shown(session))
                session.type("\x03")
                saving = "train_gpt: interrupted; ends after this step, with its state saved (again: at once)"
                self.assertTrue(session.until(shows(saving)), self.shown(session))
                session.type("\x03")
                self.assertEqual(session.end(), 130, self.shown(session))
                lines = self.shown(session)
                self.assertEqual(lines[-1], "train_gpt: interrupted")
                self.assertEqual(lines.count(saving), 1)
                self.assertEqual([line for line in lines if REST.search(line)], [])

    def test_last_lines(self):
        """In a file: nothing of bars, mpirun has no last word."""
        fault = ["--nproc=3", "--train-iters=100000", "--no-plots", "--log-freq=1000", "--fault-rank=1", "--fault-iter=3",
                 "--timeout=2s", "--outputs=" + self.path("out")]
        with open(self.path("used.h5"), "w", encoding="utf-8") as file:
            file.write("of another run")
        for name, flags, code, expected in (
                ("train_gpt", ["--nproc=2", "--data=missing.txt"], 1, [r"train_gpt: .*/missing.txt: cannot be read: .*"]),
                ("train_gpt", [*GPT[1:], "--nproc=2", "--history=used.h5"], 1, [r"train_gpt: .*/used.h5: holds an earlier run: .*"]),
                ("test_dist", [*fault, "--fault=hang"], 70, [r"rank 1 \(\S+, pid \d+\) has not entered #\d+ .*; last entered .*"]),
                ("test_dist", [*fault, "--fault=kill"], 137,
                 [r"rank 1 \(\S+, pid \d+\) is dead: its process is gone; .*; rank [02] waits for it in #\d+ \w+\[\w+\] .* at "
                  r"\S+:\d+, in phase training", r"test_dist: rank 1 exited on signal 9 \(Killed\)"])):
            with self.subTest(flags=flags):
                run = self.finish(self.start([PROGRAMS[name], *flags]), code)
                errors = run.err.splitlines()
                self.assertEqual(len(errors), len(expected), run.err)
                for line, pattern in zip(errors, expected):
                    self.assertRegex(line, f"^{pattern}$")
                self.assertNotIn("\x1b", run.out + run.err)
                history = self.path("out/history.h5")
                if os.path.exists(history):
                    os.remove(history)


if __name__ == "__main__":
    program_runs.main(len(NAMES))
