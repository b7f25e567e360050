#include "parallel/checkpoint/testing/testing_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/seed.h"

namespace plait::parallel::testing {
namespace {

// IEEE's 16-bit number for k / 8, |k| <= 127: always normal or zero.
std::uint16_t HalfOf(double value) {
  if (value == 0) return 0;
  int exponent = 0;
  const double mantissa = std::frexp(std::abs(value), &exponent);  // in [0.5, 1)
  const int bits = static_cast<int>((2 * mantissa - 1) * 1024);
  return static_cast<std::uint16_t>((value < 0 ? 0x8000 : 0) | ((exponent + 14) << 10) | bits);
}

// The upper half of the float.
std::uint16_t BrainOf(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<std::uint16_t>(bits >> 16);
}

template <typename T>
void Put(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof(value));
}

void PutElement(at::ScalarType dtype, std::uint64_t bits, std::byte* to) {
  const double number = (static_cast<double>(bits % 255) - 127) / 8;
  switch (dtype) {
    case at::kFloat:
      return Put(static_cast<float>(number), to);
    case at::kDouble:
      return Put(number, to);
    case at::kBFloat16:
      return Put(BrainOf(static_cast<float>(number)), to);
    case at::kHalf:
      return Put(HalfOf(number), to);
    case at::kLong:
      return Put(static_cast<std::int64_t>(bits), to);
    case at::kInt:
      return Put(static_cast<std::int32_t>(bits), to);
    case at::kByte:
      return Put(static_cast<std::uint8_t>(bits), to);
    case at::kBool:
      return Put(static_cast<std::uint8_t>(bits & 1), to);
    default:
      PLAIT_CHECK(false) << c10::toString(dtype);
  }
}

}  // namespace

std::vector<TensorSpec> ManyTensors() {
  return {
      {"model", "embedding.weight", at::kFloat, {37, 11}},
      {"model", "conv.weight", at::kFloat, {5, 3, 2, 4}},
      {"model", "conv.bias", at::kFloat, {5}},
      {"model", "half", at::kHalf, {7, 9}},
      {"model", "brain", at::kBFloat16, {6, 5, 4}},
      {"model", "one", at::kBFloat16, {1, 1, 1}},
      {"model", "nothing", at::kFloat, {0, 3}},
      {"model", "mask", at::kBool, {4, 4}},
      {"optimizer/exp_avg", "embedding.weight", at::kDouble, {37, 11}},
      {"optimizer/exp_avg", "large", at::kFloat, {700, 1000}},
      {"optimizer", "step", at::kLong, {}},
      {"optimizer", "rate", at::kDouble, {}},
      {"counts", "tokens", at::kLong, {3, 50}},
      {"counts", "bytes", at::kByte, {1300000}},
      {"counts", "small", at::kInt, {17}},
  };
}

std::vector<std::byte> ElementsOf(const TensorSpec& tensor, std::int64_t begin, std::int64_t end,
                                  int version) {
  const std::int64_t size = ElementBytes(tensor.dtype);
  const std::uint64_t seed = base::DeriveSeed(version, PathOf(tensor));
  std::vector<std::byte> bytes((end - begin) * size);
  for (std::int64_t i = begin; i < end; ++i) {
    // Knuth's multiplier: neighbours differ, and a program in another language can say it in one line.
    const std::uint64_t mixed = (seed + static_cast<std::uint64_t>(i)) * 6364136223846793005u;
    PutElement(tensor.dtype, mixed >> 20, bytes.data() + (i - begin) * size);
  }
  return bytes;
}

void OwnedPieces::Add(const TensorSpec& tensor, std::int64_t begin, std::int64_t end, int version) {
  values.push_back(ElementsOf(tensor, begin, end, version));
  pieces.push_back({tensor, begin, end, values.back().data()});
}

std::vector<Range> RandomCuts(std::int64_t elements, int cuts, std::uint64_t seed) {
  base::RandomStream draw(seed);
  std::vector<std::int64_t> ends = {elements};
  for (int i = 0; i < cuts; ++i) ends.push_back(static_cast<std::int64_t>(draw.Below(elements + 1)));
  std::sort(ends.begin(), ends.end());
  std::vector<Range> ranges;
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

OwnedPieces RandomPieces(const std::vector<TensorSpec>& tensors, int ranks, int rank, std::uint64_t seed,
                         int version) {
  OwnedPieces own;
  for (const TensorSpec& tensor : tensors) {
    const std::uint64_t stream = base::DeriveSeed(seed, PathOf(tensor));
    base::RandomStream deal(stream);
    own.Add(tensor, 0, 0, version);
    for (const Range& range : RandomCuts(ElementsOf(tensor), 2 * ranks - 1, stream)) {
      if (static_cast<int>(deal.Below(ranks)) == rank) own.Add(tensor, range.begin, range.end, version);
    }
  }
  return own;
}

std::string FirstDifference(Checkpoint& checkpoint, const std::vector<TensorSpec>& tensors,
                            std::uint64_t seed, int version) {
  for (const TensorSpec& tensor : tensors) {
    const std::string path = PathOf(tensor);
    for (const Range& range : RandomCuts(ElementsOf(tensor), 5, base::DeriveSeed(seed, path))) {
      const std::vector<std::byte> expected = ElementsOf(tensor, range.begin, range.end, version);
      std::vector<std::byte> read(expected.size());
      const absl::Status status = checkpoint.Read(path, range.begin, range.end, absl::MakeSpan(read));
      const std::string where = absl::StrCat(path, " [", range.begin, ", ", range.end, ")");
      if (!status.ok()) return absl::StrCat(where, ": ", status.message());
      if (read != expected) return absl::StrCat(where, ": other elements");
    }
  }
  return "";
}

}  // namespace plait::parallel::testing
