#include "base/seed.h"

#include <cmath>
#include <numbers>

#include "base/check.h"

namespace plait::base {
namespace {

__extension__ typedef unsigned __int128 Wide;

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

std::uint64_t Mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::uint64_t Fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

std::uint64_t DeriveSeed(std::uint64_t seed, std::string_view name, std::uint64_t index) {
  // A round between the parts: (seed, name, index + 1) is no shift of (seed + 1, name, index).
  const std::uint64_t named = Mix(Mix(seed + kGolden) ^ Fnv1a(name));
  return Mix(named + kGolden * (index + 1));
}

RandomStream::result_type RandomStream::operator()() {
  state_ += kGolden;
  return Mix(state_);
}

std::uint64_t RandomStream::Below(std::uint64_t bound) {
  PLAIT_CHECK(bound > 0);
  Wide product = static_cast<Wide>((*this)()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = -bound % bound;
    while (static_cast<std::uint64_t>(product) < threshold) product = static_cast<Wide>((*this)()) * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double RandomStream::Uniform() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

double RandomStream::Normal() {
  const double radius = std::sqrt(-2 * std::log1p(-Uniform()));
  return radius * std::cos(2 * std::numbers::pi * Uniform());
}

}  // namespace plait::base
