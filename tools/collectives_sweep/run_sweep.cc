#include "tools/collectives_sweep/run_sweep.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "comm/long_barrier.h"
#include "tools/collectives_sweep/pairs.h"
#include "tools/collectives_sweep/sweep_file.h"
#include "tools/collectives_sweep/table.h"

namespace plait::collectives_sweep {
namespace {

data::Plot PlotOf(const Sweep& sweep, int group, bool bandwidth) {
  const std::string& name = sweep.groups[group];
  data::Plot plot = {
      .name = absl::StrCat(bandwidth ? "bandwidth_" : "time_", name),
      .title = absl::StrCat(bandwidth ? "bus bandwidth" : "time", " of collectives, group ", name),
      .x_label = "size",
      .y_label = bandwidth ? "bus bandwidth" : "time",
      .unit = bandwidth ? "bytes/s" : "s",
      .x_unit = "bytes",
      .log_y = true,
      .log_x = true,
      .robust = false};
  for (const Row& row : sweep.rows) {
    if (row.group != group || row.operation == Swept::kBarrier) continue;
    const double value = bandwidth ? row.bus_bandwidth() : row.seconds.median;
    if (value <= 0) continue;  // a group of one has no bus
    const std::string operation(Name(row.operation));
    if (plot.series.empty() || plot.series.back().name != operation) plot.series.push_back({operation});
    plot.series.back().x.push_back(static_cast<double>(row.message.bytes));
    plot.series.back().y.push_back(value);
  }
  return plot;
}

void PrintPlots(const Sweep& sweep, const std::string& folder, const Printer& print) {
  const auto files = data::WritePictures(PlotsOf(sweep), folder);
  if (!files.ok()) return print(absl::StrCat("# ", files.status().message()));
  for (const std::string& file : *files) print(absl::StrCat("# plot saved in ", file));
}

void ShowPlots(const Sweep& sweep, const Printer& print) {
  const auto texts = data::RenderTexts(PlotsOf(sweep), data::TextStyleOf(1));
  if (!texts.ok()) return print(absl::StrCat("# ", texts.status().message()));
  for (const std::string& text : *texts) print(text);
}

PairMatrix MeasureAndPrintPairs(const comm::Communicator& world, const SweepOptions& options,
                                const Printer& print) {
  if (!options.pairs || world.size() < 2) return {};
  PairMatrix matrix = MeasurePairs(world, options);
  for (const std::string& line : MatrixLines(matrix)) print(line);
  for (const std::string& line : SlowParts(matrix, options.slow_ratio)) print("# slow: " + line);
  return matrix;
}

}  // namespace

std::vector<data::Plot> PlotsOf(const Sweep& sweep) {
  std::vector<data::Plot> plots;
  for (int group = 0; group < static_cast<int>(sweep.groups.size()); ++group) {
    for (const bool bandwidth : {true, false}) {
      data::Plot plot = PlotOf(sweep, group, bandwidth);
      if (!plot.series.empty()) plots.push_back(std::move(plot));
    }
  }
  return plots;
}

absl::Status RunSweep(const comm::Communicator& world, const SweepOptions& options, const Printer& print,
                      const std::map<std::string, std::string>& attributes) {
  PLAIT_RETURN_IF_ERROR(world.Agree(CheckOptions(options)));
  const bool speaks = world.rank() == 0;
  const Printer say = [&](const std::string& line) {
    if (speaks) print(line);
  };
  absl::Status told = absl::OkStatus();
  const Sweep sweep = MeasureCollectives(world, options, [&](const Sweep& so_far, const Row& row) {
    if (row.size == 0) {
      for (const std::string& line : Heading(so_far, row)) say(line);
    }
    say(Line(row));
    if (told.ok() && !so_far.verdict.ok()) {
      told = so_far.verdict;
      say(absl::StrCat("# ", told.message()));
    }
  });
  const PairMatrix pairs = MeasureAndPrintPairs(world, options, say);
  absl::Status written = absl::OkStatus();
  if (speaks && !options.file.empty()) {
    std::map<std::string, std::string> all = attributes;
    all["ranks"] = absl::StrCat(world.size());
    written = WriteSweep(options.file, sweep, pairs, options, all);
    if (written.ok()) say(absl::StrCat("# results saved in ", options.file));
  }
  if (speaks && options.show_plots) ShowPlots(sweep, say);
  if (speaks && !options.plots_folder.empty()) PrintPlots(sweep, options.plots_folder, say);
  // Drawing has limits of its own (data/plot), which may be longer than --timeout.
  if (options.show_plots || !options.plots_folder.empty())
    comm::LongBarrier(world, std::numeric_limits<double>::infinity());
  PLAIT_RETURN_IF_ERROR(sweep.verdict);
  return world.Agree(written);
}

}  // namespace plait::collectives_sweep
