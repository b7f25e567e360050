"""Runs train_gru for the tests on small synthetic data; captures its output and reads its history."""
import os
import re

import program_runs

PROGRAM, PRINT_HISTORY = program_runs.programs(2)

# Small enough for seconds: 120 synthetic windows for training, 30 for testing, 6 batches an epoch.
SMALL = ["--percent-data=0.05", "--batch-size=20", "--hidden-size=12", "--log-interval=1"]


class Run(program_runs.Run):
    def errors(self):
        return self.errors_of_ranks()

    def losses(self):
        return re.findall(r"Loss: (\S+)", self.out)


class TrainTest(program_runs.ProgramTest):
    run_class = Run
    variables = {}

    def environment(self):
        # An empty cache: the synthetic stand-in, whatever this machine has.
        environment = dict(os.environ, XDG_CACHE_HOME=self.shared, OMP_NUM_THREADS="1", TMPDIR="/tmp")
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", CUDA_VISIBLE_DEVICES="")
        environment.update(self.variables)
        return environment

    def command(self, ranks, flags):
        launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks else []
        return launcher + [PROGRAM] + flags

    def start(self, ranks, flags, largest_file=None):
        return super().start(self.command(ranks, flags), largest_file)

    def train(self, ranks, *flags, code=0):
        return self.finish(self.start(ranks, list(flags)), code)

    def history(self, path):
        return program_runs.print_history(PRINT_HISTORY, path)

    def numbers(self, path):
        """What must not depend on ranks or interruptions."""
        history = self.history(path)
        names = ["epoch", "batch", "loss", "gradient_norm", "forward_residual", "test_acc", "serial_test_acc"]
        return {name: history[name] for name in names}


def main():
    program_runs.main(2)
