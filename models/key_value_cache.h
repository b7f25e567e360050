// Attention keys and values of earlier positions, so that generating a token computes one position only.
//
//   const at::NoGradGuard no_grad;
//   KeyValueCache cache;
//   at::Tensor logits = RunOutput(gpt, {.inputs = prompt}, {}, {.cache = &cache});   // (batch, length,
//   vocab) logits = RunOutput(gpt, {.inputs = next}, {}, {.cache = &cache});                // (batch, 1,
//   vocab) cache.length();                                                                  // length + 1
//
// Sequences of different lengths go on together through a cache of each:
//
//   KeyValueCache rows = KeyValueCache::OfRows({&first, &second});
//   logits = RunOutput(gpt, {.inputs = next}, {}, {.cache = &rows});               // next: (2, 1), row r behind cache r
//
// Memory is allocated at the first use: two tensors (batch, heads, positions, head width) per layer. Local.
#ifndef PLAIT_MODELS_KEY_VALUE_CACHE_H_
#define PLAIT_MODELS_KEY_VALUE_CACHE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace plait::models {

class KeyValueCache {
 public:
  KeyValueCache() = default;
  KeyValueCache(KeyValueCache&&) = default;
  KeyValueCache& operator=(KeyValueCache&&) = default;

  // Caches of batches of one, each with at least one position and not owned, as one of their batch. Rows may be of
  // different lengths, so that blocks call attention for each with its own cache; Append and length are of those.
  static KeyValueCache OfRows(std::vector<KeyValueCache*> rows);
  // Empty for a cache that is not of rows.
  const std::vector<KeyValueCache*>& rows() const { return rows_; }
  // (rows, 1) of int64: the position of the token that follows, by row.
  at::Tensor NextPositions() const;

  // Positions that all layers hold.
  std::int64_t length() const { return layers_.empty() ? 0 : layers_.back().length; }
  // Positions that `layer` holds, 0 where there is none yet.
  std::int64_t length(std::int64_t layer) const {
    const auto index = static_cast<std::size_t>(layer);
    return index < layers_.size() ? layers_[index].length : 0;
  }
  // Removes all positions and keeps the memory.
  void Clear();

  // Appends `keys` and `values` (batch, heads, new, head width) to those of `layer` and returns all of them:
  // views (batch, heads, length + new, head width) that the next Append() does not change. `capacity` is the
  // largest length there will be. Programming errors: a layer that skips one, another batch size, a longer
  // sequence, keys or values that autograd records.
  std::pair<at::Tensor, at::Tensor> Append(std::int64_t layer, const at::Tensor& keys,
                                           const at::Tensor& values, std::int64_t capacity);

 private:
  struct Layer {
    at::Tensor keys, values;  // (batch, heads, capacity, head width)
    std::int64_t length = 0;
  };

  std::vector<Layer> layers_;
  std::vector<KeyValueCache*> rows_;
};

// The results of `attend(row, its cache)`, each (1, ...), one below the other.
at::Tensor ByRow(const KeyValueCache& cache,
                 const std::function<at::Tensor(std::int64_t row, KeyValueCache* cache)>& attend);

}  // namespace plait::models

#endif  // PLAIT_MODELS_KEY_VALUE_CACHE_H_
