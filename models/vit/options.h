// The sizes of a vision transformer, and presets.
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

// What the head reads.
enum class Pool {
  kMean,        // the mean of the patches, normalized
  kClassToken,  // a learned token in front of the patches
};

enum class Attention {
  kSdpa,  // models/attention's short attention or LibTorch's scaled_dot_product_attention, whichever is faster
  kMath,  // batched products and a softmax, all probabilities in memory
};

struct VitOptions {
  std::int64_t image_size = 224;  // rows and columns, a multiple of patch_size
  std::int64_t patch_size = 16;
  std::int64_t channels = 3;
  std::int64_t dim = 1024, depth = 24;
  std::int64_t heads = 16, head_dim = 64;  // heads * head_dim may differ from dim
  std::int64_t mlp_dim = 4096;
  std::int64_t classes = 1000;
  bool qkv_bias = false;  // bias of the query, key and value projections
  Pool pool = Pool::kMean;
  double dropout = 0;  // in [0, 1)
  double norm_eps = 1e-6;
  Attention attention = Attention::kSdpa;

  std::int64_t patches() const { return (image_size / patch_size) * (image_size / patch_size); }
  // Sequence length.
  std::int64_t tokens() const { return patches() + (pool == Pool::kClassToken ? 1 : 0); }
  // Width of attention.
  std::int64_t inner_dim() const { return heads * head_dim; }
  std::int64_t patch_dim() const { return channels * patch_size * patch_size; }

  friend bool operator==(const VitOptions&, const VitOptions&) = default;
};

// InvalidArgument if an option is out of range; the message names it.
absl::Status Validate(const VitOptions& options);

models::ModelSizes SizesOf(const VitOptions& options);

// Layers, heads and width:
//   vit-tiny 12/3/192, vit-small 12/6/384, vit-base 12/12/768, vit-large 24/16/1024 (as published: images of 224,
//   patches of 16, class token, biases everywhere); vit-large-mean: the defaults above; cpu 4/4/128 with images of
//   32, patches of 4, 10 classes, mean over the patches.
// InvalidArgument if there is no such preset; the message lists them.
absl::StatusOr<VitOptions> PresetNamed(absl::string_view name);
// "vit-tiny, vit-small, ...".
std::string PresetNames();

}  // namespace plait::vit

#endif  // PLAIT_MODELS_VIT_OPTIONS_H_
