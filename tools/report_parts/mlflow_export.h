// Exports runs to MLflow's file store (a tracking directory, `mlruns`), without MLflow.
//
//   FOLDER/0/meta.yaml                  experiment "Default", unless it exists
//   FOLDER/0/RUN/meta.yaml              name, status, times; JSON, which is YAML
//   FOLDER/0/RUN/metrics/loss           "milliseconds value step" in each line
//   FOLDER/0/RUN/params/batch_size      a file per setting of the run
//   FOLDER/0/RUN/tags/host              a file per other attribute; mlflow.runName, mlflow.source.git.commit ...
//
// Read by `mlflow ui --backend-store-uri FOLDER`; MLflow 3.17 requires MLFLOW_ALLOW_FILE_STORE=true, or an import into
// a database with `mlflow migrate-filestore`.
#ifndef PLAIT_TOOLS_REPORT_PARTS_MLFLOW_EXPORT_H_
#define PLAIT_TOOLS_REPORT_PARTS_MLFLOW_EXPORT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tools/report_parts/run_numbers.h"

namespace plait::report {

// RUN is a hash of the history's path. Exporting a run again replaces its metrics, parameters, meta.yaml and the tags
// that it writes; artifacts and other tags, which people add, stay. Scalars only, at full precision, without skipped
// draws; NaN is left out, as a history does not distinguish it from "not given". Steps and times as of curve_data.h: the
// timestamp of a value is the run's start plus the time of the steps until then. Characters that MLflow does not allow in
// names become "_".
//
// ALREADY_EXISTS if two names become the same, which leaves an earlier export of the run as it was; errors of writing.
absl::Status ExportToMlflow(absl::Span<const RunNumbers> runs, const std::string& folder);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_MLFLOW_EXPORT_H_
