#include "tools/training/run_outputs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "data/hdf5/file.h"
#include "data/history/history.h"
#include "data/history/history_file.h"
#include "data/history/history_table.h"
#include "data/plot/plot.h"

namespace plait::training {
namespace {

constexpr char kBeganAtStep[] = "began_at_step";

// Path of the trace relative to the history's directory.
std::string RelativeTo(const std::string& file, const std::string& path) {
  return std::filesystem::path(path).lexically_relative(std::filesystem::path(file).parent_path()).string();
}

absl::StatusOr<data::Series> SeriesOf(const data::HistoryTable& table, const HistoryPlots& wanted,
                                      const std::string& metric) {
  data::Series series = {metric};
  PLAIT_ASSIGN_OR_RETURN(series.x, table.Column(wanted.x));
  PLAIT_ASSIGN_OR_RETURN(series.y, table.Column(metric));
  if (!wanted.skips_nan) return series;
  std::size_t kept = 0;
  for (std::size_t draw = 0; draw < series.y.size(); ++draw) {
    if (std::isnan(series.y[draw])) continue;
    series.x[kept] = series.x[draw];
    series.y[kept++] = series.y[draw];
  }
  series.x.resize(kept);
  series.y.resize(kept);
  return series;
}

absl::StatusOr<std::vector<data::Plot>> PlotsOf(const data::HistoryTable& table, const HistoryPlots& wanted,
                                                const std::string& stamp) {
  std::vector<data::Plot> plots;
  for (const auto& [name, metrics, y_label] : wanted.plots) {
    data::Plot plot = {.name = name,
                       .title = absl::StrCat(wanted.title, name, " [", stamp, "]"),
                       .x_label = wanted.x,
                       .y_label = y_label.empty() ? name : y_label,
                       .robust = wanted.robust};
    for (const std::string& metric : metrics.empty() ? std::vector<std::string>{name} : metrics) {
      PLAIT_ASSIGN_OR_RETURN(data::Series series, SeriesOf(table, wanted, metric));
      plot.unit = table.Find(metric)->units;
      if (!series.x.empty()) plot.series.push_back(std::move(series));
    }
    if (!plot.series.empty()) plots.push_back(std::move(plot));
  }
  return plots;
}

// Its `x` is empty if no draw has values.
absl::StatusOr<data::HeatMap> HeatMapOf(const data::HistoryTable& table, const HistoryPlots& wanted,
                                        const data::TableMetric& metric, const std::string& stamp) {
  const std::string& name = metric.name;
  data::HeatMap map = {.name = name,
                       .title = absl::StrCat(wanted.title, name, " [", stamp, "]"),
                       .x_label = wanted.x,
                       .y_label = metric.dimension,
                       .value_label = metric.long_name.empty() ? name : metric.long_name,
                       .unit = metric.units,
                       .robust = wanted.robust};
  PLAIT_ASSIGN_OR_RETURN(const std::vector<double> x, table.Column(wanted.x));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<double> vectors, table.Rows(name, 0, table.draws()));
  const auto is_nan = [](double value) { return std::isnan(value); };
  std::vector<std::size_t> kept;
  for (std::size_t draw = 0; draw < x.size(); ++draw) {
    const auto begin = vectors.begin() + static_cast<std::ptrdiff_t>(draw) * metric.width;
    const bool skipped = wanted.skips_nan && std::all_of(begin, begin + metric.width, is_nan);
    if (skipped || std::isnan(x[draw])) continue;
    kept.push_back(draw);
    map.x.push_back(x[draw]);
  }
  for (std::int64_t entry = 0; entry < metric.width; ++entry) {
    for (const std::size_t draw : kept) map.values.push_back(vectors[draw * metric.width + entry]);
  }
  return map;
}

// Returns the number of heat maps drawn.
absl::StatusOr<int> DrawHeatMaps(const data::HistoryTable& table, const HistoryPlots& wanted,
                                 const OutputFolder& folder) {
  int drawn = 0;
  for (const std::string& name : wanted.heat_maps) {
    const data::TableMetric* metric = table.Find(name);
    if (metric == nullptr || !metric->is_vector) continue;
    PLAIT_ASSIGN_OR_RETURN(const data::HeatMap map, HeatMapOf(table, wanted, *metric, folder.stamp));
    if (map.x.empty()) continue;
    PLAIT_RETURN_IF_ERROR(data::WritePictures({}, folder.path, {map}).status());
    ++drawn;
  }
  return drawn;
}

// Of a history without draws: those of the checkpoint, which are lost, unless the file was closed, or begun after them.
std::int64_t DrawsOfEmpty(const std::string& path, const RunOutputsOptions& options) {
  const absl::StatusOr<data::File> file = data::OpenHistoryFile(path);
  if (!file.ok()) return options.resumed_draws;
  if (data::IntAttribute(*file, "/", "complete").value_or(0) == 1) return 0;
  std::int64_t begun = 0;
  const absl::StatusOr<std::string> text = data::TextAttribute(*file, "/", kBeganAtStep);
  const bool is_other = text.ok() && absl::SimpleAtoi(*text, &begun) && begun >= options.steps_done;
  return is_other ? 0 : options.resumed_draws;
}

// Draws of the existing history that a resumed run goes on after. The checkpoint's number may be that of another file,
// so the steps count: draws of later steps are of an attempt that was interrupted.
std::int64_t DrawsToKeep(const std::string& path, const RunOutputsOptions& options) {
  if (options.begins_again) return 0;
  if (options.resumed_draws < 0 || options.steps_done < 0) return options.resumed_draws;
  const absl::StatusOr<data::HistoryTable> table = data::HistoryTable::Open(path);
  if (!table.ok()) return DrawsOfEmpty(path, options);
  const absl::StatusOr<std::vector<double>> steps = table->Column("step");
  if (!steps.ok()) return options.resumed_draws;
  const double done = static_cast<double>(options.steps_done);
  const auto later = std::find_if(steps->begin(), steps->end(), [done](double step) { return step > done; });
  const std::int64_t kept = later - steps->begin();
  // Without later draws, the last ones may have been lost in a power failure; History::Resume fills them with NaN. A file
  // that was closed has all of its run: the checkpoint's number is then another file's.
  const bool may_lack = later == steps->end() && !table->complete();
  return may_lack ? std::max(kept, options.resumed_draws) : kept;
}

// What an attempt that was killed has written; a file without draws stays.
absl::Status KeepKilledAttempt(const std::string& path, const RunOutputsOptions& options) {
  if (!data::HistoryTable::Open(path).ok()) return absl::OkStatus();
  const absl::StatusOr<std::string> aside = data::History::SetAside(path);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(aside.status(), "--history"));
  options.say(absl::StrCat("--history: ", path,
                           " has draws of an attempt that left no checkpoint here; kept as ", *aside));
  return absl::OkStatus();
}

