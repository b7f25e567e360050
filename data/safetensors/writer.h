// Writes tensors as one safetensors file, whole or not at all.
//
//   const std::vector<TensorView> tensors = {{"wte.weight", {DType::kF32, {65, 128}}, wte.data()}, ...};
//   PLAIT_RETURN_IF_ERROR(WriteFile("model.safetensors", tensors, {{"format", "pt"}}));
//
// The bytes are those that the format's own library writes for the same tensors: larger types first, names
// ascending within a type, so every tensor lies aligned to its elements and the same tensors give the same
// file, in whichever order they come. (That library does not sort several metadata keys; here they are.)
#ifndef PLAIT_DATA_SAFETENSORS_WRITER_H_
#define PLAIT_DATA_SAFETENSORS_WRITER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "data/safetensors/header.h"
#include "data/safetensors/tensor.h"

namespace plait::data::safetensors {

// InvalidArgument as HeaderText() and ByteCount(); else as WriteAtomically: an existing file stays as it was
// on every error. Transformers refuses files whose metadata lack "format" ("pt" for PyTorch's layout). Local.
absl::Status WriteFile(const std::string& path, absl::Span<const TensorView> tensors,
                       const Metadata& metadata);

struct WriteSteps {
  // The disk must have room for so many bytes, or nothing is written: more than this file where others
  // follow.
  std::int64_t needed_bytes = 0;
  // Called when the new file is complete, just before it takes the place of the old; its error ends the
  // write.
  std::function<absl::Status()> before_replacing;
};

absl::Status WriteFile(const std::string& path, absl::Span<const TensorView> tensors,
                       const Metadata& metadata, const WriteSteps& steps);

}  // namespace plait::data::safetensors

#endif  // PLAIT_DATA_SAFETENSORS_WRITER_H_
