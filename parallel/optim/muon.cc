#include "parallel/optim/muon.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace plait::parallel {
namespace {

constexpr int kIterations = 5;
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
constexpr double kEpsilon = 1e-7;

}  // namespace

at::Tensor NewtonSchulz(const at::Tensor& matrix) {
  if (matrix.dim() > 2) {
    std::vector<at::Tensor> each;
    for (const at::Tensor& one : matrix.unbind()) each.push_back(NewtonSchulz(one));
    return at::stack(each);
  }
  // So that the Gram matrix has the size of the shorter side.
  const bool tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = tall ? matrix.t() : matrix;
  x = x / (x.norm() + kEpsilon);
  for (int k = 0; k < kIterations; ++k) {
    const at::Tensor gram = at::mm(x, x.t());
    const at::Tensor factor = at::addmm(gram, gram, gram, kB, kC);
    x = at::addmm(x, factor, x, kA);
  }
  return tall ? x.t() : x;
}

double MuonScale(std::int64_t rows, std::int64_t columns) {
  return 0.2 * std::sqrt(static_cast<double>(std::max(rows, columns)));
}

}  // namespace plait::parallel
