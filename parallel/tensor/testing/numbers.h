// Random tensors that are the same on every rank, and tensors gathered from all ranks.
#ifndef PLAIT_PARALLEL_TENSOR_TESTING_NUMBERS_H_
#define PLAIT_PARALLEL_TENSOR_TESTING_NUMBERS_H_

#include <ATen/core/Tensor.h>

#include <vector>

namespace plait::tensor_parallel::testing {

// Normal numbers in float64, the same for the same seed on every rank.
at::Tensor Random(at::IntArrayRef shape, int seed);

// Collective over the world, by broadcasts only: the tensors of all ranks, whose shapes may differ.
std::vector<at::Tensor> OfRanks(const at::Tensor& tensor);
at::Tensor AllReduced(const at::Tensor& tensor);  // summed in the order of ranks
double SumOverRanks(double value);

}  // namespace plait::tensor_parallel::testing

#endif  // PLAIT_PARALLEL_TENSOR_TESTING_NUMBERS_H_
