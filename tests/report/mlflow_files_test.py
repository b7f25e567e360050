"""What report --mlflow writes, without MLflow: values, times and settings; exports again and at the same time."""
import itertools
import json
import os
import pathlib
import socket
import subprocess
import unittest

import runs


# As MLflow documents and reads its file store: JSON is YAML, a metric is a file of "milliseconds value step".
class MlflowTest(runs.ReportTest):
    def runs_in(self, folder):
        runs = {}
        for name in os.listdir(self.path(folder + "/0")):
            if name != "meta.yaml":
                self.assertRegex(name, "^[0-9a-f]{32}$")
                runs[name] = json.loads(self.text("%s/0/%s/meta.yaml" % (folder, name)))
        return runs

    def metric(self, run, name):
        lines = self.text("mlruns/0/%s/metrics/%s" % (run, name)).splitlines()
        return [(int(time), float(value), int(step)) for time, value, step in map(str.split, lines)]

    def test_values_times_steps_and_settings(self):
        self.write("run", "run.h5")
        self.report("run.h5", "--mlflow=mlruns", "--plots=none")
        ((run, meta),) = self.runs_in("mlruns").items()
        # 2026-11-21T15:30:00Z.
        start = 1795275000000
        times = [0.25] + [1e-3 + 1e-4 * (i % 10) for i in range(1, 100)]
        passed = list(itertools.accumulate(times))
        self.assertEqual((meta["run_id"], meta["run_name"], meta["status"], meta["start_time"], meta["lifecycle_stage"]),
                         (run, "run.h5", 3, start, "active"))
        self.assertEqual(meta["artifact_uri"], "%s/mlruns/0/%s/artifacts" % (pathlib.Path(os.path.realpath(self.folder)).as_uri(), run))
        self.assertEqual(meta["end_time"] - start, 394)
        dt = self.metric(run, "dt")
        self.assertEqual([(value, step) for _, value, step in dt], list(zip(times, range(100))))
        for (time, _, _), seconds in zip(dt, passed):
            self.assertAlmostEqual(time, start + 1000 * seconds, delta=1)
        # NaN at 50 is left out, +Inf at 51 is there.
        loss = {step: value for _, value, step in self.metric(run, "loss")}
        self.assertEqual(loss, {i: float("inf") if i == 51 else 2000.0 / (i + 1) + 300 for i in range(100) if i != 50})
        folder = "mlruns/0/%s/" % run
        self.assertEqual(self.text(folder + "params/dtype"), "float32")
        self.assertEqual(self.text(folder + "tags/host"), "node17")
        self.assertEqual(self.text(folder + "tags/mlflow.source.git.commit"), "0123abc")
        self.assertTrue(os.path.isdir(self.path(folder + "artifacts")))
        self.assertEqual(json.loads(self.text("mlruns/0/meta.yaml"))["name"], "Default")

    def test_a_run_replaces_itself_and_leaves_others(self):
        os.mkdir(self.path("mlruns"))
        os.mkdir(self.path("mlruns/0"))
        with open(self.path("mlruns/0/meta.yaml"), "w") as file:
            file.write("name: mine\n")
        self.write("killed", "killed.h5")
        self.write("tokens", "tokens.h5")
        for _ in range(2):
            self.report("killed.h5", "tokens.h5", "--mlflow=mlruns", "--plots=none")
        runs = {meta["run_name"]: (run, meta) for run, meta in self.runs_in("mlruns").items()}
        self.assertEqual(set(runs), {"killed.h5", "tokens.h5"})
        self.assertEqual((runs["killed.h5"][1]["status"], runs["killed.h5"][1]["end_time"]), (1, None))
        self.assertEqual([step for _, _, step in self.metric(runs["tokens.h5"][0], "loss")], [10, 20, 30])
        self.assertEqual(self.text("mlruns/0/meta.yaml"), "name: mine\n")

    def test_what_people_add_stays(self):
        self.write("run", "run.h5")
        self.report("run.h5", "--mlflow=mlruns", "--plots=none")
        (run,) = self.runs_in("mlruns")
        folder = "mlruns/0/%s/" % run
        os.mkdir(self.path(folder + "artifacts/model"))
        added = {"artifacts/model/weights": "1 2 3", "tags/mlflow.note.content": "the good one", "tags/mine": "yes"}
        for name, text in added.items():
            with open(self.path(folder + name), "w") as file:
                file.write(text)
        for name in ("tags/host", "params/dtype", "metrics/dt"):
            with open(self.path(folder + name), "w") as file:
                file.write("old")
        self.report("run.h5", "--mlflow=mlruns", "--plots=none", "--metrics=loss")
        self.assertEqual({name: self.text(folder + name) for name in added}, added)
        self.assertEqual((self.text(folder + "tags/host"), self.text(folder + "params/dtype")), ("node17", "float32"))
        self.assertEqual(os.listdir(self.path(folder + "metrics")), ["loss"])
        self.assertEqual(set(os.listdir(self.path("mlruns/0"))), {run, "meta.yaml"})
        self.assertEqual(set(os.listdir(self.path(folder))), {"meta.yaml", "metrics", "params", "tags", "artifacts"})

    def test_exports_at_the_same_time(self):
        path = self.write("run", "run.h5")
        command = [runs.REPORT, path, "--mlflow=mlruns", "--plots=none"]
        for _ in range(5):
            exports = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=runs.UTF8, cwd=self.folder)
                       for _ in range(4)]
            self.assertEqual([export.communicate()[1] for export in exports], [b""] * 4)
            self.assertEqual([export.returncode for export in exports], [0] * 4)
            ((run, _),) = self.runs_in("mlruns").items()
            self.assertEqual(len(self.metric(run, "dt")), 100)
            self.assertEqual(self.text("mlruns/0/%s/params/dtype" % run), "float32")

    def test_what_exports_have_not_finished(self):
        self.write("run", "run.h5")
        self.report("run.h5", "--mlflow=mlruns", "--plots=none")
        (run,) = self.runs_in("mlruns")
        killed = subprocess.Popen(["true"])
        killed.wait()
        for process in (killed.pid, os.getpid()):
            os.makedirs(self.path("mlruns/0/.%s.partial.%s.%d/metrics" % (run, socket.gethostname(), process)))
        self.report("run.h5", "--mlflow=mlruns", "--plots=none")
        partial = [name for name in os.listdir(self.path("mlruns/0")) if name.startswith(".")]
        self.assertEqual(partial, [".%s.partial.%s.%d" % (run, socket.gethostname(), os.getpid())])

    def test_names_do_not_leave_the_folder(self):
        self.write("hostile_names", "a.h5")
        self.report("a.h5", "--mlflow=mlruns", "--plots=none")
        (run,) = self.runs_in("mlruns")
        files = [os.path.relpath(os.path.join(at, name), self.path("mlruns/0/%s/metrics" % run))
                 for at, _, names in os.walk(self.path("mlruns/0/%s/metrics" % run)) for name in names]
        self.assertEqual(set(files), {"x_/script__img src_x onerror_document.title_2_", "__proto__"})

    def test_texts_are_utf8_whatever_the_history_has(self):
        self.write("hostile", "a.h5")
        self.report("a.h5", "--mlflow=mlruns", "--plots=none")
        (run,) = self.runs_in("mlruns")
        self.assertIn("onerror=document.title='taken'> ??", self.text("mlruns/0/%s/tags/note" % run))

    def test_an_unwritable_folder(self):
        self.write("run", "run.h5")
        with open(self.path("file"), "w"):
            pass
        self.report("run.h5", "--mlflow=file/mlruns", "--plots=none", code=1)
        self.assertRegex(self.err, r"^report: .*/file/mlruns/0.*: Not a directory\n$")


if __name__ == "__main__":
    unittest.main(argv=["mlflow_files_test"])
