// The lines that a run prints: the shape of the published run log, with units made true.
//
//   Train Epoch:  1 [ 100/7352]	Loss: 1.766864	Time Per Batch 0.143418 - F 2/5.29e+01, B 1/-1.00e+00
//   PARALLEL: Test set epoch  1: Accuracy: 1551/2947 (53%)	Time Per Batch 0.090900
//
// "Time Per Batch" is the mean of the epoch so far, in seconds per batch: forward, loss and backward. fp, cm
// and bp (forward, loss, backward) are seconds per batch as well. F and B: iterations and residual of the
// latest solve; the residual is that of the state that entered the last iteration, -1 where there was none.
// Lines about synthetic data say so. Local; texts without a final newline.
#ifndef PLAIT_TOOLS_GRU_TRAINING_REPORT_H_
#define PLAIT_TOOLS_GRU_TRAINING_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "data/sequence_set.h"
#include "tools/gru_training/settings.h"

namespace plait::gru_training {

// What a solve came to. Residuals by iteration; NaN where none was taken. Serial: one iteration, residual 0.
struct SolveReport {
  int iterations = 1;
  std::vector<double> residuals = {0.0};
  double last_residual() const { return residuals.empty() ? -1.0 : residuals.back(); }
};

// Plait REV, MPI: procs, INPUT.
std::string SettingsBlock(int ranks, const std::string& settings);
// "Loading UCI HAR Dataset: 7415 + 2996 sequences of 128 x 9 from ..."
std::string DataLine(const data::SequenceSet& set);
// "Using ParallelNet:" or "Using SerialNet:" with what it is solved by.
std::string NetworkBlock(const GruSettings& settings, int lp_ranks);

struct BatchTimes {
  double forward_seconds = 0;
  double loss_seconds = 0;
  double backward_seconds = 0;

  double seconds() const { return forward_seconds + loss_seconds + backward_seconds; }
};

// Of the batches of an epoch so far.
struct EpochTimes {
  std::int64_t batches = 0;
  BatchTimes sum;

  void Add(const BatchTimes& batch);
  BatchTimes Mean() const;
};

struct TrainProgress {
  std::int64_t epoch = 1;  // from 1
  std::int64_t samples_done = 0;
  std::int64_t samples = 0;
  double loss = 0;
  EpochTimes times;
  SolveReport forward;
  SolveReport backward;
  bool synthetic = false;
};
std::string TrainLine(const TrainProgress& progress, bool end_of_epoch);

struct TestResult {
  std::int64_t correct = 0;
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

double MeanOf(const std::vector<double>& values);  // 0 of none

// "  forward   iter 0  |r| = 5.29e+01  factor = 0.31", a line per iteration.
std::string ResidualLines(const char* direction, const SolveReport& report);

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_REPORT_H_
