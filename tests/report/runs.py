"""What the tests of report share: the programs, a folder, histories in it, and a run of report."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

REPORT, WRITE_RUN = (os.path.abspath(path) for path in sys.argv[1:3])
UTF8 = {"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}


class ReportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def bytes(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def text(self, name):
        return self.bytes(name).decode("utf-8")

    def write(self, kind, name, *more):
        subprocess.run([WRITE_RUN, kind, self.path(name), *map(str, more)], check=True)
        return self.path(name)

    def write_arrays(self, name, coordinate=None, **arrays):
        """A file as other programs write it. Of each array the values, with a list for each draw of a vector, or a pair of
        them and the attributes. `coordinate`: the array that numbers the draws."""
        described = []
        for array, values in arrays.items():
            values, attributes = values if isinstance(values, tuple) else (values, {})
            width = len(values[0]) if isinstance(values[0], list) else 1
            flat = [value for row in values for value in row] if width > 1 else values
            described.append({"name": array, "values": [None if value != value else value for value in flat], "width": width,
                              "attributes": attributes, "is_coordinate": array == coordinate})
        subprocess.run([WRITE_RUN, "arrays", self.path(name)], check=True, text=True, input=json.dumps(described))
        return self.path(name)

    def write_trace(self):
        """Three steps of two ranks; the second, of 2 ms, is the median one."""
        events = []
        for rank in range(2):
            events.append({"ph": "M", "name": "process_name", "pid": rank, "args": {"name": "rank %d (node17)" % rank}})
            begin = 0
            for step, length in enumerate((1000, 2000, 4000)):
                spans = [("step", 0, 0, length), ("forward", 0, 0, 0.25), ("backward", 0, 0.25, 0.5),
                         ("optimizer", 0, 0.75, 0.25), ("all_reduce", 1, 0.5, 0.5)]
                for name, track, start, share in spans:
                    span = {"ph": "X", "name": name, "pid": rank, "tid": track, "args": {}}
                    span["ts"] = begin + (0 if name == "step" else start * length)
                    span["dur"] = length if name == "step" else share * length
                    if name == "step":
                        span["args"] = {"step": step}
                    if name == "all_reduce":
                        span["args"] = {"bytes": 1 << 20, "sequence": step}
                    events.append(span)
                begin += length + 100
        with open(self.path("trace.json"), "w") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)

    @staticmethod
    def curve_data(page):
        """The numbers in a page, and the curves of each run by metric."""
        data = json.loads(re.search('<script type="application/json" id="curve-data">([^<]*)</script>', page).group(1))
        names = [metric["name"] for metric in data["metrics"]]
        return data, [dict(zip(names, run["curves"])) for run in data["runs"]]

    def report(self, *arguments, code=0, environment=UTF8):
        run = subprocess.run([REPORT, *arguments], capture_output=True, env=environment, cwd=self.folder)
        self.assertEqual(run.returncode, code, run.stderr.decode())
        self.out = run.stdout.decode("utf-8", "replace")
        self.err = run.stderr.decode("utf-8", "replace")
        return self.out

    def grow(self, name):
        """A process that writes a history: each line to it is a draw."""
        writer = subprocess.Popen([WRITE_RUN, "growing", self.path(name)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True)
        self.addCleanup(self.end, writer)
        self.assertEqual(writer.stdout.readline(), "started\n")
        return writer

    def append(self, writer):
        writer.stdin.write("\n")
        writer.stdin.flush()
        self.assertEqual(writer.stdout.readline(), "appended\n")

    def follow(self, *arguments):
        """report --follow and the port that it says."""
        server = subprocess.Popen([REPORT, *arguments, "--follow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=UTF8,
                                  cwd=self.folder, text=True)
        self.addCleanup(self.end, server)
        line = server.stdout.readline()
        return server, int(re.fullmatch(r"report: http://127\.0\.0\.1:(\d+)/ follows .*\n", line).group(1))

    @staticmethod
    def end(process):
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def report_json(self, *arguments):
        return json.loads(self.report(*arguments, "--format=json"))
