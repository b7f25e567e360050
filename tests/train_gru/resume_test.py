"""Losses do not depend on the number of ranks, nor on interruptions: to the last bit."""
import os
import signal

import runs


class ResumeTest(runs.TrainTest):
    EPOCHS = "--epochs=3"

    def whole(self):
        self.train(2, self.EPOCHS, "--history=" + self.path("whole.h5"), *runs.SMALL)
        return self.numbers(self.path("whole.h5"))

    def test_history_has_what_was_promised(self):
        numbers = self.whole()
        # A draw for each of 6 batches and one for the tests, in 3 epochs.
        self.assertEqual(len(numbers["loss"]), 21)
        self.assertEqual([float.fromhex(x) for x in numbers["epoch"]], [1.0] * 7 + [2.0] * 7 + [3.0] * 7)
        self.assertEqual([x == "nan" for x in numbers["loss"]], ([False] * 6 + [True]) * 3)
        self.assertEqual([x == "nan" for x in numbers["parallel_accuracy"]], ([True] * 6 + [False]) * 3)
        history = self.history(self.path("whole.h5"))
        for name in ("time_per_batch forward_time loss_time backward_time forward_iterations backward_iterations "
                     "backward_residual parallel_test_time serial_test_time epoch_time").split():
            self.assertEqual(len(history[name]), 21, name)

    def test_any_ranks(self):
        numbers = []
        for ranks in (1, 2, 3, 4):
            path = self.path(f"{ranks}.h5")
            self.train(ranks, "--force-lp", "--epochs=1", "--history=" + path, *runs.SMALL)
            numbers.append(self.numbers(path))
        self.assertEqual(numbers[0], numbers[1])
        self.assertEqual(numbers[0], numbers[2])
        self.assertEqual(numbers[0], numbers[3])

    def test_resumed_on_other_ranks(self):
        checkpoint, history = "--checkpoint-dir=" + self.path("kept"), "--history=" + self.path("parts.h5")
        self.train(2, "--epochs=1", checkpoint, history, *runs.SMALL)
        with open(self.path("kept/last.h5"), "rb") as file:
            first = file.read()
        run = self.train(3, self.EPOCHS, checkpoint, history, "--resume=" + self.path("kept"), *runs.SMALL)
        self.assertRegex(run.out, "Resuming at epoch 2, sample 0: .*last.h5")
        self.assertEqual(self.numbers(self.path("parts.h5")), self.whole())
        with open(self.path("kept/last.h5"), "rb") as file:
            self.assertNotEqual(file.read(), first)

    def stop(self, process, lines):
        """Waits for so many progress lines, then sends SIGTERM to the program on its single rank."""
        out = []
        while sum("Loss" in line for line in out) < lines:
            line = process.stdout.readline()
            self.assertTrue(line, "".join(out))
            out.append(line)
        process.send_signal(signal.SIGTERM)
        return "".join(out) + process.communicate(timeout=60)[0]

    def test_stopped_by_sigterm(self):
        flags = ["--force-lp", "--checkpoint-dir=" + self.path("kept"), "--history=" + self.path("parts.h5"), *runs.SMALL]
        process = self.start(0, ["--nproc=1", "--epochs=1000", *flags])
        out = self.stop(process, 8)
        self.assertEqual(process.returncode, 143, out)
        self.assertIn("Stopped by SIGTERM at epoch", out)
        # To where it would have come without the signal.
        done = len(self.numbers(self.path("parts.h5"))["loss"])
        epochs = f"--epochs={done // 7 + 1}"
        self.train(2, epochs, "--resume=" + self.path("kept"), *flags)
        self.train(2, epochs, "--history=" + self.path("whole.h5"), *runs.SMALL)
        self.assertEqual(self.numbers(self.path("parts.h5")), self.numbers(self.path("whole.h5")))

    def test_launcher_stopped_by_sigterm(self):
        flags = ["--checkpoint-dir=" + self.path("kept"), *runs.SMALL]
        process = self.start(2, ["--epochs=1000", *flags])
        out = self.stop(process, 3)
        self.assertNotEqual(process.returncode, 0)
        self.assertTrue(os.path.exists(self.path("kept/last.h5")), out)
        self.train(1, "--force-lp", "--epochs=1", "--resume=" + self.path("kept"), *runs.SMALL)


if __name__ == "__main__":
    runs.main()
