// Writes tensors as one safetensors file, atomically.
//
//   const std::vector<TensorView> tensors = {{"wte.weight", {DType::kF32, {65, 128}}, wte.data()}, ...};
//   PLAIT_RETURN_IF_ERROR(WriteFile("model.safetensors", tensors, {{"format", "pt"}}));
//
// The file is byte for byte what Hugging Face's library writes for the same tensors: sorted by descending type
// (DType), then by name, so that every tensor is aligned to its elements and the file does not depend on the order of
// `tensors`. (That library does not sort metadata keys; here they are sorted.)
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

// InvalidArgument as HeaderText() and ByteCount(); else errors of WriteAtomically. On any error an existing file
// stays as it was. Transformers refuses files whose metadata lack "format" ("pt" for PyTorch). Local.
absl::Status WriteFile(const std::string& path, absl::Span<const TensorView> tensors,
                       const Metadata& metadata);

struct WriteSteps {
  // Free space that the disk must have before anything is written, if more than this file needs: for files that
  // follow.
  std::int64_t needed_bytes = 0;
  // Called when the new file is complete, just before it is flushed and renamed over the old one; an error aborts
  // the write.
  std::function<absl::Status()> before_replacing;
};

absl::Status WriteFile(const std::string& path, absl::Span<const TensorView> tensors,
                       const Metadata& metadata, const WriteSteps& steps);

}  // namespace plait::data::safetensors

#endif  // PLAIT_DATA_SAFETENSORS_WRITER_H_
