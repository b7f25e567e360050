// Writes histories with their exports into a folder, for exports_test.py: write_exports FOLDER.
#include <cstdio>
#include <limits>

#include "data/history/history.h"
#include "data/history/run_attributes.h"
#include "data/history/settings_line.h"
#include "data/history/sinks.h"

namespace plait::data {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

absl::Status Write(const std::string& folder) {
  RunFacts facts = {
      .program = "write_exports", .seed = "7", .ranks = 3, .settings = "--batch-size=64 --bf16"};
  const auto attributes = RunAttributes(facts);
  auto history = *History::Create(folder + "/run.h5", {.attributes = attributes});
  history->AddSink(*MakeCsvSink(folder + "/run.csv"));
  history->AddSink(*MakeJsonLinesSink(folder + "/run.jsonl"));
  history->AddSink(*MakeTensorboardSink(
      folder + "/tb", {.attributes = attributes, .hyperparameters = ParseSettings(facts.settings)}));
  Metric per_rank{"dt_per_rank", "s", "time of a step", "value of each rank", "rank", 3};
  absl::Status status = history->Declare({"dt", "s", "time of a step", "mean over ranks"});
  status.Update(history->Declare({"loss", "1", "loss of the batch"}));
  status.Update(history->Declare(per_rank));
  status.Update(history->Declare(Count("step", "steps done")));
  status.Update(history->Declare(Count("level", "from the third draw on")));
  for (int i = 0; i < 5; ++i) {
    const std::vector<double> dt = {0.1 * i, 0.2 * i, i == 3 ? kNaN : 0.3 * i};
    std::vector<Scalar> scalars = {{"dt", 0.2 * i}, {"step", 100000.0 * i}};
    if (i != 2) scalars.push_back({"loss", i == 1 ? kNaN : i == 4 ? -kInf : 1.0 / (1 + i)});
    if (i >= 3) scalars.push_back({"late", 7});
    if (i >= 2) scalars.push_back({"level", 1.0 * i});
    const double norms[] = {1, 2};
    std::vector<Vector> vectors = {{"dt_per_rank", dt}};
    if (i >= 1) vectors.push_back({"norms", norms});
    status.Update(history->Append(scalars, vectors));
  }
  status.Update(history->Close());
  return status;
}

// Four draws of a loss, then two that replace the last two.
absl::Status WriteResumed(const std::string& folder) {
  for (const std::int64_t kept : {-1, 2}) {
    const std::string path = folder + "/resumed.h5";
    auto history = kept < 0 ? History::Create(path, {}) : History::Resume(path, kept, {});
    if (!history.ok()) return history.status();
    auto sink =
        MakeTensorboardSink(folder + "/resumed_tb", {.attributes = {{"a", "b"}}, .resume_draws = kept});
    if (!sink.ok()) return sink.status();
    (*history)->AddSink(*std::move(sink));
    absl::Status status = (*history)->Declare({"loss", "1", "loss of the batch"});
    for (int i = 0; i < (kept < 0 ? 4 : 2); ++i) {
      status.Update((*history)->Append({{"loss", kept < 0 ? 1.0 * i : 20.0 + i}}));
    }
    status.Update((*history)->Close());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace plait::data

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  absl::Status status = plait::data::Write(argv[1]);
  status.Update(plait::data::WriteResumed(argv[1]));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
