// The blocks of tokens that gpt_step and llama_step train on, and their peers in PyTorch (step_data.py draws
// the same).
//
//   PLAIT_ASSIGN_OR_RETURN(const StepData data, StepData::Make({.vocab_size = 65, .block_size = 64, ...}));
//   const StepBatch batch = data.Batch(step, rank, ranks);        // (batch_size / ranks, block_size)
//
// Token k of block n is RandomStream(n * (block_size + 1) + k)'s first number modulo the vocabulary, or, of a
// text, block n begins at RandomStream(n)'s first number modulo the number of places in its first nine tenths
// (base/seed.h). Step s has blocks s * batch_size to (s + 1) * batch_size - 1. Local.
#ifndef PLAIT_TESTS_BENCHMARKS_STEP_DATA_H_
#define PLAIT_TESTS_BENCHMARKS_STEP_DATA_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace plait::benchmarks {

struct StepDataOptions {
  std::int64_t vocab_size = 65;
  std::int64_t block_size = 64;
  std::int64_t batch_size = 12;  // of all ranks, a multiple of their number
  std::string text = "";         // a file; empty: random tokens
};

struct StepBatch {
  at::Tensor inputs;   // (blocks of this rank, block_size) int64
  at::Tensor targets;  // likewise, shifted by one token
};

class StepData {
 public:
  // Errors of reading the text; INVALID_ARGUMENT if it has more distinct characters than the vocabulary.
  static absl::StatusOr<StepData> Make(const StepDataOptions& options);

  StepBatch Batch(std::int64_t step, int rank, int ranks) const;

 private:
  explicit StepData(const StepDataOptions& options) : options_(options) {}
  std::int64_t Token(std::int64_t block, std::int64_t place) const;

  StepDataOptions options_;
  std::vector<std::uint16_t> tokens_;  // of the text
};

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_STEP_DATA_H_
