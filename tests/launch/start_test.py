"""launch names a rank that never calls MPI_Init; the others wait in it until their timeout of 3 s."""
import subprocess

import launches

FAULTS = launches.BEHAVE  # comm/testing/fault_program here


class StartTest(launches.LaunchTest):
    def test_rank_that_never_calls_mpi_init(self):
        run = self.launch("--nproc=4", "--", FAULTS, "no_mpi", "2", self.mark, code=70)
        self.assertRegex(run.own()[-1], r"^launch: rank 2 \([^ ]+, pid \d+\) has not called MPI_Init, in which rank [013] waited$")
        self.assertEqual(run.err.count("has not called MPI_Init"), 1)
        self.assert_nothing_left()

    def test_ranks_that_are_missing_later_are_not_accused(self):
        run = self.launch("--nproc=3", "--", FAULTS, "no_roll_call", "2", self.mark, code=1)
        self.assertNotIn("has not called MPI_Init", run.err)
        self.assert_nothing_left()

    def test_torchrun(self):
        run = subprocess.run([FAULTS, "none", "0"], env=self.environment(RANK="0", WORLD_SIZE="2"), stderr=subprocess.PIPE,
                             text=True, timeout=launches.SECONDS, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, r"^fault_program: torchrun \(WORLD_SIZE=2\) starts no MPI, .*\n$")


if __name__ == "__main__":
    launches.main()
