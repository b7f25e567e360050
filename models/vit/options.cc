#include "models/vit/options.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plait::vit {
namespace {

struct Preset {
  const char* name;
  VitOptions options;
};

VitOptions Published(std::int64_t depth, std::int64_t heads) {
  const std::int64_t dim = 64 * heads;
  return {.dim = dim,
          .depth = depth,
          .heads = heads,
          .mlp_dim = 4 * dim,
          .qkv_bias = true,
          .pool = Pool::kClassToken};
}

std::array<Preset, 6> Presets() {
  return {{{"vit-tiny", Published(12, 3)},
           {"vit-small", Published(12, 6)},
           {"vit-base", Published(12, 12)},
           {"vit-large", Published(24, 16)},
           {"vit-large-mean", {}},
           {"cpu",
            {.image_size = 32,
             .patch_size = 4,
             .dim = 128,
             .depth = 4,
             .heads = 4,
             .head_dim = 32,
             .mlp_dim = 512,
             .classes = 10}}}};
}

}  // namespace

absl::Status Validate(const VitOptions& options) {
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"image_size", options.image_size}, {"patch_size", options.patch_size},
      {"channels", options.channels},     {"dim", options.dim},
      {"depth", options.depth},           {"heads", options.heads},
      {"head_dim", options.head_dim},     {"mlp_dim", options.mlp_dim},
      {"classes", options.classes}};
  constexpr std::int64_t kLargest = std::int64_t{1} << 31;  // the product of two fits
  for (const auto& [name, size] : sizes) {
    if (size < 1 || size > kLargest)
      return absl::InvalidArgumentError(absl::StrCat(name, " is ", size, "; expected 1 to ", kLargest));
  }
  if (options.image_size % options.patch_size != 0) {
    return absl::InvalidArgumentError(absl::StrCat("image_size is ", options.image_size,
                                                   "; expected a multiple of patch_size, which is ",
                                                   options.patch_size));
  }
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("dropout is ", options.dropout, "; expected a number in [0, 1)"));
  }
  if (!(options.norm_eps > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("norm_eps is ", options.norm_eps, "; expected above 0"));
  }
  return absl::OkStatus();
}

models::ModelSizes SizesOf(const VitOptions& o) {
  return {.layers = o.depth,
          .shapes = {{o.tokens(), o.dim},
                     {o.channels, o.patch_size, o.patch_size, o.dim},
                     {o.depth, o.dim, o.heads, o.head_dim},
                     {o.depth, o.dim, o.mlp_dim},
                     {o.classes, o.dim}}};
}

absl::StatusOr<VitOptions> PresetNamed(absl::string_view name) {
  for (const Preset& preset : Presets()) {
    if (name == preset.name) return preset.options;
  }
  return absl::InvalidArgumentError(absl::StrCat("no preset \"", name, "\"; there are ", PresetNames()));
}

std::string PresetNames() {
  return absl::StrJoin(Presets(), ", ",
                       [](std::string* out, const Preset& preset) { out->append(preset.name); });
}

}  // namespace plait::vit
