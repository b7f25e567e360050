"""Reads a history and its exports with other programs: exports_test.py WRITE_EXPORTS."""

import json
import math
import os
import re
import subprocess
import sys
import time
import unittest
import urllib.parse
import urllib.request
import warnings

import numpy as np

PROGRAM = os.path.abspath(sys.argv.pop(1))
FOLDER = os.path.join(os.environ["TEST_TMPDIR"], "exports")
NAN, INF = math.nan, math.inf

EXPECTED = {
    "dt": [0.2 * i for i in range(5)],
    "loss": [1.0, NAN, NAN, 0.25, -INF],
    "step": [0, 100000, 200000, 300000, 400000],
    "level": [NAN, NAN, 2, 3, 4],
    "late": [NAN, NAN, NAN, 7, 7],
    "dt_per_rank": [[0.1 * i, 0.2 * i, NAN if i == 3 else 0.3 * i] for i in range(5)],
    "norms": [[NAN, NAN]] + 4 * [[1, 2]],
}


def path(name):
    return os.path.join(FOLDER, name)


def setUpModule():
    os.makedirs(FOLDER)
    subprocess.run([PROGRAM, FOLDER], check=True)


class Netcdf(unittest.TestCase):
    def test_xarray_opens_it_without_warnings(self):
        import xarray

        for engine in ("h5netcdf", "netcdf4"):
            with self.subTest(engine), warnings.catch_warnings():
                warnings.simplefilter("error")
                with xarray.open_dataset(path("run.h5"), engine=engine) as data:
                    self.assertEqual(dict(data.sizes), {"draw": 5, "rank": 3, "norms_index": 2})
                    self.assertEqual(set(data.coords), {"draw", "rank", "norms_index"})
                    self.assertEqual(set(data.data_vars), set(EXPECTED))
                    for name, values in EXPECTED.items():
                        np.testing.assert_array_equal(data[name].values, values, err_msg=name)
                        self.assertEqual(data[name].dtype, np.int64 if name == "step" else np.float64)
                    self.assertEqual(data.dt_per_rank.dims, ("draw", "rank"))
                    self.assertEqual(data.draw.values.tolist(), [0, 1, 2, 3, 4])
                    self.assertEqual(data["rank"].values.tolist(), [0, 1, 2])
                    self.assertEqual(data.dt.attrs, {
                        "units": "s", "long_name": "time of a step", "statistic": "mean over ranks"})
                    self.assertEqual(data.attrs["seed"], "7")
                    self.assertEqual(data.attrs["Conventions"], "CF-1.8")
                    self.assertEqual(data.attrs["complete"], 1)
                    self.assertIn("write_exports", data.attrs["command"])
                    self.assertEqual(data.dt.sel(draw=3).item(), 0.2 * 3)

    def test_netcdf4_sees_the_unlimited_dimension(self):
        import netCDF4

        with netCDF4.Dataset(path("run.h5")) as data:
            self.assertTrue(data.dimensions["draw"].isunlimited())
            self.assertFalse(data.dimensions["rank"].isunlimited())
            self.assertEqual(data.variables["dt_per_rank"].dimensions, ("draw", "rank"))

    def test_ncdump_reads_it(self):
        header = subprocess.run(["ncdump", "-h", path("run.h5")], check=True, capture_output=True, text=True)
        self.assertEqual(header.stderr, "")
        for line in ("draw = UNLIMITED ; // (5 currently)", "rank = 3 ;", "double dt_per_rank(draw, rank) ;",
                     "double loss(draw) ;", "int64 step(draw) ;", "int64 level(draw) ;", "int64 draw(draw) ;", 'dt:units = "s" ;',
                     'dt:long_name = "time of a step" ;', ':program = "write_exports" ;'):
            self.assertIn(line, header.stdout)

    def test_h5py_reads_it(self):
        import h5py

        with h5py.File(path("run.h5")) as file:
            np.testing.assert_array_equal(file["loss"][:], EXPECTED["loss"])
            self.assertEqual(file["dt_per_rank"].dims[1][0].name, "/rank")
            self.assertEqual(file["step"].dtype, np.int64)
            np.testing.assert_array_equal(file["step"][:], EXPECTED["step"])


class Text(unittest.TestCase):
    def test_pandas_reads_the_csv(self):
        import pandas

        table = pandas.read_csv(path("run.csv"))
        self.assertEqual(table.draw.dtype.kind, "i")
        self.assertEqual(table.draw.tolist(), list(range(5)))
        self.assertEqual(table.step.dtype.kind, "i")
        for name in ("dt", "loss", "late", "step", "level"):
            np.testing.assert_array_equal(table[name], EXPECTED[name], err_msg=name)
        for rank in range(3):
            np.testing.assert_array_equal(table["dt_per_rank[%d]" % rank], np.array(EXPECTED["dt_per_rank"])[:, rank])

    def test_every_line_is_json(self):
        def refuse(word):
            raise ValueError(word + " is no JSON")

        with open(path("run.jsonl")) as file:
            draws = [json.loads(line, parse_constant=refuse) for line in file]
        self.assertEqual([draw["draw"] for draw in draws], list(range(5)))
        self.assertEqual(draws[1]["loss"], "NaN")
        self.assertEqual(float(draws[4]["loss"]), -INF)
        self.assertNotIn("loss", draws[2])
        self.assertEqual(draws[3]["dt_per_rank"], [0.1 * 3, 0.2 * 3, "NaN"])


