#include "tools/gru_training/report.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/revision/revision.h"

namespace plait::gru_training {
namespace {

const char* SyntheticMark(bool synthetic) { return synthetic ? "\t(synthetic data)" : ""; }

double ShownResidual(double residual) { return std::isnan(residual) ? -1.0 : residual; }

// Sequences are cut, not sampled anew: with another --sequence-length and the same --tf, items stand for other times.
std::string StepLine(const GruSettings& s) {
  const double dt = s.tf / s.sequence_length;
  return dt == 1
             ? ""
             : absl::StrFormat("-- step size  = %g: tf = %g over %d items\n", dt, s.tf, s.sequence_length);
}

const char* Cell(bool implicit) { return implicit ? "implicit" : "classic"; }

}  // namespace

std::string SettingsBlock(int ranks, const std::string& settings) {
  return absl::StrFormat("Plait REV:      %s\n\nMPI: procs = %d\nINPUT: %s\n", Revision(), ranks, settings);
}

std::string DataLine(const std::string& name, const data::SequenceSet& set) {
  return absl::StrFormat("Loading %s: %s: %d + %d sequences of %d x %d", name, set.description(),
                         set.train.samples(), set.test.samples(), set.train.steps, set.train.channels);
}

std::string NetworkBlock(const GruSettings& settings, int lp_ranks) {
  const char* cell = Cell(settings.trains_implicit());
  if (!settings.lp.Solves(lp_ranks)) {
    return absl::StrFormat("Using SerialNet:\n-- cell       = %s\n-- dtype      = %s\n%s", cell,
                           settings.dtype, StepLine(settings));
  }
  return absl::StrFormat(
      "Using ParallelNet:\n-- max_levels = %d\n-- max_iters  = %d\n-- fwd_iters  = %d\n-- cfactor    = %s\n"
      "-- fwd0 relax = %d\n-- fwd relax  = %d\n-- skip down  = %s\n-- bwd relax  = %d\n-- cell       = %s\n"
      "-- serial     = %s\n-- coarse     = %s\n-- hold       = %s\n-- dtype      = %s\n%s",
      settings.lp.levels, settings.lp.iterations, settings.lp.Options().forward.max_iterations,
      absl::StrJoin(settings.lp.cfactor, ","), settings.lp.forward_finest_sweeps, settings.lp.forward_sweeps,
      settings.lp.use_downcycle ? "False" : "True", settings.lp.backward_sweeps, cell,
      Cell(settings.tests_implicit()), settings.lp_coarse_step, absl::StrJoin(settings.lp_coarse_hold, ","),
      settings.dtype, StepLine(settings));
}

std::string TrainLine(const TrainProgress& p, bool end_of_epoch) {
  const double forward = p.forward_times.mean_seconds(), loss = p.loss_times.mean_seconds(),
               backward = p.backward_times.mean_seconds();
  std::string line =
      absl::StrFormat("Train Epoch: %2d [%4d/%4d]\tLoss: %.6f\tTime Per Batch %.6f - F%2d/%.2e, B%2d/%.2e",
                      p.epoch, p.samples_done, p.samples, p.loss, forward + loss + backward,
                      p.forward.iterations, ShownResidual(p.forward.last_residual_norm()),
                      p.backward.iterations, ShownResidual(p.backward.last_residual_norm()));
  if (end_of_epoch) {
    absl::StrAppendFormat(&line, ", fp=%.6f, cm=%.6f, bp=%.6f", forward, loss, backward);
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

std::string ResidualLines(const char* direction, const mgrit::Solution& solution) {
  std::vector<std::string> lines;
  double before = std::nan("");
  for (std::size_t k = 0; k < solution.residual_norms.size(); ++k) {
    const double residual = solution.residual_norms[k];
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
