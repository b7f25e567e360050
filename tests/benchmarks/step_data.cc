#include "tests/benchmarks/step_data.h"

#include <ATen/ops/empty.h>

#include "absl/strings/str_cat.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "data/text/prepared_text.h"
#include "data/text/text_files.h"

namespace plait::benchmarks {
namespace {

std::uint64_t Mixed(std::int64_t number) { return base::RandomStream(static_cast<std::uint64_t>(number))(); }

}  // namespace

absl::StatusOr<StepData> StepData::Make(const StepDataOptions& options) {
  StepData data(options);
  if (options.text.empty()) return data;
  PLAIT_ASSIGN_OR_RETURN(const data::TextInput input, data::ReadText(options.text));
  PLAIT_ASSIGN_OR_RETURN(data::PreparedText text, data::TokenizeCharacters(input));
  if (text.vocabulary_size > options.vocab_size) {
    return absl::InvalidArgumentError(absl::StrCat(options.text, ": has ", text.vocabulary_size,
                                                   " different characters; expected at most ",
                                                   options.vocab_size));
  }
  data.tokens_ = std::move(text.train);
  return data;
}

std::int64_t StepData::Token(std::int64_t block, std::int64_t place) const {
  if (tokens_.empty()) {
    const std::uint64_t random = Mixed(block * (options_.block_size + 1) + place);
    return static_cast<std::int64_t>(random % static_cast<std::uint64_t>(options_.vocab_size));
  }
  const auto places =
      static_cast<std::uint64_t>(tokens_.size()) - static_cast<std::uint64_t>(options_.block_size);
  return tokens_[Mixed(block) % places + static_cast<std::uint64_t>(place)];
}

StepBatch StepData::Batch(std::int64_t step, int rank, int ranks) const {
  const std::int64_t blocks = options_.batch_size / ranks;
  StepBatch batch = {.inputs = at::empty({blocks, options_.block_size}, at::kLong),
                     .targets = at::empty({blocks, options_.block_size}, at::kLong)};
  auto* inputs = batch.inputs.mutable_data_ptr<std::int64_t>();
  auto* targets = batch.targets.mutable_data_ptr<std::int64_t>();
  for (std::int64_t k = 0; k < blocks; ++k) {
    const std::int64_t block = step * options_.batch_size + rank * blocks + k;
    for (std::int64_t place = 0; place < options_.block_size; ++place) {
      *inputs++ = Token(block, place);
      *targets++ = Token(block, place + 1);
    }
  }
  return batch;
}

}  // namespace plait::benchmarks
