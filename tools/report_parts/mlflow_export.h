// Runs as MLflow's file store has them (tracking in a folder, `mlruns`), without MLflow.
//
//   FOLDER/0/meta.yaml                  experiment "Default", unless it is there
//   FOLDER/0/RUN/meta.yaml              name, status, times; JSON, which is YAML
//   FOLDER/0/RUN/metrics/loss           "milliseconds value step" in each line
//   FOLDER/0/RUN/params/batch_size      a file per setting of the run
//   FOLDER/0/RUN/tags/host              a file per other attribute; mlflow.runName, mlflow.source.git.commit ...
//
// Read by `mlflow ui --backend-store-uri FOLDER`; MLflow 3.17 asks for MLFLOW_ALLOW_FILE_STORE=true, or takes it into a
// database by `mlflow migrate-filestore`.
#ifndef PLAIT_TOOLS_REPORT_PARTS_MLFLOW_EXPORT_H_
#define PLAIT_TOOLS_REPORT_PARTS_MLFLOW_EXPORT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tools/report_parts/run_numbers.h"

namespace plait::report {

// RUN is made of the history's path: a run that is exported again replaces itself. Scalars only, values to the last
// bit, without the draws that were skipped; NaN is left out, as a history does not tell it from "not given". The time
// of a value is the run's start and the steps' time until then. What MLflow does not take in a name becomes "_".
//
// Errors: AlreadyExists for two names that are one then; those of writing. The run that was there stays in that case.
absl::Status ExportToMlflow(absl::Span<const RunNumbers> runs, const std::string& folder);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_MLFLOW_EXPORT_H_
