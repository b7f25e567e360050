#include "models/key_value_cache.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include "base/check.h"

namespace plait::models {
namespace {

at::Tensor Allocate(const at::Tensor& like, std::int64_t capacity) {
  return at::empty({like.size(0), like.size(1), capacity, like.size(3)}, like.options());
}

}  // namespace

KeyValueCache KeyValueCache::OfRows(std::vector<KeyValueCache*> rows) {
  for (const KeyValueCache* row : rows)
    PLAIT_CHECK(row->length() > 0 && row->rows_.empty()) << "an empty row";
  KeyValueCache cache;
  cache.rows_ = std::move(rows);
  return cache;
}

at::Tensor KeyValueCache::NextPositions() const {
  std::vector<std::int64_t> positions;
  for (const KeyValueCache* row : rows_) positions.push_back(row->length());
  return at::tensor(positions, at::kLong).unsqueeze(1);
}

void KeyValueCache::Clear() {
  for (Layer& layer : layers_) layer.length = 0;
}

std::pair<at::Tensor, at::Tensor> KeyValueCache::Append(std::int64_t layer, const at::Tensor& keys,
                                                        const at::Tensor& values, std::int64_t capacity) {
  PLAIT_CHECK(rows_.empty()) << "a cache of rows: each row has its own";
  PLAIT_CHECK(!keys.requires_grad() && !values.requires_grad())
      << "keys and values are recorded by autograd; hold an at::NoGradGuard while a cache is used";
  const auto layers = static_cast<std::int64_t>(layers_.size());
  if (layer == layers && (layer == 0 || layers_.front().length == keys.size(2))) {
    layers_.push_back({Allocate(keys, capacity), Allocate(values, capacity), 0});
  } else {
    PLAIT_CHECK(layer < layers) << "layer " << layer << " of " << layers;
  }
  Layer& all = layers_[static_cast<std::size_t>(layer)];
  const std::int64_t length = all.length + keys.size(2);
  PLAIT_CHECK(length <= all.keys.size(2)) << length << " positions in a cache of " << all.keys.size(2);
  PLAIT_CHECK(keys.size(0) == all.keys.size(0))
      << "a batch of " << keys.size(0) << " in a cache of a batch of " << all.keys.size(0);
  all.keys.narrow(2, all.length, keys.size(2)).copy_(keys);
  all.values.narrow(2, all.length, keys.size(2)).copy_(values);
  all.length = length;
  return {all.keys.narrow(2, 0, length), all.values.narrow(2, 0, length)};
}

at::Tensor ByRow(const KeyValueCache& cache,
                 const std::function<at::Tensor(std::int64_t row, KeyValueCache* cache)>& attend) {
  std::vector<at::Tensor> rows;
  for (KeyValueCache* row : cache.rows()) rows.push_back(attend(static_cast<std::int64_t>(rows.size()), row));
  return at::cat(rows);
}

}  // namespace plait::models
