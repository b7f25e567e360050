#include "parallel/context/context_axis.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include "base/check.h"

namespace plait::context_parallel {

std::int64_t ContextAxis::PaddedLength(std::int64_t length) const {
  return (length + chunks() - 1) / chunks() * chunks();
}

at::Tensor ContextAxis::Positions(std::int64_t padded_length) const {
  PLAIT_CHECK(padded_length % chunks() == 0) << padded_length << " tokens are no multiple of the " << chunks()
                                             << " chunks of " << size() << " ranks";
  const std::int64_t chunk = padded_length / chunks();
  const auto of_chunk = [chunk](std::int64_t i) { return at::arange(i * chunk, (i + 1) * chunk, at::kLong); };
  if (kind_ == ContextKind::kUlysses) return of_chunk(rank());
  return at::cat({of_chunk(rank()), of_chunk(2 * size() - 1 - rank())});
}

}  // namespace plait::context_parallel
