// Vit::Description().
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/layer_text.h"
#include "models/vit/vit.h"

namespace plait::vit {
namespace {

using models::DropoutText, models::LinearText;

std::string NormText(const VitOptions& o) {
  return absl::StrFormat("LayerNorm((%d,), eps=%g, elementwise_affine=True)", o.dim, o.norm_eps);
}

std::string BlockText(const VitOptions& o) {
  const std::string dropout = DropoutText(o.dropout);
  return absl::StrCat("Block(\n",                                                                 //
                      "      (norm1): ", NormText(o), "\n",                                       //
                      "      (attn): Attention(\n",                                               //
                      "        (qkv): ", LinearText(o.dim, 3 * o.inner_dim(), o.qkv_bias), "\n",  //
                      "        (attn_drop): ", dropout, "\n",                                     //
                      "        (proj): ", LinearText(o.inner_dim(), o.dim, true), "\n",           //
                      "        (proj_drop): ", dropout, "\n", "      )\n",                        //
                      "      (norm2): ", NormText(o), "\n",                                       //
                      "      (mlp): Mlp(\n",                                                      //
                      "        (fc1): ", LinearText(o.dim, o.mlp_dim, true), "\n",                //
                      "        (act): GELU(approximate='none')\n",                                //
                      "        (fc2): ", LinearText(o.mlp_dim, o.dim, true), "\n",                //
                      "        (drop): ", dropout, "\n", "      )\n", "    )\n");
}

}  // namespace

std::string Vit::Description() const {
  const VitOptions& o = options_;
  const std::string norm =
      absl::StrCat(o.pool == Pool::kClassToken ? "  (norm): " : "  (fc_norm): ", NormText(o));
  return absl::StrCat(
      "VisionTransformer(\n  (patch_embed): PatchEmbed(\n",
      absl::StrFormat("    (proj): Conv2d(%d, %d, kernel_size=(%d, %d), stride=(%d, %d))\n", o.channels,
                      o.dim, o.patch_size, o.patch_size, o.patch_size, o.patch_size),
      "  )\n  (pos_drop): ", DropoutText(o.dropout), "\n",           //
      "  (blocks): Sequential(\n    ", models::RepeatText(o.depth),  //
      BlockText(o), "  )\n", norm, "\n",                             //
      "  (head): ", LinearText(o.dim, o.classes, true), "\n)");
}

}  // namespace plait::vit
