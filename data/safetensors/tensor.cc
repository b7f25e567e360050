#include "data/safetensors/tensor.h"

#include <array>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace plait::data::safetensors {
namespace {

struct TypeRow {
  DType dtype;
  absl::string_view name;
  std::int64_t bytes;
};

constexpr std::array<TypeRow, 15> kTypes = {{{DType::kBool, "BOOL", 1},
                                             {DType::kU8, "U8", 1},
                                             {DType::kI8, "I8", 1},
                                             {DType::kF8E5M2, "F8_E5M2", 1},
                                             {DType::kF8E4M3, "F8_E4M3", 1},
                                             {DType::kI16, "I16", 2},
                                             {DType::kU16, "U16", 2},
                                             {DType::kF16, "F16", 2},
                                             {DType::kBF16, "BF16", 2},
                                             {DType::kI32, "I32", 4},
                                             {DType::kU32, "U32", 4},
                                             {DType::kF32, "F32", 4},
                                             {DType::kF64, "F64", 8},
                                             {DType::kI64, "I64", 8},
                                             {DType::kU64, "U64", 8}}};

const TypeRow& RowOf(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  PLAIT_CHECK(index < kTypes.size() && kTypes[index].dtype == dtype) << "element type " << index;
  return kTypes[index];
}

}  // namespace

absl::string_view NameOf(DType dtype) { return RowOf(dtype).name; }

std::int64_t ElementBytes(DType dtype) { return RowOf(dtype).bytes; }

std::optional<DType> DTypeNamed(absl::string_view name) {
  for (const TypeRow& row : kTypes) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::string DTypeNames() {
  return absl::StrJoin(kTypes, ", ",
                       [](std::string* out, const TypeRow& row) { absl::StrAppend(out, row.name); });
}

absl::StatusOr<std::int64_t> ByteCount(const TensorInfo& info) {
  std::int64_t bytes = ElementBytes(info.dtype);
  for (const std::int64_t length : info.shape) {
    if (length < 0) return absl::InvalidArgumentError(absl::StrCat(TextOf(info), " has a negative length"));
    if (__builtin_mul_overflow(bytes, length, &bytes)) {
      return absl::InvalidArgumentError(absl::StrCat(TextOf(info), " has more than 2^63 - 1 bytes"));
    }
  }
  return bytes;
}

std::string TextOf(const TensorInfo& info) {
  constexpr std::size_t kShown = 16;
  const bool cut = info.shape.size() > kShown;
  const auto end = cut ? info.shape.begin() + kShown : info.shape.end();
  return absl::StrCat(NameOf(info.dtype), " [", absl::StrJoin(info.shape.begin(), end, ", "),
                      cut ? ", ..." : "", "]");
}

std::string Quoted(absl::string_view text) {
  std::size_t shown = 120;
  if (text.size() <= shown) return absl::StrCat("\"", absl::Utf8SafeCEscape(text), "\"");
  while (shown > 0 && (text[shown] & 0xc0) == 0x80) --shown;  // not within a character
  return absl::StrCat("\"", absl::Utf8SafeCEscape(text.substr(0, shown)), "...\"");
}

}  // namespace plait::data::safetensors
