#include "parallel/checkpoint/stored_type.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <iterator>

#include "base/check.h"

namespace plait::parallel {
namespace {

// Values go from memory to files as they are.
static_assert(std::endian::native == std::endian::little);

// A 16-bit number: sign, `exponent` bits, the rest mantissa.
data::Handle HalfPrecision(std::size_t exponent_bits) {
  const std::size_t mantissa_bits = 15 - exponent_bits;
  data::Handle type(H5Tcopy(H5T_IEEE_F32LE));
  // Fields must fit at any time: they move before the size shrinks.
  H5Tset_fields(type.id(), 15, mantissa_bits, exponent_bits, 0, mantissa_bits);
  H5Tset_precision(type.id(), 16);
  H5Tset_size(type.id(), 2);
  H5Tset_ebias(type.id(), (std::size_t{1} << (exponent_bits - 1)) - 1);
  return type;
}

data::Handle Bool() {
  data::Handle type(H5Tenum_create(H5T_STD_I8LE));
  const std::int8_t values[] = {0, 1};
  H5Tenum_insert(type.id(), "FALSE", &values[0]);
  H5Tenum_insert(type.id(), "TRUE", &values[1]);
  return type;
}

struct StoredTypeRow {
  at::ScalarType type;
  absl::string_view name;
  data::Handle (*stored)();
};

constexpr StoredTypeRow kTypes[] = {
    {at::kFloat, "float32", [] { return data::Handle(H5Tcopy(H5T_IEEE_F32LE)); }},
    {at::kDouble, "float64", [] { return data::Handle(H5Tcopy(H5T_IEEE_F64LE)); }},
    {at::kBFloat16, "bfloat16", [] { return HalfPrecision(8); }},
    {at::kHalf, "float16", [] { return HalfPrecision(5); }},
    {at::kLong, "int64", [] { return data::Handle(H5Tcopy(H5T_STD_I64LE)); }},
    {at::kInt, "int32", [] { return data::Handle(H5Tcopy(H5T_STD_I32LE)); }},
    {at::kByte, "uint8", [] { return data::Handle(H5Tcopy(H5T_STD_U8LE)); }},
    {at::kBool, "bool", Bool}};

const StoredTypeRow& RowOf(at::ScalarType type) {
  const auto* row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [type](const StoredTypeRow& candidate) { return candidate.type == type; });
  PLAIT_CHECK(row != std::end(kTypes)) << "checkpoints do not hold tensors of " << c10::toString(type);
  return *row;
}

}  // namespace

absl::string_view TypeName(at::ScalarType type) { return RowOf(type).name; }

std::optional<at::ScalarType> TypeNamed(absl::string_view name) {
  for (const StoredTypeRow& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

data::Handle StoredType(at::ScalarType type) { return RowOf(type).stored(); }

void SetFillOfLostElements(hid_t creation_list, at::ScalarType type) {
  if (type == at::kBool) return;
  std::array<std::uint8_t, 8> ones;
  ones.fill(0xff);
  H5Pset_fill_value(creation_list, StoredType(type).id(), ones.data());
}

}  // namespace plait::parallel
