// Attention keys and values of earlier positions, so that generating a token computes one position only.
//
//   const at::NoGradGuard no_grad;
//   KeyValueCache cache;
//   at::Tensor logits = RunOutput(gpt, {.inputs = prompt}, {}, {.cache = &cache});  // (batch, length, vocab)
//   logits = RunOutput(gpt, {.inputs = next}, {}, {.cache = &cache});               // (batch, 1, vocab)
//   cache.length();                                                                 // length + 1
//
// Sequences of different lengths are continued in one batch through one cache each:
//
//   KeyValueCache rows = KeyValueCache::OfRows({&first, &second});
//   logits = RunOutput(gpt, {.inputs = next}, {}, {.cache = &rows});  // next: (2, 1); row r continues cache r
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

  // Combines caches of batch size 1 into one for a batch of them. Not owned; each holds at least one position. As
  // lengths may differ, blocks call attention row by row, each with its own cache (ByRow); call Append and length on
  // the rows, not on the combined cache.
  static KeyValueCache OfRows(std::vector<KeyValueCache*> rows);
  // The caches given to OfRows; empty for any other cache.
  const std::vector<KeyValueCache*>& rows() const { return rows_; }
  // The position of the next token of each row: (rows, 1), int64, on the CPU.
  at::Tensor NextPositions() const;

  // Positions that all layers hold.
  std::int64_t length() const { return layers_.empty() ? 0 : layers_.back().length; }
  // Positions that `layer` holds; 0 if nothing was appended to it yet.
  std::int64_t length(std::int64_t layer) const {
    const auto index = static_cast<std::size_t>(layer);
    return index < layers_.size() ? layers_[index].length : 0;
  }
  // Removes all positions but keeps the memory.
  void Clear();

  // Appends `keys` and `values` (batch, heads, new, head width) to those of `layer` and returns all of them:
  // views (batch, heads, length + new, head width) that the next Append() does not change. `capacity` is the
  // maximum length, read at the first Append to a layer. Aborts for a layer whose predecessor was never appended to,
  // another batch size, more than `capacity` positions, and keys or values that require gradients.
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

// Concatenates the results of attend(row, cache of the row), each (1, ...), along dimension 0.
at::Tensor ByRow(const KeyValueCache& cache,
                 const std::function<at::Tensor(std::int64_t row, KeyValueCache* cache)>& attend);

}  // namespace plait::models

#endif  // PLAIT_MODELS_KEY_VALUE_CACHE_H_
