#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>

namespace plait::fuzz {
namespace {

constexpr std::array<std::uint64_t, 10> kExtremes = {
    0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffff, 0xffffffffffffffff};

// Least significant byte first, or last.
void Overwrite(std::string& bytes, std::size_t place, std::size_t width, std::uint64_t value, bool reversed) {
  for (std::size_t i = 0; i < width && place + i < bytes.size(); ++i) {
    const std::size_t from = reversed ? width - 1 - i : i;
    bytes[place + i] = static_cast<char>(value >> (8 * from));
  }
}

void Change(std::string& bytes, std::mt19937_64& random) {
  if (bytes.empty()) bytes = "[{0";
  const std::size_t place = random() % bytes.size();
  const std::size_t length = std::min<std::size_t>(1 + random() % 32, bytes.size() - place);
  switch (random() % 8) {
    case 0:
    case 1:
      bytes[place] = static_cast<char>(bytes[place] ^ (1 << random() % 8));
      break;
    case 2:
      bytes[place] = static_cast<char>(random());
      break;
    case 3:
    case 4: {
      // One after the other: the order of a call's arguments is the compiler's.
      const bool narrow = random() % 2 == 0;
      const auto extreme = kExtremes[random() % kExtremes.size()];
      Overwrite(bytes, place, narrow ? 4 : 8, extreme, random() % 2 == 0);
      break;
    }
    case 5:
      bytes.resize(place);
      break;
    case 6:
      bytes.insert(random() % bytes.size(), bytes.substr(place, length));
      break;
    default:
      bytes.erase(place, length);
  }
}

}  // namespace

std::string Mutation(const std::string& bytes, std::uint64_t number) {
  std::mt19937_64 random(number);
  std::string changed = bytes;
  for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) Change(changed, random);
  return changed;
}

}  // namespace plait::fuzz
