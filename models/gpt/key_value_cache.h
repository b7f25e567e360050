// Keys and values of the positions that a GPT has seen, so that a further token costs one position's work.
//
//   KeyValueCache cache;
//   at::Tensor logits = gpt.Forward(prompt, cache);   // (batch, prompt length, vocab)
//   logits = gpt.Forward(next, cache);                // (batch, 1, vocab)
//   cache.length();                                   // prompt length + 1
//
// Memory is taken at the first use: two tensors (batch, heads, positions, head width) per layer. Local.
#ifndef PLAIT_MODELS_GPT_KEY_VALUE_CACHE_H_
#define PLAIT_MODELS_GPT_KEY_VALUE_CACHE_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace plait::gpt {

class KeyValueCache {
 public:
  KeyValueCache() = default;
  KeyValueCache(KeyValueCache&&) = default;
  KeyValueCache& operator=(KeyValueCache&&) = default;

  // Positions that all layers hold.
  std::int64_t length() const { return layers_.empty() ? 0 : layers_.back().length; }
  // Forgets all positions; the memory stays.
  void Clear();

  // Puts `keys` and `values` (batch, heads, new, head width) behind what `layer` holds and gives all of it:
  // views (batch, heads, length + new, head width) that the next Append() does not change. `capacity` is the
  // largest length there will be; a new layer, another batch or a longer sequence is a programming error.
  std::pair<at::Tensor, at::Tensor> Append(std::size_t layer, const at::Tensor& keys,
                                           const at::Tensor& values, std::int64_t capacity);

 private:
  struct Layer {
    at::Tensor keys, values;  // (batch, heads, capacity, head width)
    std::int64_t length = 0;
  };

  std::vector<Layer> layers_;
};

}  // namespace plait::gpt

#endif  // PLAIT_MODELS_GPT_KEY_VALUE_CACHE_H_
