// Tensors of safetensors files: element type, shape and row-major, little-endian bytes.
//
//   const TensorView view = {"h.0.attn.bias", {DType::kF32, {3, 4}}, values.data()};
//   PLAIT_ASSIGN_OR_RETURN(const std::int64_t bytes, ByteCount(view.info));  // 48
//
// Supported are the format's common types of whole bytes; names of others are unknown. F16 (IEEE 754 binary16), BF16
// (the upper half of a float32), F8_E4M3 (no infinities) and F8_E5M2 are passed through as bits.
#ifndef PLAIT_DATA_SAFETENSORS_TENSOR_H_
#define PLAIT_DATA_SAFETENSORS_TENSOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plait::data::safetensors {

// In the order of Hugging Face's library, which sorts a file's tensors by descending type, so that each is aligned
// to its elements.
enum class DType {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kF64,
  kI64,
  kU64,
};

// As in a file's header: "BOOL", "F8_E4M3", "BF16", ...
absl::string_view NameOf(DType dtype);
std::int64_t ElementBytes(DType dtype);
std::optional<DType> DTypeNamed(absl::string_view name);
// "BOOL, U8, I8, ...", for error messages.
std::string DTypeNames();

struct TensorInfo {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;  // empty: a scalar; a zero among them: no elements

  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

// Number of elements times ElementBytes. InvalidArgument for a negative length, or more than 2^63 - 1 bytes (also for
// the product before a zero in the shape).
absl::StatusOr<std::int64_t> ByteCount(const TensorInfo& info);

// "F32 [3, 4]".
std::string TextOf(const TensorInfo& info);

// A tensor whose data are owned by the caller: row-major, contiguous.
struct TensorView {
  std::string name;  // UTF-8, not "__metadata__"
  TensorInfo info;
  const void* data = nullptr;  // may be null where there are no elements
};

// Quotes and escapes a name for error messages: one line, truncated after about 120 bytes.
std::string Quoted(absl::string_view text);

}  // namespace plait::data::safetensors

#endif  // PLAIT_DATA_SAFETENSORS_TENSOR_H_
