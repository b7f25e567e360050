"""Errors of programs that may have little address space."""
import program_runs

GPT, = program_runs.programs(1)
GIB = 1 << 30
LARGE = ["--data=input.txt", "--n-layer=24", "--n-head=2", "--n-embd=1024", "--block-size=8", "--batch-size=2", "--no-plots"]


class AddressSpaceTest(program_runs.ProgramTest):
    def test_less_than_a_model_needs(self):
        """What LibTorch takes of it differs from build to build: a model that needs a few GiB more than it."""
        with open(self.path("input.txt"), "w", encoding="utf-8") as file:
            file.write("to be or not to be, that is the question\n" * 50)
        for ranks in (1, 2):
            run = self.finish(self.start(["prlimit", f"--as={4 * GIB}", GPT, *LARGE, f"--nproc={ranks}"]), 1)
            errors = run.errors()
            self.assertEqual(len(errors), 1, errors)
            self.assertRegex(errors[0], r"^train_gpt: the run needs [\d.]+ GB on each rank, but only [\d.]+ GB are available \(address space, ulimit -v: "
                             rf"[\d.]+ GB for {ranks} ranks?\): ")


if __name__ == "__main__":
    program_runs.main(1)
