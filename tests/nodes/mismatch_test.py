"""Ranks of different nodes that make different calls: every case of comm/testing/mismatch_program ends at once with a line
that names two of them and both calls."""
import re
import subprocess
import sys
import unittest

from cluster import Cluster

PROGRAM = sys.argv[1]
LINE = re.compile(r"rank [0-2] \(\w, pid \d+\) is mismatched: it entered #2 \w+\[tp\].* at mismatch_program.cc:\d+ "
                  r"where rank [0-2] entered #2 \w+\[tp\].* at mismatch_program.cc:\d+")


class MismatchTest(unittest.TestCase):
    def test_each_case(self):
        cases = subprocess.run([PROGRAM], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
        with Cluster(A=1, B=2) as cluster:
            for case in cases:
                with self.subTest(case=case):
                    run = cluster.run(PROGRAM, case)
                    self.assertNotEqual(run.code, 0)
                    self.assertEqual(len(LINE.findall(run.err)), 1, run.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
