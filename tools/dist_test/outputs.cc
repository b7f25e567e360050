#include "tools/dist_test/outputs.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "comm/stats.h"
#include "data/hdf5/atomic_file.h"
#include "data/history/history_table.h"
#include "data/plot/plot.h"
#include "tools/dist_test/output_folder.h"

namespace plait::dist_test {
namespace {

using rank_history::OverRanks;

struct Recorded {
  data::Metric metric;
  OverRanks over;
};

std::vector<Recorded> Metrics() {
  return {{{"iter", "1", "step, from 0"}, OverRanks::kRankZero},
          {{"loss", "1", "sum of squared errors of a rank's samples"}, OverRanks::kStatistics},
          {{"sps", "1/s", "samples per second of a rank"}, OverRanks::kStatistics},
          {{"sps_world", "1/s", "samples per second of all ranks"}, OverRanks::kRankZero},
          {{"dt", "s", "time per step"}, OverRanks::kEachRank},
          {{"dtf", "s", "forward pass and loss"}, OverRanks::kEachRank},
          {{"dtb", "s", "backward pass, all-reduce and optimizer"}, OverRanks::kEachRank},
          {{"dto", "s", "the last all-reduces and the optimizer"}, OverRanks::kStatistics},
          {{"comm_bytes_dp", "bytes", "sent by a rank"}, OverRanks::kStatistics},
          {{"comm_in_flight_dp", "s", "all-reduces in flight, added up"}, OverRanks::kStatistics},
          {{"comm_exposed_dp", "s", "of that, a rank stood still"}, OverRanks::kStatistics}};
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

absl::Status DrawPlots(const std::string& history, const std::string& stamp, const std::string& folder,
                       const base::Log& log) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<data::Plot> plots, PlotsOf(history, stamp));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                         data::RenderTexts(plots, data::TextStyleOf(1)));
  for (const std::string& text : texts) std::fputs(absl::StrCat("\n", text).c_str(), stdout);
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> files, data::WritePictures(plots, folder));
  log.Info(absl::StrCat("plots of ", plots.size(), " metrics saved in ", folder, "/{tplots,svgs,pngs}"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Outputs> Outputs::Open(const Config& config, data::RunFacts facts,
                                      const comm::Communicator& world) {
  Outputs outputs;
  PLAIT_ASSIGN_OR_RETURN(const OutputFolder folder, OpenOutputFolder(config, world));
  outputs.stamp_ = folder.stamp;
  outputs.folder_ = folder.path;
  outputs.history_path_ = config.history.empty() ? outputs.folder_ + "/history.h5" : config.history;
  outputs.trace_path_ = config.trace ? outputs.folder_ + "/trace.json" : "";
  absl::Status writable;
  if (world.rank() == 0) {
    writable = base::Prefixed(base::ProbeWritableFile(outputs.history_path_), "--history");
  }
  PLAIT_RETURN_IF_ERROR(world.Agree(writable));
  if (config.trace) {
    facts.trace = std::filesystem::path(outputs.trace_path_)
                      .lexically_relative(std::filesystem::path(outputs.history_path_).parent_path())
                      .string();
  }
  outputs.attributes_ = data::RunAttributes(facts);
  PLAIT_ASSIGN_OR_RETURN(outputs.history_, rank_history::RankHistory::Create(
                                               world, {.path = outputs.history_path_,
                                                       .attributes = outputs.attributes_,
                                                       .exports = {.csv = config.csv,
                                                                   .json_lines = config.json_lines,
                                                                   .tensorboard = config.tensorboard}}));
  PLAIT_RETURN_IF_ERROR(outputs.Declare());
  outputs.trace_ = rank_history::RankTrace::Create(world, {.path = outputs.trace_path_});
  return outputs;
}

absl::Status Outputs::Declare() {
  for (const Recorded& one : Metrics()) PLAIT_RETURN_IF_ERROR(history_->Declare(one.metric, one.over));
  return absl::OkStatus();
}

Outputs::Traffic Outputs::TrafficSince(const comm::Communicator& dp) {
  Traffic now;
  const comm::Stats& stats = dp.stats();
  if (const auto axis = stats.find("dp"); axis != stats.end()) {
    const comm::OperationStats& all = axis->second[static_cast<int>(comm::Operation::kAllReduce)];
    now = {static_cast<double>(all.wire_bytes), all.in_flight_seconds, all.exposed_seconds};
  }
  const Traffic before = std::exchange(so_far_, now);
  return {now.bytes - before.bytes, now.in_flight_seconds - before.in_flight_seconds,
          now.exposed_seconds - before.exposed_seconds};
}

absl::Status Outputs::Record(const StepSummary& step, const StepTimes& times, const comm::Communicator& dp) {
  const Traffic traffic = TrafficSince(dp);
  in_flight_ += traffic.in_flight_seconds;
  exposed_ += traffic.exposed_seconds;
  ++steps_;
  if (static_cast<int>(steps_) % 8 == 0) trace_->TakeCalls();
  return history_->Append({{"iter", static_cast<double>(step.iter)},
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

absl::Status Outputs::Close() {
  trace_->TakeCalls();
  PLAIT_RETURN_IF_ERROR(history_->Close());
  return trace_->Write(attributes_);
}

void Outputs::Draw(const base::Log& log) const {
  const absl::Status drawn = DrawPlots(history_path_, stamp_, folder_, log);
  if (!drawn.ok()) log.Warning(absl::StrCat("no plots: ", drawn.message()));
}

absl::Status Outputs::Write(const std::string& name, const std::string& text) const {
  return data::WriteAtomically(folder_ + "/" + name, static_cast<std::int64_t>(text.size()),
                               [&](const std::string& partial) -> absl::Status {
                                 std::ofstream file(partial);
                                 file << text;
                                 if (!file.flush())
                                   return absl::UnavailableError(name + ": cannot be written");
                                 return absl::OkStatus();
                               });
}

}  // namespace plait::dist_test