class Tensorboard(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        cls.events = EventAccumulator(path("tb"), size_guidance={"histograms": 0, "scalars": 0})
        cls.events.Reload()

    def test_scalars(self):
        self.assertEqual(set(self.events.Tags()["scalars"]), {"dt", "loss", "late", "step", "level"})
        dt = self.events.Scalars("dt")
        self.assertEqual([event.step for event in dt], list(range(5)))
        np.testing.assert_array_equal([event.value for event in dt], np.float32(EXPECTED["dt"]))
        loss = self.events.Scalars("loss")
        self.assertEqual([event.step for event in loss], [0, 1, 3, 4])
        np.testing.assert_array_equal([event.value for event in loss], np.float32([1, NAN, 0.25, -INF]))
        self.assertGreater(dt[0].wall_time, 1.7e9)

    def test_histograms(self):
        found = {event.step: event.histogram_value for event in self.events.Histograms("dt_per_rank")}
        self.assertEqual(sorted(found), list(range(5)))
        self.assertEqual((found[4].num, found[4].min, found[4].max), (3, 0.4, 0.3 * 4))
        self.assertAlmostEqual(found[4].sum, 0.4 + 0.8 + 1.2, delta=1e-15)
        self.assertEqual(sum(found[4].bucket), 3)
        self.assertEqual(found[3].num, 2, "the NaN is left out")
        self.assertEqual(list(found[0].bucket), [3], "all values are equal")
        for histogram in found.values():
            self.assertEqual(len(histogram.bucket), len(histogram.bucket_limit))
            self.assertEqual(list(histogram.bucket_limit), sorted(histogram.bucket_limit))

    def test_a_resumed_run_replaces_draws(self):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(path("resumed_tb"), size_guidance={"scalars": 0})
        events.Reload()
        self.assertEqual([(event.step, event.value) for event in events.Scalars("loss")],
                         [(0, 0), (1, 1), (2, 20), (3, 21)])
        self.assertIn("| a | b |", events.Tensors("run")[-1].tensor_proto.string_val[0].decode())

    def test_text(self):
        text = self.events.Tensors("run")[0].tensor_proto.string_val[0].decode()
        self.assertIn("| seed | 7 |", text)
        metadata = self.events.SummaryMetadata("run")
        self.assertEqual(metadata.plugin_data.plugin_name, "text")

    def test_hyperparameters(self):
        from tensorboard.plugins.hparams import plugin_data_pb2

        content = self.events.PluginTagToContent("hparams")
        start = plugin_data_pb2.HParamsPluginData.FromString(content["_hparams_/session_start_info"])
        hparams = start.session_start_info.hparams
        self.assertEqual(hparams["batch_size"].number_value, 64)
        self.assertIs(hparams["bf16"].bool_value, True)
        self.assertEqual(hparams["batch_size"].WhichOneof("kind"), "number_value")
        end = plugin_data_pb2.HParamsPluginData.FromString(content["_hparams_/session_end_info"])
        self.assertEqual(end.session_end_info.status, 1, "success")

    # The program itself, as a browser sees it: its server reads the files on a path of its own.
    def test_the_server_shows_the_run(self):
        server = subprocess.Popen(
            [sys.executable, "-m", "tensorboard.main", "--logdir", path("tb"), "--host", "127.0.0.1", "--port", "0"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            for line in server.stderr:
                found = re.search(r"http://[\w.]+:\d+/", line)
                if found:
                    self.check_pages(found.group(0))
                    return
            self.fail("the server did not start")
        finally:
            server.kill()
            server.communicate()

    # The server listens before it has read the files.
    def fetch(self, url, body=None):
        for _ in range(100):
            request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request) as reply:
                content = json.load(reply)
            if content and content != {"scalars": {}}:
                return content
            time.sleep(0.1)
        self.fail(url + " stays empty")

    def check_pages(self, address):
        tags = self.fetch(address + "data/plugin/scalars/tags")
        (run,) = tags
        self.assertEqual(set(tags[run]), {"dt", "loss", "late", "step", "level"})
        points = self.fetch(address + "data/plugin/scalars/scalars?tag=dt&run=" + urllib.parse.quote(run))
        self.assertEqual([point[1] for point in points], list(range(5)))
        np.testing.assert_array_equal(np.float32([point[2] for point in points]), np.float32(EXPECTED["dt"]))
        self.assertIn("dt_per_rank", self.fetch(address + "data/plugin/histograms/tags")[run])
        self.assertEqual(self.fetch(address + "data/plugin/text/tags"), {run: ["run"]})
        experiment = self.fetch(address + "data/plugin/hparams/experiment", b'{"experimentName": ""}')
        self.assertEqual({info["name"] for info in experiment["hparamInfos"]}, {"batch_size", "bf16"})


if __name__ == "__main__":
    unittest.main()