// Draws that the run goes on after; -1: in a new history.
absl::StatusOr<std::int64_t> PrepareHistory(const std::string& path, const RunOutputsOptions& options) {
  if (options.resumed_draws < 0) {
    PLAIT_RETURN_IF_ERROR(CheckHistoryPlace(path, options.begins_again));
    if (options.begins_again) PLAIT_RETURN_IF_ERROR(KeepKilledAttempt(path, options));
  } else {
    PLAIT_RETURN_IF_ERROR(base::Prefixed(base::ProbeWritableFile(path), "--history"));
  }
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? DrawsToKeep(path, options) : -1;
}

std::string StampOf(std::int64_t unix_seconds) {
  return absl::FormatTime("%Y-%m-%d-%H%M%S", absl::FromUnixSeconds(unix_seconds), absl::LocalTimeZone());
}

std::string Numbered(const std::string& stamp, std::int64_t number) {
  return number == 1 ? stamp : absl::StrCat(stamp, "-", number);
}

// Returns the number in the name of the new folder: runs may begin in the same second. Errors are those of its probe.
std::int64_t MakeOwnFolder(const std::string& parent, const std::string& stamp) {
  base::MakeFolders(parent).IgnoreError();
  std::error_code error;
  std::int64_t number = 1;
  while (!std::filesystem::create_directory(absl::StrCat(parent, "/", Numbered(stamp, number)), error) &&
         !error)
    ++number;
  base::SyncFolder(parent);
  return number;
}

// A run saves its last checkpoint before its history is complete: without one, the history is another run's.
absl::Status CheckBegunAgain(const std::string& path) {
  const absl::StatusOr<data::HistoryTable> table = data::HistoryTable::Open(path);
  if (!table.ok() || !table->complete()) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("--history: ", path,
                   " is of a run that has ended, and there is no checkpoint to resume from; choose "
                   "another name, or remove the file"));
}

}  // namespace

absl::Status CheckHistoryPlace(const std::string& path, bool begins_again) {
  PLAIT_RETURN_IF_ERROR(base::Prefixed(base::ProbeWritableFile(path), "--history"));
  return begins_again ? CheckBegunAgain(path) : base::Prefixed(data::History::CheckFree(path), "--history");
}

