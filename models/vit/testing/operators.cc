#include "models/vit/testing/operators.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/sqrt.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace plait::vit::testing {
namespace {

class Parameters {
 public:
  explicit Parameters(const Vit& vit) {
    for (const models::ParameterUnit& unit : vit.units()) {
      for (const models::ParameterSpec& p : unit.parameters) tensors_[p.name] = p.tensor;
    }
  }
  bool Has(const std::string& name) const { return tensors_.count(name) > 0; }
  const at::Tensor& operator[](const std::string& name) const { return tensors_.at(name); }

  at::Tensor Linear(const std::string& name, const at::Tensor& x) const {
    const at::Tensor y = at::matmul(x, (*this)[name + ".weight"].t());
    return Has(name + ".bias") ? y + (*this)[name + ".bias"] : y;
  }
  at::Tensor Norm(const std::string& name, const at::Tensor& x, double eps) const {
    const at::Tensor centred = x - x.mean(-1, true);
    const at::Tensor variance = (centred * centred).mean(-1, true);
    return centred / at::sqrt(variance + eps) * (*this)[name + ".weight"] + (*this)[name + ".bias"];
  }

 private:
  std::map<std::string, at::Tensor> tensors_;
};

// One head of one block: (batch, tokens, head_dim) each.
at::Tensor Attended(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const at::Tensor scores = at::matmul(q, k.transpose(1, 2)) / std::sqrt(static_cast<double>(q.size(2)));
  const at::Tensor weights = at::exp(scores - scores.amax(-1, true).detach());
  return at::matmul(weights / weights.sum(-1, true), v);
}

}  // namespace

at::Tensor LogitsByOperators(const Vit& vit, const at::Tensor& images) {
  const VitOptions& o = vit.options();
  const Parameters p(vit);
  at::Tensor x = at::conv2d(images, p["patch_embed.proj.weight"], p["patch_embed.proj.bias"],
                            {o.patch_size, o.patch_size})
                     .flatten(2)
                     .transpose(1, 2);
  if (p.Has("cls_token")) x = at::cat({p["cls_token"].expand({x.size(0), 1, o.dim}), x}, 1);
  x = x + p["pos_embed"];
  for (std::int64_t i = 0; i < o.depth; ++i) {
    const std::string block = "blocks." + std::to_string(i) + ".";
    const at::Tensor qkv = p.Linear(block + "attn.qkv", p.Norm(block + "norm1", x, o.norm_eps));
    std::vector<at::Tensor> heads;
    for (std::int64_t head = 0; head < o.heads; ++head) {
      const auto part = [&](std::int64_t which) {
        return qkv.narrow(2, which * o.inner_dim() + head * o.head_dim, o.head_dim);
      };
      heads.push_back(Attended(part(0), part(1), part(2)));
    }
    x = x + p.Linear(block + "attn.proj", at::cat(heads, 2));
    const at::Tensor wide = p.Linear(block + "mlp.fc1", p.Norm(block + "norm2", x, o.norm_eps));
    x = x + p.Linear(block + "mlp.fc2", wide * 0.5 * (1 + at::erf(wide * std::sqrt(0.5))));
  }
  const bool class_token = o.pool == Pool::kClassToken;
  const at::Tensor pooled = class_token ? x.select(1, 0) : x.mean(1);
  return p.Linear("head", p.Norm(class_token ? "norm" : "fc_norm", pooled, o.norm_eps));
}

}  // namespace plait::vit::testing
