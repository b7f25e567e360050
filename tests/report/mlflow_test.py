"""What MLflow's own client makes of an exported run."""
import os
import unittest

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # the file store is in maintenance; without this newer versions refuse it

import h5py
import mlflow
import numpy
import runs
import xarray


class ClientTest(runs.ReportTest):
    def test_metrics_params_and_tags(self):
        self.write("run", "run.h5")
        self.report("run.h5", "--mlflow=mlruns", "--plots=none")
        client = mlflow.MlflowClient(tracking_uri="file://" + self.path("mlruns"))
        (run,) = client.search_runs(["0"])
        self.assertEqual((run.info.status, run.info.run_name), ("FINISHED", "run.h5"))
        self.assertEqual(run.data.params["dtype"], "float32")
        self.assertEqual(run.data.tags["host"], "node17")
        history = client.get_metric_history(run.info.run_id, "dt")
        with h5py.File(self.path("run.h5")) as file:
            self.assertEqual([metric.value for metric in history], list(file["dt"][:]))
        self.assertEqual([metric.step for metric in history], list(range(100)))
        client.set_tag(run.info.run_id, "seen", "yes")
        with open(self.path("notes.txt"), "w") as file:
            file.write("the good one")
        client.log_artifact(run.info.run_id, self.path("notes.txt"))
        # Exported again, both stay.
        self.report("run.h5", "--mlflow=mlruns", "--plots=none", "--skip=90")
        self.assertEqual(client.get_run(run.info.run_id).data.tags["seen"], "yes")
        self.assertEqual([artifact.path for artifact in client.list_artifacts(run.info.run_id)], ["notes.txt"])
        self.assertEqual(len(client.get_metric_history(run.info.run_id, "dt")), 10)

    # As netCDF-4 and xarray write them: a coordinate of the training steps, and one of the evaluations.
    def test_steps_are_those_of_each_metric(self):
        for engine in ("netcdf4", "h5netcdf"):
            for name, evaluated in (("run.h5", range(0, 1000, 100)), ("longer.h5", range(0, 1001, 100))):
                count = len(evaluated)
                metrics = {"eval_loss": ("eval_step", numpy.linspace(3.25, 1.25, count)),
                           "loss": ("step", numpy.linspace(3, 1, 1000))}
                coordinates = {"eval_step": list(evaluated), "step": range(1000)}
                xarray.Dataset(metrics, coordinates).to_netcdf(self.path(name), engine=engine)
            text = self.report("run.h5", "longer.h5", "--mlflow=" + engine, "--plots=none", "--columns=200")
            client = mlflow.MlflowClient(tracking_uri="file://" + self.path(engine))
            runs_by_name = {run.info.run_name: run.info.run_id for run in client.search_runs(["0"])}
            history = client.get_metric_history(runs_by_name["run.h5"], "eval_loss")
            with xarray.open_dataset(self.path("run.h5"), engine=engine) as data:
                self.assertEqual([metric.step for metric in history], data.eval_step.values.tolist())
                self.assertEqual([metric.value for metric in history], data.eval_loss.values.tolist())
            self.assertIn("run.h5: eval_loss is along eval_step: each value is shown at the draw with the same number.\n",
                          text)
            # There is no step 1000.
            self.assertEqual(client.get_metric_history(runs_by_name["longer.h5"], "eval_loss"), [])
            self.assertIn("longer.h5: eval_loss is left out: its coordinate eval_step has 1000, which step, that of the "
                          "draws, has not.\n", text)
            steps = [metric.step for metric in client.get_metric_history(runs_by_name["longer.h5"], "loss")]
            self.assertEqual(steps, list(range(1000)))


if __name__ == "__main__":
    unittest.main(argv=["mlflow_test"])
