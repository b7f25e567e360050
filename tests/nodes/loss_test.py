"""A node that is cut off or loses power in mid-run: its ranks are named within the timeout and one second, the job ends, and
no process of it is left, on the lost node neither."""
import os
import re
import sys
import time
import unittest

from cluster import Cluster

LAUNCH, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:3])
TIMEOUT = 3
# Where other work keeps all cores busy, the scheduler's delays come on top.
DELAY = 1 if os.getloadavg()[0] <= len(os.sched_getaffinity(0)) else 5
PUBLISHED = 2  # seconds of training; ranks publish their position four times a second
END = 30  # seconds in which mpirun and launch end, far more than they take


class LossTest(unittest.TestCase):
    def lines_after(self, strike, lost):
        """The watchdog's lines after strike(cluster, lost)."""
        with Cluster(A=2, B=2) as cluster:
            hosts = cluster.write("hosts.txt", "A slots=2\nB slots=2\n")
            job = cluster.start_here(LAUNCH, "--hostfile=" + hosts, "--nproc=4", "--bind=none", "--starter=mpirun", "--grace=1s",
                                     "--", PROGRAM, "--train-iters=1000000", "--log-freq=1", "--no-plots",
                                     f"--timeout={TIMEOUT}s", "--outputs=" + cluster.path("out"))
            begun = None
            for line in job.stdout:
                if begun is None and "iter=5," in line:
                    begun = time.monotonic()
                if begun is not None and time.monotonic() > begun + PUBLISHED:
                    break
            else:
                self.fail(cluster.errors())
            struck = time.monotonic()
            strike(cluster, lost)
            self.until(struck + TIMEOUT + DELAY, lambda: " is dead" in cluster.errors() or " does not answer" in cluster.errors(), cluster)
            self.until(struck + TIMEOUT + DELAY + 1, lambda: not cluster.processes(PROGRAM), cluster)
            run = cluster.finish(job, END)
            self.assertNotIn(run.code, (0, -9), run.err)
            # launch repeats the line at its end.
            return sorted(set(re.findall(r"rank \d+ \(\w, pid \d+\) (?:does not|is dead).*", run.err)))

    def until(self, deadline, condition, cluster):
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"{cluster.errors()}\n{cluster.processes(PROGRAM)}")
            time.sleep(0.02)

    def names(self, lines, host, ranks):
        self.assertTrue(lines)
        for line in lines:
            self.assertRegex(line, rf"rank [{ranks}] \({host}, pid \d+\) (does not answer|is dead).*last entered #\d+ .*in phase training")

    def test_cut_link(self):
        self.names(self.lines_after(Cluster.cut, "B"), "B", "23")

    def test_cut_link_of_rank_0(self):
        self.names(self.lines_after(Cluster.cut, "A"), "A", "0")

    def test_killed_node(self):
        self.names(self.lines_after(Cluster.kill, "B"), "B", "23")

    def test_killed_node_of_rank_0(self):
        self.names(self.lines_after(Cluster.kill, "A"), "A", "0")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
