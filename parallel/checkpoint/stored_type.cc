#include "parallel/checkpoint/stored_type.h"

#include <array>
#include <bit>
#include <cstdint>

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

}  // namespace

data::Handle StoredType(data::DType dtype) {
  switch (dtype) {
    case data::DType::kFloat32:
      return data::Handle(H5Tcopy(H5T_IEEE_F32LE));
    case data::DType::kFloat64:
      return data::Handle(H5Tcopy(H5T_IEEE_F64LE));
    case data::DType::kBFloat16:
      return HalfPrecision(8);
    case data::DType::kFloat16:
      return HalfPrecision(5);
    case data::DType::kInt64:
      return data::Handle(H5Tcopy(H5T_STD_I64LE));
    case data::DType::kInt32:
      return data::Handle(H5Tcopy(H5T_STD_I32LE));
    case data::DType::kUint8:
      return data::Handle(H5Tcopy(H5T_STD_U8LE));
    case data::DType::kBool:
      return Bool();
  }
  PLAIT_CHECK(false) << "no such type: " << static_cast<int>(dtype);
  return data::Handle();
}

void SetFillOfLostElements(hid_t creation_list, data::DType dtype) {
  if (dtype == data::DType::kBool) return;
  std::array<std::uint8_t, 8> ones;
  ones.fill(0xff);
  H5Pset_fill_value(creation_list, StoredType(dtype).id(), ones.data());
}

}  // namespace plait::parallel
