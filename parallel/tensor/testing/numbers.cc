#include "parallel/tensor/testing/numbers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/normal.h>

#include <cstdint>

#include "comm/tensor_collectives.h"
#include "comm/testing/world.h"

namespace plait::tensor_parallel::testing {

at::Tensor Random(at::IntArrayRef shape, int seed) {
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(seed));
  return at::empty(shape, at::kDouble).normal_(0, 1, generator);
}

std::vector<at::Tensor> OfRanks(const at::Tensor& tensor) {
  const comm::Communicator& world = comm::testing::World();
  std::vector<at::Tensor> all;
  for (int root = 0; root < world.size(); ++root) {
    at::Tensor shape = at::empty({tensor.dim()}, at::kLong);
    for (std::int64_t d = 0; d < tensor.dim(); ++d) shape[d] = tensor.size(d);
    comm::Broadcast(world, shape, root);
    std::vector<std::int64_t> sizes(shape.data_ptr<std::int64_t>(),
                                    shape.data_ptr<std::int64_t>() + tensor.dim());
    at::Tensor values =
        root == world.rank() ? tensor.detach().contiguous().clone() : at::empty(sizes, tensor.options());
    comm::Broadcast(world, values, root);
    all.push_back(values);
  }
  return all;
}

at::Tensor AllReduced(const at::Tensor& tensor) {
  const std::vector<at::Tensor> all = OfRanks(tensor);
  at::Tensor sum = all[0].clone();
  for (std::size_t r = 1; r < all.size(); ++r) sum.add_(all[r]);
  return sum;
}

double SumOverRanks(double value) { return AllReduced(at::full({1}, value, at::kDouble)).item<double>(); }

}  // namespace plait::tensor_parallel::testing
