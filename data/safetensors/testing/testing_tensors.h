// Tensors of every type for tests.
#ifndef PLAIT_DATA_SAFETENSORS_TESTING_TESTING_TENSORS_H_
#define PLAIT_DATA_SAFETENSORS_TESTING_TESTING_TENSORS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/seed.h"
#include "data/safetensors/tensor.h"

namespace plait::data::safetensors {

// Tensors and their bytes; views stay valid when it is moved.
class OwnedTensors {
 public:
  // Random bytes, whatever they mean as numbers. (BOOL gets 0 and 1.)
  void Add(const std::string& name, const TensorInfo& info) {
    std::vector<unsigned char> bytes(*ByteCount(info));
    for (unsigned char& byte : bytes) {
      byte = static_cast<unsigned char>(random_.Below(info.dtype == DType::kBool ? 2 : 256));
    }
    bytes_.push_back(std::move(bytes));
    views_.push_back({name, info, bytes_.back().data()});
  }

  const std::vector<TensorView>& views() const { return views_; }
  std::string Bytes(std::size_t i) const { return {bytes_[i].begin(), bytes_[i].end()}; }

 private:
  base::RandomStream random_{base::DeriveSeed(7, "tensors of tests")};
  std::vector<std::vector<unsigned char>> bytes_;
  std::vector<TensorView> views_;
};

inline OwnedTensors OneOfEach() {
  OwnedTensors tensors;
  for (const DType dtype : {DType::kBool, DType::kU8, DType::kI8, DType::kF8E5M2, DType::kF8E4M3, DType::kI16,
                            DType::kU16, DType::kF16, DType::kBF16, DType::kI32, DType::kU32, DType::kF32,
                            DType::kF64, DType::kI64, DType::kU64}) {
    tensors.Add("layer." + std::string(NameOf(dtype)), {dtype, {3, 5}});
  }
  tensors.Add("scalar", {DType::kF32, {}});
  tensors.Add("nothing", {DType::kF64, {4, 0, 2}});
  tensors.Add("\u00e9 \"quoted\"\n", {DType::kU8, {1}});
  return tensors;
}

}  // namespace plait::data::safetensors

#endif  // PLAIT_DATA_SAFETENSORS_TESTING_TESTING_TENSORS_H_