absl::StatusOr<OutputFolder> OpenOutputFolder(const std::string& program, const std::string& outputs,
                                              const comm::Communicator& world) {
  const std::string parent = base::FromUser(absl::StrCat("outputs/", program));
  std::int64_t begun[2] = {absl::ToUnixSeconds(absl::Now()), 1};
  if (world.rank() == 0 && outputs.empty()) begun[1] = MakeOwnFolder(parent, StampOf(begun[0]));
  world.Broadcast(comm::BufferOf(absl::MakeSpan(begun)), 0);
  OutputFolder folder = {.path = outputs, .stamp = StampOf(begun[0])};
  if (outputs.empty()) folder.path = absl::StrCat(parent, "/", Numbered(folder.stamp, begun[1]));
  absl::Status writable;
  if (world.rank() == 0) writable = base::Prefixed(base::ProbeWritableFolder(folder.path), "--outputs");
  PLAIT_RETURN_IF_ERROR(world.Agree(writable));
  return folder;
}

absl::StatusOr<RunOutputs> RunOutputs::Open(const RunOutputsOptions& options, data::RunFacts facts,
                                            const comm::Communicator& world) {
  RunOutputs run;
  if (options.folder) {
    PLAIT_ASSIGN_OR_RETURN(run.folder_, OpenOutputFolder(options.program, options.outputs, world));
  }
  run.history_path_ =
      options.history.empty() ? absl::StrCat(run.folder(), "/", options.history_name) : options.history;
  run.trace_path_ = options.trace ? run.folder() + "/trace.json" : "";
  if (options.trace) facts.trace = RelativeTo(run.history_path_, run.trace_path_);
  run.attributes_ = data::RunAttributes(facts);
  PLAIT_RETURN_IF_ERROR(run.OpenHistory(options, world));
  run.trace_ = rank_history::RankTrace::Create(world, {.path = run.trace_path_});
  return run;
}

absl::Status RunOutputs::OpenHistory(const RunOutputsOptions& options, const comm::Communicator& world) {
  absl::StatusOr<std::int64_t> draws = -1;
  if (world.rank() == 0) draws = PrepareHistory(history_path_, options);
  PLAIT_RETURN_IF_ERROR(world.Agree(draws.status()));
  std::int64_t resumed[1] = {*draws};
  world.Broadcast(comm::BufferOf(absl::MakeSpan(resumed)), 0);
  std::map<std::string, std::string> attributes = attributes_;
  // Of an emptied file also zero, in place of what it said before.
  const bool is_told = resumed[0] < 0 ? options.steps_done > 0 : resumed[0] == 0 && options.steps_done >= 0;
  if (is_told) attributes[kBeganAtStep] = absl::StrCat(options.steps_done);
  // Where this attempt has none, the file must not tell those of the one before.
  if (resumed[0] >= 0) {
    for (const char* name : {"trace", "launch_command"}) attributes.try_emplace(name);
  }
  PLAIT_ASSIGN_OR_RETURN(history_,
                         rank_history::RankHistory::Create(world, {.path = history_path_,
                                                                   .attributes = attributes,
                                                                   .metrics = options.metrics,
                                                                   .gather_every = options.gather_every,
                                                                   .resume_draws = resumed[0],
                                                                   .exports = options.exports}));
  return absl::OkStatus();
}

absl::Status RunOutputs::Close() {
  trace_->TakeCalls();
  PLAIT_RETURN_IF_ERROR(history_->Close());
  return trace_->Write(attributes_);
}

absl::Status RunOutputs::TryToDraw(const HistoryPlots& wanted, const base::Log& log,
                                   const Print& print) const {
  PLAIT_ASSIGN_OR_RETURN(const data::HistoryTable table, data::HistoryTable::Open(history_path_));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<data::Plot> plots, PlotsOf(table, wanted, folder_.stamp));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                         data::RenderTexts(plots, data::TextStyleOf(1)));
  for (const std::string& text : texts) print(absl::StrCat("\n", absl::StripSuffix(text, "\n")));
  PLAIT_RETURN_IF_ERROR(data::WritePictures(plots, folder()).status());
  PLAIT_ASSIGN_OR_RETURN(const int heat_maps, DrawHeatMaps(table, wanted, folder_));
  log.Info(absl::StrCat("plots of ", plots.size() + heat_maps, " metrics saved in ", folder(),
                        "/{tplots,svgs,pngs}"));
  return absl::OkStatus();
}

void RunOutputs::Draw(const HistoryPlots& plots, const base::Log& log, const Print& print) const {
  const absl::Status drawn = TryToDraw(plots, log, print);
  if (!drawn.ok()) log.Warning(absl::StrCat("no plots: ", drawn.message()));
}

}  // namespace plait::training
