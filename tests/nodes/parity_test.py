"""HSDP between nodes against one rank: the float64 test of tests/parity on equal and unequal nodes."""
import os
import sys
import unittest

from cluster import Cluster

PROGRAM = os.path.abspath(sys.argv[1])


class ParityTest(unittest.TestCase):
    def test_hsdp(self):
        for ranks in [dict(A=1, B=3), dict(A=2, B=2)]:
            with self.subTest(ranks=ranks), Cluster(**ranks) as cluster:
                run = cluster.run(PROGRAM, "--gtest_filter=ParityTest.HsdpInFloat64")
                self.assertEqual(run.code, 0, run.out + run.err)
                self.assertRegex(run.out, r"\[  PASSED  \] 1 test\.")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
