#include "tools/gru_training/batches.h"

#include <ATen/ops/empty.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/har/prepare.h"
#include "data/prepared.h"
#include "tools/gru_training/agreement.h"

namespace plait::gru_training {
namespace {

absl::Status CheckLength(const Config& config, const data::SequenceSet& set) {
  if (set.train.steps == config.sequence_length) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--sequence-length=", config.sequence_length,
                                                 ": the sequences have ", set.train.steps, " steps"));
}

absl::StatusOr<data::SequenceSet> ReadSet(const Config& config, const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(data::SequenceSet set, data::ReadPrepared(path, {.fraction = config.percent_data}));
  if (set.train.steps <= config.sequence_length) return set;
  return data::ReadPrepared(path, {.fraction = config.percent_data, .steps = config.sequence_length});
}

}  // namespace

absl::StatusOr<data::SequenceSet> OpenData(const Config& config, const comm::Communicator& communicator,
                                           const std::function<void(const std::string&)>& print) {
  absl::StatusOr<data::PreparedHar> prepared = data::PreparedHar();
  if (communicator.rank() == 0) prepared = data::PrepareHar({.data_dir = config.data_dir});
  PLAIT_RETURN_IF_ERROR(communicator.Agree(prepared.status()));
  for (const std::string& note : prepared->notes) print(note);
  const std::string path = BroadcastText(communicator, prepared->path);
  absl::StatusOr<data::SequenceSet> set = ReadSet(config, path);
  absl::Status status = set.status();
  if (status.ok()) status = CheckLength(config, *set);
  PLAIT_RETURN_IF_ERROR(communicator.Agree(status));
  return set;
}

Batch MakeBatch(const data::SequenceSplit& split, absl::Span<const std::int64_t> indices,
                at::ScalarType dtype) {
  const std::int64_t count = static_cast<std::int64_t>(indices.size());
  Batch batch{at::empty({count, split.steps, split.channels}, at::kFloat), at::empty({count}, at::kLong)};
  data::Gather(split, indices, absl::MakeSpan(batch.x.mutable_data_ptr<float>(), batch.x.numel()),
               absl::MakeSpan(batch.y.mutable_data_ptr<std::int64_t>(), count));
  batch.x = batch.x.to(dtype);
  return batch;
}

}  // namespace plait::gru_training
