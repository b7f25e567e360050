"""Runs test_dist for the tests: in a folder of its own, with its output at hand."""
import program_runs

PROGRAM, = program_runs.programs(1)
ESCAPE = "\x1b"


class Run(program_runs.Run):
    def steps(self):
        """The lines of the steps as dictionaries."""
        return [{key: float(value) for key, value in (part.split("=") for part in line.split(", "))}
                for line in self.logged("iter=")]


class DistTest(program_runs.ProgramTest):
    run_class = Run
    variables = {}

    def environment(self):
        return {**super().environment(), **self.variables}

    def run_program(self, *flags, code=0, variables=None, outputs="out"):
        self.variables = variables or {}
        return self.finish(self.start([PROGRAM, *flags] + (["--outputs=" + self.path(outputs)] if outputs else [])), code)


def main():
    program_runs.main(1)
