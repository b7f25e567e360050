"""Ranks of different nodes that make different calls: every case of comm/testing/mismatch_program ends at once with a line
that names two of them and both calls."""
import concurrent.futures
import os
import re
import subprocess
import sys
import unittest

from cluster import Cluster

PROGRAM = os.path.abspath(sys.argv[1])
LINE = re.compile(r"rank [0-2] \(\w, pid \d+\) is mismatched: it entered #2 \w+\[tp\].* at mismatch_program.cc:\d+ "
                  r"where rank [0-2] entered #2 \w+\[tp\].* at mismatch_program.cc:\d+")
# Of a message, the line of the rank that receives it.
MESSAGE = re.compile(r"rank 0 \(\w, pid \d+\): receive from rank 1 of the group: \w+\[\d+\] was sent, \w+\[\d+\] was expected")

JOBS = 4  # each of which mostly waits for mpirun to start and to end


class MismatchTest(unittest.TestCase):
    cases = subprocess.run([PROGRAM], check=True, stdout=subprocess.PIPE, text=True).stdout.split()

    def is_named(self, case, run):
        self.assertNotEqual(run.code, 0)
        self.assertEqual(len((MESSAGE if case.startswith("message_") else LINE).findall(run.err)), 1, run.err)

    def test_each_case(self):
        with Cluster(A=1, B=2) as cluster, concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            for case, run in zip(self.cases, pool.map(lambda case: cluster.run(PROGRAM, case), self.cases)):
                with self.subTest(case=case):
                    self.is_named(case, run)

    def test_nodes_of_one_name(self):
        """Their watchdogs meet on the network, not each on a loopback interface of its own."""
        with Cluster(host_name="N", A=1, B=2) as cluster:
            self.is_named(self.cases[0], cluster.run(PROGRAM, self.cases[0]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
