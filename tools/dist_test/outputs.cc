#include "tools/dist_test/outputs.h"

#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "comm/stats.h"
#include "data/hdf5/atomic_file.h"
#include "data/history/history_table.h"

namespace plait::dist_test {
namespace {

using rank_history::RankStatistics;

std::vector<training::Recorded> Metrics() {
  return {{{"iter", "1", "step, from 0"}, RankStatistics::kRankZero},
          {{"loss", "1", "sum of squared errors of a rank's samples"}, RankStatistics::kStatistics},
          {{"sps", "1/s", "samples per second of a rank"}, RankStatistics::kStatistics},
          {{"sps_world", "1/s", "samples per second of all ranks"}, RankStatistics::kRankZero},
          {{"dt", "s", "time per step"}, RankStatistics::kEachRank},
          {{"dtf", "s", "forward pass and loss"}, RankStatistics::kEachRank},
          {{"dtb", "s", "backward pass, reductions and optimizer"}, RankStatistics::kEachRank},
          {{"dto", "s", "optimizer"}, RankStatistics::kStatistics},
          {{"comm_bytes_dp", "bytes", "sent by a rank"}, RankStatistics::kStatistics},
          {{"comm_in_flight_dp", "s", "collectives in flight, added up"}, RankStatistics::kStatistics},
          {{"comm_exposed_dp", "s", "of that, the rank waited"}, RankStatistics::kStatistics}};
}

data::Plot PlotOf(const std::string& name, const data::TableMetric& metric, std::vector<double> x,
                  std::vector<double> y, const std::string& stamp) {
  return {.name = name,
          .title = absl::StrCat("train/", name, " [", stamp, "]"),
          .y_label = name,
          .unit = metric.units,
          .series = {{name, std::move(x), std::move(y)}}};
}

absl::StatusOr<std::vector<data::Plot>> PlotsOf(const std::string& history, const std::string& stamp) {
  PLAIT_ASSIGN_OR_RETURN(const data::HistoryTable table, data::HistoryTable::Open(history));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<double> iterations, table.Column("iter"));
  std::vector<data::Plot> plots;
  data::Plot times = {
      .name = "times", .title = absl::StrCat("train/times [", stamp, "]"), .y_label = "time", .unit = "s"};
  for (const std::string name : {"dt", "dtf", "dtb", "loss", "iter", "sps"}) {
    PLAIT_ASSIGN_OR_RETURN(std::vector<double> values, table.Column(name));
    if (name[0] == 'd') times.series.push_back({name, iterations, values});
    plots.push_back(PlotOf(name, *table.Find(name), iterations, std::move(values), stamp));
  }
  plots.push_back(std::move(times));
  return plots;
}

}  // namespace

std::string TrafficName(const comm::DeviceMesh& mesh) {
  std::vector<std::string> names;
  for (const comm::MeshAxis& axis : mesh.axes()) names.push_back(axis.name);
  return absl::StrCat(names.size() == 1 ? "all-reduce" : "collectives", "[", absl::StrJoin(names, ","), "]");
}

absl::StatusOr<Outputs> Outputs::Open(const Config& config, data::RunFacts facts,
                                      const comm::Communicator& world) {
  PLAIT_ASSIGN_OR_RETURN(training::RunOutputs run,
                         training::RunOutputs::Open({.program = "test_dist",
                                                     .outputs = config.outputs,
                                                     .history = config.history,
                                                     .trace = config.trace,
                                                     .metrics = Metrics(),
                                                     .exports = {.csv = config.csv,
                                                                 .json_lines = config.json_lines,
                                                                 .tensorboard = config.tensorboard}},
                                                    std::move(facts), world));
  return Outputs(std::move(run));
}

Outputs::Traffic Outputs::TrafficSince(const comm::DeviceMesh& mesh) {
  Traffic now;
  const comm::Stats& stats = mesh.world().stats();
  for (const comm::MeshAxis& axis : mesh.axes()) {
    const auto found = stats.find(axis.name);
    if (found == stats.end()) continue;
    for (const comm::Operation operation :
         {comm::Operation::kAllReduce, comm::Operation::kReduceScatter, comm::Operation::kAllGather}) {
      const comm::OperationStats& all = found->second[static_cast<int>(operation)];
      now.bytes += static_cast<double>(all.wire_bytes);
      now.in_flight_seconds += all.in_flight_seconds;
      now.exposed_seconds += all.exposed_seconds;
    }
  }
  const Traffic before = std::exchange(so_far_, now);
  return {now.bytes - before.bytes, now.in_flight_seconds - before.in_flight_seconds,
          now.exposed_seconds - before.exposed_seconds};
}

absl::Status Outputs::Record(const StepSummary& step, const StepTimes& times, const comm::DeviceMesh& mesh) {
  const Traffic traffic = TrafficSince(mesh);
  in_flight_ += traffic.in_flight_seconds;
  exposed_ += traffic.exposed_seconds;
  ++steps_;
  if (static_cast<int>(steps_) % 8 == 0) run_.trace().TakeCalls();
  return run_.history().Append({{"iter", static_cast<double>(step.iter)},
                                {"loss", times.loss},
                                {"sps", step.sps},
                                {"sps_world", step.sps_world},
                                {"dt", step.dt},
                                {"dtf", step.dtf},
                                {"dtb", step.dtb},
                                {"dto", times.optimizer()},
                                {"comm_bytes_dp", traffic.bytes},
                                {"comm_in_flight_dp", traffic.in_flight_seconds},
                                {"comm_exposed_dp", traffic.exposed_seconds}});
}

void Outputs::Draw(const base::Log& log) const { run_.Draw(PlotsOf(history_path(), run_.stamp()), log); }

absl::Status Outputs::Write(const std::string& name, const std::string& text) const {
  return data::WriteAtomically(folder() + "/" + name, static_cast<std::int64_t>(text.size()),
                               [&](const std::string& partial) -> absl::Status {
                                 std::ofstream file(partial);
                                 file << text;
                                 if (!file.flush())
                                   return absl::UnavailableError(name + ": cannot be written");
                                 return absl::OkStatus();
                               });
}

}  // namespace plait::dist_test
