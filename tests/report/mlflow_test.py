"""What MLflow's own client makes of an exported run."""
import os
import unittest

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # the file store is in maintenance; without this newer versions refuse it

import h5py
import mlflow
import runs


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


if __name__ == "__main__":
    unittest.main(argv=["mlflow_test"])
