"""Bytes that leave a node, counted by the kernel, against the formulas of bandwidth-optimal collectives.

Ranks are numbered node by node, so of the ring of n ranks one edge leaves each node: per call it carries (n - 1) / n of the
buffer in a reduce-scatter and in an all-gather, and twice that in an all-reduce.
"""
import os
import sys
import unittest

from cluster import Cluster

PROGRAM = os.path.abspath(sys.argv[1])
MEGABYTES = 6
PASSES = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1}


class TrafficTest(unittest.TestCase):
    def check(self, **ranks):
        size = sum(ranks.values())
        with Cluster(**ranks) as cluster:
            for operation, passes in PASSES.items():
                def run(calls):
                    done = cluster.run(PROGRAM, operation, str(MEGABYTES), str(calls))
                    self.assertEqual(done.code, 0, done.err)
                with self.subTest(operation=operation):
                    cluster.expect_sent(self, passes * (size - 1) / size * MEGABYTES * 1e6, few=2, many=12, run=run)

    def test_equal_nodes(self):
        self.check(A=2, B=2)

    def test_unequal_nodes(self):
        self.check(A=1, B=3)

    def test_three_nodes(self):
        self.check(A=1, B=1, C=1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
