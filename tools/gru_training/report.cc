#include "tools/gru_training/report.h"

#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/revision/revision.h"

namespace plait::gru_training {
namespace {

const char* SyntheticMark(bool synthetic) { return synthetic ? "\t(synthetic data)" : ""; }

double ShownResidual(double residual) { return std::isnan(residual) ? -1.0 : residual; }

const char* Cell(bool implicit) { return implicit ? "implicit" : "classic"; }

}  // namespace

std::string SettingsBlock(int ranks, const std::string& settings) {
  return absl::StrFormat("Plait REV:      %s\n\nMPI: procs = %d\nINPUT: %s\n", Revision(), ranks, settings);
}

std::string DataLine(const data::SequenceSet& set) {
  return absl::StrFormat("Loading UCI HAR Dataset: %s: %d + %d sequences of %d x %d", set.description(),
                         set.train.samples(), set.test.samples(), set.train.steps, set.train.channels);
}

std::string NetworkBlock(const GruSettings& settings, int lp_ranks) {
  const char* cell = Cell(settings.trains_implicit());
  if (!settings.SolvesParallel(lp_ranks)) {
    return absl::StrFormat("Using SerialNet:\n-- cell       = %s\n-- dtype      = %s\n", cell,
                           settings.dtype);
  }
  return absl::StrFormat(
      "Using ParallelNet:\n-- max_levels = %d\n-- max_iters  = %d\n-- fwd_iters  = %d\n-- cfactor    = %s\n"
      "-- fwd0 relax = %d\n-- fwd relax  = %d\n-- skip down  = %s\n-- bwd relax  = %d\n-- cell       = %s\n"
      "-- serial     = %s\n-- coarse     = %s\n-- hold       = %s\n-- dtype      = %s\n",
      settings.lp_levels, settings.lp_iters, settings.forward_iterations(),
      absl::StrJoin(settings.lp_cfactor, ","), settings.lp_fwd_finerelax, settings.lp_fwd_relax,
      settings.lp_use_downcycle ? "False" : "True", settings.lp_bwd_relax, cell,
      Cell(settings.tests_implicit()), settings.lp_coarse_step, absl::StrJoin(settings.lp_coarse_hold, ","),
      settings.dtype);
}

void EpochTimes::Add(const BatchTimes& batch) {
  ++batches;
  sum.forward_seconds += batch.forward_seconds;
  sum.loss_seconds += batch.loss_seconds;
  sum.backward_seconds += batch.backward_seconds;
}

BatchTimes EpochTimes::Mean() const {
  if (batches == 0) return {};
  const double n = static_cast<double>(batches);
  return {sum.forward_seconds / n, sum.loss_seconds / n, sum.backward_seconds / n};
}

std::string TrainLine(const TrainProgress& p, bool end_of_epoch) {
  const BatchTimes mean = p.times.Mean();
  std::string line =
      absl::StrFormat("Train Epoch: %2d [%4d/%4d]\tLoss: %.6f\tTime Per Batch %.6f - F%2d/%.2e, B%2d/%.2e",
                      p.epoch, p.samples_done, p.samples, p.loss, mean.seconds(), p.forward.iterations,
                      ShownResidual(p.forward.last_residual()), p.backward.iterations,
                      ShownResidual(p.backward.last_residual()));
  if (end_of_epoch) {
    absl::StrAppendFormat(&line, ", fp=%.6f, cm=%.6f, bp=%.6f", mean.forward_seconds, mean.loss_seconds,
                          mean.backward_seconds);
  }
  return line + SyntheticMark(p.synthetic);
}

std::string TestLine(const std::string& network, std::int64_t epoch, const TestResult& result,
                     bool synthetic) {
  return absl::StrFormat("%-9s Test set epoch %2d: Accuracy: %d/%d (%.0f%%)\tTime Per Batch %.6f%s",
                         network + ":", epoch, result.correct, result.samples, 100 * result.accuracy(),
                         result.seconds_per_batch(), SyntheticMark(synthetic));
}

std::string EnsembleLines(const std::string& indent, double epoch_seconds, double parallel_accuracy,
                          double serial_accuracy, bool synthetic) {
  return absl::StrFormat(
      "%sAVG EPOCH TIME: %.6fs\n%sACCURACY:       parallel = %.0f%%,   serial = %.0f%%%s\n", indent,
      epoch_seconds, indent, 100 * parallel_accuracy, 100 * serial_accuracy, SyntheticMark(synthetic));
}

double MeanOf(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::string ResidualLines(const char* direction, const SolveReport& report) {
  std::vector<std::string> lines;
  double before = std::nan("");
  for (std::size_t k = 0; k < report.residuals.size(); ++k) {
    const double residual = report.residuals[k];
    std::string line = absl::StrFormat("  %-8s  iter %d  |r| = ", direction, k);
    absl::StrAppend(&line, std::isnan(residual) ? "none" : absl::StrFormat("%.6e", residual));
    if (k > 0 && std::isfinite(residual / before))
      absl::StrAppendFormat(&line, "  factor = %.4f", residual / before);
    lines.push_back(line);
    before = residual;
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace plait::gru_training
