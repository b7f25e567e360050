"""The conformance suite of comm between nodes: equal and unequal ones, MPI's collectives and rings."""
import sys
import unittest

from cluster import Cluster

PROGRAM = sys.argv[1]
CLUSTERS = [dict(A=1, B=1), dict(A=2, B=2), dict(A=1, B=3), dict(A=1, B=1, C=1)]
# Each rank brings other thresholds. They decide which function of MPI a rank calls, so the ranks must agree on them.
UNEQUAL_FLAGS = 'r=$OMPI_COMM_WORLD_RANK; exec "$0" --ring_bytes=$((1 + 2000 * r)) --max_elements_per_message=$((50000 + 300 * r))'


class ConformanceTest(unittest.TestCase):
    def passes(self, cluster, *command):
        run = cluster.run(*command)
        self.assertEqual(run.code, 0, run.out + run.err)
        self.assertRegex(run.out, r"\[  PASSED  \] \d+ tests")

    def test_between_nodes(self):
        for ranks in CLUSTERS:
            with self.subTest(ranks=ranks), Cluster(**ranks) as cluster:
                self.passes(cluster, PROGRAM)
                self.passes(cluster, PROGRAM, "--ring_bytes=1")

    def test_ranks_that_bring_other_options(self):
        with Cluster(A=1, B=3) as cluster:
            self.passes(cluster, "sh", "-c", UNEQUAL_FLAGS, PROGRAM)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
