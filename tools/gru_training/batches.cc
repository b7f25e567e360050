#include "tools/gru_training/batches.h"

#include <ATen/ops/empty.h>

#include "absl/strings/str_cat.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "comm/gathered_text.h"
#include "data/har/prepare.h"
#include "data/prepared.h"

namespace plait::gru_training {
namespace {

absl::Status CheckLength(const GruSettings& settings, const data::SequenceSet& set) {
  if (set.train.steps == settings.sequence_length) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--sequence-length=", settings.sequence_length,
                                                 ": the sequences have ", set.train.steps, " steps"));
}

absl::StatusOr<data::SequenceSet> ReadSet(const GruSettings& settings, const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(data::SequenceSet set,
                         data::ReadPrepared(path, {.fraction = settings.percent_data}));
  if (set.train.steps <= settings.sequence_length) return set;
  return data::ReadPrepared(path, {.fraction = settings.percent_data, .steps = settings.sequence_length});
}

}  // namespace

absl::StatusOr<data::SequenceSet> OpenData(const GruSettings& settings,
                                           const comm::Communicator& communicator,
                                           const std::function<void(const std::string&)>& print) {
  absl::StatusOr<data::PreparedHar> prepared = data::PreparedHar();
  if (communicator.rank() == 0) prepared = data::PrepareHar({.data_dir = base::FromUser(settings.data_dir)});
  PLAIT_RETURN_IF_ERROR(communicator.Agree(prepared.status()));
  for (const std::string& note : prepared->notes) print(note);
  const std::string path = comm::GatherText(communicator, prepared->path)[0];
  absl::StatusOr<data::SequenceSet> set = ReadSet(settings, path);
  absl::Status status = set.status();
  if (status.ok()) status = CheckLength(settings, *set);
  PLAIT_RETURN_IF_ERROR(communicator.Agree(status));
  return set;
}

models::Batch MakeBatch(const data::SequenceSplit& split, absl::Span<const std::int64_t> indices,
                        at::ScalarType dtype) {
  const std::int64_t count = static_cast<std::int64_t>(indices.size());
  models::Batch batch = {.inputs = at::empty({count, split.steps, split.channels}, at::kFloat),
                         .targets = at::empty({count}, at::kLong)};
  data::Gather(split, indices, absl::MakeSpan(batch.inputs.mutable_data_ptr<float>(), batch.inputs.numel()),
               absl::MakeSpan(batch.targets.mutable_data_ptr<std::int64_t>(), count));
  batch.inputs = batch.inputs.to(dtype);
  return batch;
}

}  // namespace plait::gru_training
