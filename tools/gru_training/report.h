// The lines that a run prints, in the format of the published run log, with correct units.
//
//   Train Epoch:  1 [ 100/7352]	Loss: 1.766864	Time Per Batch 0.143418 - F 2/5.29e+01, B 1/-1.00e+00
//   PARALLEL: Test set epoch  1: Accuracy: 1551/2947 (53%)	Time Per Batch 0.090900
//
// "Time Per Batch" is the mean of the epoch so far, in seconds per batch: forward, loss and backward. fp, cm
// and bp (forward, loss, backward) are seconds per batch as well. F and B: iterations of the latest solve, and the
// residual of the state that entered its last iteration, -1 if it was not computed. Lines about synthetic data end in
// "(synthetic data)". Local.
#ifndef PLAIT_TOOLS_GRU_TRAINING_REPORT_H_
#define PLAIT_TOOLS_GRU_TRAINING_REPORT_H_

#include <cstdint>
#include <string>

#include "base/timer.h"
#include "data/sequence_set.h"
#include "mgrit/solver.h"
#include "tools/gru_training/settings.h"

namespace plait::gru_training {

// Lines "Plait REV: ", "MPI: procs = " and "INPUT: ".
std::string SettingsBlock(int ranks, const std::string& settings);
// "Loading UCI HAR Dataset: DESCRIPTION: 7415 + 2996 sequences of 128 x 9", (steps x channels).
std::string DataLine(const std::string& name, const data::SequenceSet& set);
// "Using ParallelNet:" with the solver's settings or "Using SerialNet:", cell and dtype, and the step size if not 1.
std::string NetworkBlock(const GruSettings& settings, int lp_ranks);

// Of the epoch so far; loss and solves of its latest batch.
struct TrainProgress {
  std::int64_t epoch = 1;  // from 1
  std::int64_t samples_done = 0;
  std::int64_t samples = 0;
  double loss = 0;
  base::Timer forward_times, loss_times, backward_times;  // by batch
  // Without a layer-parallel solver: one iteration, residual 0.
  mgrit::Solution forward = {.iterations = 1, .residual_norms = {0.0}, .work = {}};
  mgrit::Solution backward = forward;
  bool synthetic = false;
};
std::string TrainLine(const TrainProgress& progress, bool end_of_epoch);

struct TestResult {
  std::int64_t correct = 0;
  std::int64_t not_finite = 0;  // samples whose scores are NaN or infinite
  std::int64_t samples = 0;
  std::int64_t batches = 0;
  double seconds = 0;

  double accuracy() const {
    return samples == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(samples);
  }
  double seconds_per_batch() const { return batches == 0 ? 0 : seconds / static_cast<double>(batches); }
};
// `network`: PARALLEL or SERIAL.
std::string TestLine(const std::string& network, std::int64_t epoch, const TestResult& result,
                     bool synthetic);

// AVG EPOCH TIME and ACCURACY of a model, or of the mean of several.
std::string EnsembleLines(const std::string& indent, double epoch_seconds, double parallel_accuracy,
                          double serial_accuracy, bool synthetic);

// "  forward   iter 1  |r| = 5.290000e+01  factor = 0.3100", a line per iteration; the first has no factor.
std::string ResidualLines(const char* direction, const mgrit::Solution& solution);

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_REPORT_H_
