// The sizes of a vision transformer, and sizes with a name.
//
//   PLAIT_ASSIGN_OR_RETURN(VitOptions options, PresetNamed("vit-small"));
//   options.classes = set.class_names.size();
//
// Dosovitskiy et al., arXiv:2010.11929, table 1; Touvron et al., arXiv:2012.12877, table 1.
#ifndef PLAIT_MODELS_VIT_OPTIONS_H_
#define PLAIT_MODELS_VIT_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/model_sizes.h"

namespace plait::vit {

// What the head sees.
enum class Pool {
  kMean,        // the mean of the patches, normalized
  kClassToken,  // a learned token in front of the patches
};

enum class Attention {
  kSdpa,  // own kernels or LibTorch's scaled_dot_product_attention, whichever is quicker
  kMath,  // batched products and a softmax, all probabilities in memory
};

struct VitOptions {
  std::int64_t image_size = 224;  // rows and columns, a multiple of patch_size
  std::int64_t patch_size = 16;
  std::int64_t channels = 3;
  std::int64_t dim = 1024, depth = 24;
  std::int64_t heads = 16, head_dim = 64;  // together they may differ from dim
  std::int64_t mlp_dim = 4096;
  std::int64_t classes = 1000;
  bool qkv_bias = false;  // in the projections to queries, keys and values
  Pool pool = Pool::kMean;
  double dropout = 0;  // 0 to 1, without 1
  double norm_eps = 1e-6;
  Attention attention = Attention::kSdpa;

  std::int64_t patches() const { return (image_size / patch_size) * (image_size / patch_size); }
  // Of a sequence.
  std::int64_t tokens() const { return patches() + (pool == Pool::kClassToken ? 1 : 0); }
  // Width of attention.
  std::int64_t inner_dim() const { return heads * head_dim; }
  std::int64_t patch_dim() const { return channels * patch_size * patch_size; }

  friend bool operator==(const VitOptions&, const VitOptions&) = default;
};

// InvalidArgument: names the size that is out of its bounds.
absl::Status Validate(const VitOptions& options);

models::ModelSizes SizesOf(const VitOptions& options);

// Layers, heads and width:
//   vit-tiny 12/3/192, vit-small 12/6/384, vit-base 12/12/768, vit-large 24/16/1024 (224/16, as published:
//   class token, biases everywhere); vit-large-mean: the default sizes above; cpu 4/4/128 of images 32/4, 10 classes, mean of patches.
// InvalidArgument: no such preset; the message lists them.
absl::StatusOr<VitOptions> PresetNamed(absl::string_view name);
// "vit-tiny, vit-small, ...".
std::string PresetNames();

}  // namespace plait::vit

#endif  // PLAIT_MODELS_VIT_OPTIONS_H_
