#include "tools/dist_test/outputs.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "comm/stats.h"

namespace plait::dist_test {
namespace {

using rank_history::RankStatistics;

std::vector<training::Recorded> Metrics() {
  return {{data::Count("iter", "step, from 0")},
          {{"loss", "1", "sum of squared errors of a rank's samples"}, RankStatistics::kStatistics},
          {{"sps", "1/s", "samples per second of a rank"}, RankStatistics::kEachRank},
          {{"sps_world", "1/s", "samples per second of all ranks"}},
          {{"dt", "s", "time per step"}, RankStatistics::kEachRank},
          {{"dtf", "s", "forward pass and loss"}, RankStatistics::kEachRank},
          {{"dtb", "s", "backward pass, reductions and optimizer"}, RankStatistics::kEachRank},
          {{"dto", "s", "optimizer"}, RankStatistics::kStatistics},
          {{"comm_bytes_dp", "bytes", "sent by a rank"}, RankStatistics::kStatistics},
          {{"comm_in_flight_dp", "s", "collectives in flight, added up"}, RankStatistics::kStatistics},
          {{"comm_exposed_dp", "s", "of that, the rank waited"}, RankStatistics::kStatistics}};
}

}  // namespace

std::string TrafficName(const comm::DeviceMesh& mesh) {
  std::vector<std::string> names;
  for (const comm::MeshAxis& axis : mesh.axes()) names.push_back(axis.name);
  return absl::StrCat(names.size() == 1 ? "all-reduce" : "collectives", "[", absl::StrJoin(names, ","), "]");
}

absl::StatusOr<Outputs> Outputs::Open(const Config& config, const data::RunFacts& facts,
                                      const comm::Communicator& world) {
  PLAIT_ASSIGN_OR_RETURN(training::RunOutputs files,
                         training::RunOutputs::Open({.program = "test_dist",
                                                     .outputs = config.outputs,
                                                     .history = config.history,
                                                     .trace = config.trace,
                                                     .metrics = Metrics(),
                                                     .exports = {.csv = config.csv,
                                                                 .json_lines = config.json_lines,
                                                                 .tensorboard = config.tensorboard}},
                                                    facts, world));
  return Outputs(std::move(files));
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

absl::Status Outputs::Record(const StepSummary& step, const comm::DeviceMesh& mesh) {
  const Traffic traffic = TrafficSince(mesh);
  in_flight_ += traffic.in_flight_seconds;
  exposed_ += traffic.exposed_seconds;
  ++steps_;
  if (static_cast<int>(steps_) % 8 == 0) files_.trace().TakeCalls();
  return files_.history().Append({{"iter", static_cast<double>(step.iter)},
                                  {"loss", step.times.loss},
                                  {"sps", step.sps},
                                  {"sps_world", step.sps_world},
                                  {"dt", step.times.dt()},
                                  {"dtf", step.times.dtf()},
                                  {"dtb", step.times.dtb()},
                                  {"dto", step.times.optimizer()},
                                  {"comm_bytes_dp", traffic.bytes},
                                  {"comm_in_flight_dp", traffic.in_flight_seconds},
                                  {"comm_exposed_dp", traffic.exposed_seconds}});
}

void Outputs::Draw(const base::Log& log) const {
  files_.Draw({.x = "iter",
               .plots = {{"dt"},
                         {"dtf"},
                         {"dtb"},
                         {"loss"},
                         {"iter"},
                         {"sps"},
                         {.name = "times", .metrics = {"dt", "dtf", "dtb"}, .y_label = "time"}}},
              log, [](const std::string& text) { std::puts(text.c_str()); });
}

}  // namespace plait::dist_test
