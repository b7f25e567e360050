#include "data/history/tensorboard_record.h"

#include <array>

namespace plait::data {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected

constexpr std::array<std::uint32_t, 256> MakeTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[i] = crc;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = MakeTable();

// So that a checksum of data that hold checksums stays one (tensorflow/core/lib/hash/crc32c.h).
std::uint32_t Masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8; }

template <typename T>
std::string LittleEndian(T value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

}  // namespace

std::uint32_t Crc32c(absl::string_view bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

std::string TfRecord(absl::string_view bytes) {
  std::string record = LittleEndian<std::uint64_t>(bytes.size());
  record += LittleEndian(Masked(Crc32c(record)));
  record.append(bytes.data(), bytes.size());
  record += LittleEndian(Masked(Crc32c(bytes)));
  return record;
}

}  // namespace plait::data
