"""Losses are bitwise identical for any number of ranks and after interruptions."""
import os
import re
import signal
import subprocess

import program_runs
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
        self.assertEqual([x == "nan" for x in numbers["test_acc"]], ([True] * 6 + [False]) * 3)
        history = self.history(self.path("whole.h5"))
        for name in ("dt dtf dtb forward_time loss_time backward_time forward_iterations backward_iterations "
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

    def test_evaluation_alone(self):
        tests = r"(\w+: +Test set epoch +\d+: Accuracy: \d+/\d+)"
        run = self.train(2, "--epochs=2", "--checkpoint-dir=" + self.path("kept"), *runs.SMALL)
        trained = re.findall(tests, run.out)[-2:]
        run = self.train(2, "--resume=" + self.path("kept"), "--eval-only", "--history=" + self.path("none.h5"), *runs.SMALL)
        self.assertEqual(re.findall(tests, run.out), trained)
        self.assertEqual(len(trained), 2)
        self.assertFalse(os.path.exists(self.path("none.h5")))

    def test_resumed_on_other_ranks(self):
        checkpoint, history = "--checkpoint-dir=" + self.path("kept"), "--history=" + self.path("parts.h5")
        self.train(2, "--epochs=1", checkpoint, history, *runs.SMALL)
        run = self.train(3, self.EPOCHS, checkpoint, history, "--resume=" + self.path("kept"), *runs.SMALL)
        self.assertRegex(run.out, "Resuming at epoch 2, sample 0: .*kept/step-000000006")
        self.assertEqual(self.numbers(self.path("parts.h5")), self.whole())
        self.assertEqual(sorted(os.listdir(self.path("kept"))), ["latest", "step-000000012", "step-000000018"])

    def test_time_of_an_epoch_has_what_came_before_an_interruption(self):
        first, rest = self.path("first.h5"), self.path("rest.h5")
        checkpoint = ["--checkpoint-dir=" + self.path("kept"), "--checkpoint-interval=1", "--keep-last=0"]
        self.train(1, "--epochs=1", *checkpoint, "--history=" + first, *runs.SMALL)
        self.train(1, "--epochs=1", "--resume=" + self.path("kept/step-000000005"), "--history=" + rest, *runs.SMALL)
        steps = [float.fromhex(x) for x in self.history(first)["dt"][:5]]
        self.assertGreater(float.fromhex(self.history(rest)["epoch_time"][-1]), sum(steps))

    def test_a_slow_disk_during_the_tests_of_one_rank(self):
        """The first rank tests serially while the others wait and a checkpoint is being written."""
        library = self.path("slow_disk.so")
        subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], check=True, text=True,
                       input="int usleep(unsigned); long syscall(long, ...);\n"
                             "int fsync(int file) { usleep(700000); return syscall(74, file); }\n")
        self.variables = {"LD_PRELOAD": library}
        self.train(2, "--epochs=1", "--checkpoint-interval=2", "--checkpoint-dir=" + self.path("kept"), "--timeout=60", *runs.SMALL)
        self.assertIn("step-000000006", os.listdir(self.path("kept")))

    def test_data_and_layer_parallel(self):
        """Two halves of each batch, each solved on two ranks: the numbers of one rank."""
        flags = ["--dtype=float64", "--epochs=2", "--force-lp", *runs.SMALL]
        meshes = {"one": (1, []), "hybrid": (4, ["--mesh=dp_replicate=2,lp=2"]),
                  "sharded": (4, ["--mesh=dp_shard=2,lp=2", "--strategy=fsdp"]), "data": (3, ["--mesh=dp_replicate=3,lp=1"])}
        numbers = {}
        for name, (ranks, mesh) in meshes.items():
            path = self.path(name + ".h5")
            self.train(ranks, *flags, *mesh, "--history=" + path, "--checkpoint-dir=" + self.path(name))
            numbers[name] = self.numbers(path)
            for x, y in zip(numbers["one"]["loss"], numbers[name]["loss"], strict=True):
                # Sums of 20 samples in another order, 12 steps of Adam: as in tests/train_cnn/ranks_test.py.
                self.assertEqual(x == "nan", y == "nan")
                if x != "nan":
                    self.assertLessEqual(abs(float.fromhex(x) - float.fromhex(y)), 1e-11 * float.fromhex(x), name)
            self.assertEqual(numbers["one"]["serial_test_acc"], numbers[name]["serial_test_acc"])
        # Another mesh resumes from the checkpoint of each.
        for name in meshes:
            self.train(2, "--epochs=3", "--resume=" + self.path(name), "--mesh=dp_shard=2,lp=1", "--strategy=zero1",
                       "--history=" + self.path(name + "_rest.h5"))
            rest = self.numbers(self.path(name + "_rest.h5"))["loss"]
            self.assertEqual(len(rest), 7)

    def test_micro_batches(self):
        """A step in parts is the step of the whole batch; of the last, shorter one of an epoch, too."""
        flags = [*runs.SMALL, "--dtype=float64", "--epochs=2", "--force-lp"]
        whole = [*flags, "--batch-size=32"]  # 120 samples: 32 + 32 + 32 + 24
        self.train(1, *whole, "--history=" + self.path("whole.h5"))
        expected = self.numbers(self.path("whole.h5"))
        for name, ranks, mesh, parts in (("one", 1, [], 4), ("uneven", 1, [], 16), ("data", 2, ["--mesh=dp_replicate=2,lp=1"], 4),
                                         ("hybrid", 4, ["--mesh=dp_replicate=2,lp=2"], 2)):
            path = self.path(name + ".h5")
            run = self.train(ranks, *flags, *mesh, f"--batch-size={32 // parts}", f"--gradient-accumulation-steps={parts}",
                             "--history=" + path)
            numbers = self.numbers(path)
            self.assertEqual(numbers["batch"], expected["batch"], name)
            self.assertEqual(run.out.count("Train Epoch:"), 2 * 5)  # four steps, and the end of the epoch
            for metric in ("loss", "gradient_norm"):
                for x, y in zip(expected[metric], numbers[metric], strict=True):
                    self.assertEqual(x == "nan", y == "nan")
                    if x != "nan":
                        # Sums of 32 samples in another order, 8 steps of Adam: as in tests/train_cnn/ranks_test.py.
                        self.assertLessEqual(abs(float.fromhex(x) - float.fromhex(y)), 1e-11 * float.fromhex(x), (name, metric))

    def stop(self, process, lines):
        """Waits for `lines` progress lines, then sends SIGTERM to `process` (the program, or mpirun)."""
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
        self.assertIn("Stopped (SIGTERM) at epoch", out)
        # To where it would have come without the signal.
        done = len(self.numbers(self.path("parts.h5"))["loss"])
        epochs = f"--epochs={done // 7 + 1}"
        self.train(2, epochs, "--resume=" + self.path("kept"), *flags)
        self.train(2, epochs, "--history=" + self.path("whole.h5"), *runs.SMALL)
        self.assertEqual(self.numbers(self.path("parts.h5")), self.numbers(self.path("whole.h5")))

    def test_launcher_stopped_by_sigterm(self):
        self.variables = {"OMPI_MCA_odls_base_sigkill_timeout": "10"}  # mpirun's is a second, too little on a busy machine
        flags = ["--checkpoint-dir=" + self.path("kept"), *runs.SMALL]
        process = self.start(2, ["--epochs=1000", *flags])
        out = self.stop(process, 3)
        self.assertNotEqual(process.returncode, 0)
        self.assertTrue(os.path.exists(self.path("kept/latest")), out)
        self.train(1, "--force-lp", "--epochs=1", "--resume=" + self.path("kept"), *runs.SMALL)
        # Sizes that the checkpoint cannot hold make no model.
        with open(self.path("kept/latest"), encoding="utf-8") as latest:
            program_runs.change_settings(self.path(f"kept/{latest.read().strip()}/index.h5"), num_layers="90000")
        run = self.train(1, "--resume=" + self.path("kept"), code=1)
        self.assertRegex(run.errors()[-1], "the options ask for 90000 layers, but the files hold \\d+ tensors")


if __name__ == "__main__":
    runs.main()
