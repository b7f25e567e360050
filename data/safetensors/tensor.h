// What a tensor is in safetensors files: an element type, a shape and row-major, little-endian bytes.
//
//   const TensorView view = {"h.0.attn.bias", {DType::kF32, {3, 4}}, values.data()};
//   PLAIT_ASSIGN_OR_RETURN(const std::int64_t bytes, ByteCount(view.info));  // 48
//
// Types are those of the format that are whole bytes and that Plait's programs meet. The bits of F16 (IEEE
// 754 binary16), BF16 (the upper half of a float), F8_E4M3 (no infinities) and F8_E5M2 are passed through.
#ifndef PLAIT_DATA_SAFETENSORS_TENSOR_H_
#define PLAIT_DATA_SAFETENSORS_TENSOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plait::data::safetensors {

// In the order of the format's own library, which sorts a file's tensors by it, last first: each tensor is
// then aligned to its elements.
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

// Elements times bytes of an element. InvalidArgument for a negative length and for more than 2^63 - 1 bytes
// (also where a later length of the shape is zero).
absl::StatusOr<std::int64_t> ByteCount(const TensorInfo& info);

// "F32 [3, 4]".
std::string TextOf(const TensorInfo& info);

// A tensor that somebody else owns: row-major, contiguous.
struct TensorView {
  std::string name;  // UTF-8, not "__metadata__"
  TensorInfo info;
  const void* data = nullptr;  // may be null where there are no elements
};

// In quotes, cut where it is very long, on one line whatever is in it: names in error messages.
std::string Quoted(absl::string_view text);

}  // namespace plait::data::safetensors

#endif  // PLAIT_DATA_SAFETENSORS_TENSOR_H_
