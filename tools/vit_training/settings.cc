#include "tools/vit_training/settings.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "data/images/transform.h"

namespace plait::vit_training {
namespace {

using training::AtLeast;
using training::Fraction;
using training::OnResume;

absl::Status Invalid(const std::string& line) { return absl::InvalidArgumentError(line); }

absl::Status CheckModel(const VitSettings& s) {
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"image-size", s.image_size}, {"patch-size", s.patch_size}, {"dim", s.dim},
      {"depth", s.depth},           {"heads", s.heads},           {"head-dim", s.head_dim},
      {"mlp-dim", s.mlp_dim},       {"classes", s.classes}};
  for (const auto& [name, size] : sizes) {
    // Products of three stay below 2^63.
    PLAIT_RETURN_IF_ERROR(training::Between(name, static_cast<double>(size), 1, 100'000));
  }
  PLAIT_RETURN_IF_ERROR(training::OneOf("pool", s.pool, {"mean", "class"}));
  PLAIT_RETURN_IF_ERROR(training::OneOf("attn", s.attn, {"sdpa", "math"}));
  PLAIT_RETURN_IF_ERROR(Fraction("dropout", s.dropout));
  PLAIT_RETURN_IF_ERROR(training::Positive("norm-eps", s.norm_eps));
  if (s.image_size % s.patch_size == 0) return absl::OkStatus();
  return Invalid(
      absl::StrCat("--image-size=", s.image_size, ": must be a multiple of --patch-size=", s.patch_size));
}

absl::Status CheckRun(const VitSettings& s) {
  PLAIT_RETURN_IF_ERROR(AtLeast("fake-samples", static_cast<double>(s.fake_samples), 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("max-samples", static_cast<double>(s.max_samples), 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("max-iters", static_cast<double>(s.max_iters), 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("epochs", static_cast<double>(s.epochs), 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("test-batch-size", static_cast<double>(s.test_batch_size), 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("log-interval", static_cast<double>(s.log_interval), 1));
  PLAIT_RETURN_IF_ERROR(base::Prefixed(data::ParseAugmentation(s.augment).status(), "--augment"));
  if (s.max_iters == 0 && s.epochs == 0) {
    return Invalid("--max-iters=0 and --epochs=0: say how long to train, with one of them");
  }
  return absl::OkStatus();
}

}  // namespace

void VitSettings::Bind(training::SettingsTable& table) {
  table.Group("Model");
  table.Add("preset", &preset, "sizes by name: " + vit::PresetNames() + "; other flags change parts of it",
            OnResume::kPreset);
  table.Add("image_size", &image_size, "rows and columns of an image, a multiple of --patch-size",
            OnResume::kSame);
  table.Add("patch_size", &patch_size, "rows and columns of a patch", OnResume::kSame);
  table.Add("dim", &dim, "width of the model", OnResume::kSame);
  table.Add("depth", &depth, "blocks of the model", OnResume::kSame);
  table.Add("heads", &heads, "attention heads per block", OnResume::kSame);
  table.Add("head_dim", &head_dim, "width of an attention head", OnResume::kSame);
  table.Add("mlp_dim", &mlp_dim, "width of the hidden layer of a block's MLP", OnResume::kSame);
  table.Add("classes", &classes,
            "outputs of the head; default, except for fake data: the classes of the data", OnResume::kSame);
  table.Add(
      "pool", &pool,
      "what the head sees: mean (of the patches) or class (a token of its own, as export_model needs it)",
      OnResume::kSame);
  table.Add("qkv_bias", &qkv_bias, "biases of queries, keys and values", OnResume::kSame);
  table.Add("dropout", &dropout, "dropout probability", OnResume::kSame);
  table.Add("norm_eps", &norm_eps, "added to variances in layer norms", OnResume::kSame);
  table.Add(
      "attn", &attn,
      "sdpa: own kernels or LibTorch's scaled_dot_product_attention; math: batched products and a softmax");
  table.Add("summary_only", &summary_only, "prints the model's table, and exits");
  table.Group("Images");
  table.Add(
      "data", &data,
      "fake (synthetic), or a directory: CIFAR-10's binary version, IDX files (MNIST), or image files in "
      "train/CLASS and val/CLASS, or in CLASS");
  table.Add("fake_samples", &fake_samples, "fake data: number of training images");
  table.Add("max_samples", &max_samples,
            "train and test on the first N images, of class folders on N evenly spaced ones; 0: all");
  table.Add("augment", &augment,
            "augmentation of training images, flipped with probability 1/2: none (not flipped), pad-crop "
            "(moved by up to an "
            "eighth), "
            "resized-crop (8 to 100 % of the area, resized)",
            OnResume::kSame);
  table.Group("Training");
  table.Add("max_iters", &max_iters, "number of training steps; 0: --epochs", OnResume::kAdopt);
  table.Add("epochs", &epochs,
            "number of epochs (0: use --max-iters); with both, training stops at whichever comes first; a "
            "resumed run that sets one of them ignores the other's saved value",
            OnResume::kAdopt);
  BindBatch(table, "images");
  optimizer.Bind(table);
  BindParallel(table);
  table.Group("Evaluation and report");
  table.Add("evaluate", &evaluate, "tests on all test images after each epoch and at the end");
  table.Add("test_batch_size", &test_batch_size, "images of a batch of the test on each data-parallel rank");
  table.Add("log_interval", &log_interval, "log every N steps");
  BindFiles(table, "steps");
  table.Add("init_from", &init_from, "scratch, or a directory with a ViT in Hugging Face's layout");
  table.Add("save_model", &save_model,
            "directory to write the model to in Hugging Face's layout, at the end");
}

absl::Status VitSettings::ChooseDefaults(training::SettingsTable& table) {
  preset = absl::StrReplaceAll(preset, {{"_", "-"}});
  if (dtype == "bf16") dtype = "bfloat16";
  const absl::StatusOr<vit::VitOptions> sizes = vit::PresetNamed(preset);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(sizes.status(), "--preset"));
  training::NamedValues values = {{"image_size", absl::StrCat(sizes->image_size)},
                                  {"patch_size", absl::StrCat(sizes->patch_size)},
                                  {"dim", absl::StrCat(sizes->dim)},
                                  {"depth", absl::StrCat(sizes->depth)},
                                  {"heads", absl::StrCat(sizes->heads)},
                                  {"head_dim", absl::StrCat(sizes->head_dim)},
                                  {"mlp_dim", absl::StrCat(sizes->mlp_dim)},
                                  {"classes", absl::StrCat(sizes->classes)},
                                  {"pool", sizes->pool == vit::Pool::kMean ? "mean" : "class"},
                                  {"qkv_bias", sizes->qkv_bias ? "true" : "false"}};
  if (preset == "cpu") values["batch_size"] = "32";
  if (epochs > 0) values["max_iters"] = "0";
  only_max_iters_ = max_iters > 0 && table.Given("max_iters") && !table.Given("epochs");
  only_epochs_ = epochs > 0 && table.Given("epochs") && !table.Given("max_iters");
  for (const auto& [name, value] : values) PLAIT_RETURN_IF_ERROR(table.SetDefault(name, value));
  return optimizer.ChooseDefaults(table);
}

absl::Status VitSettings::CheckGiven(const training::SettingsTable& table) const {
  PLAIT_RETURN_IF_ERROR(optimizer.CheckGiven(table));
  if (data != "fake") PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven("fake_samples", "--data=fake"));
  return Settings::CheckGiven(table);
}

// A checkpoint's other limit may be reached already: the resumed run would end without a step.
void VitSettings::Complete(const std::vector<comm::MeshAxis>&) {
  if (only_max_iters_) epochs = 0;
  if (only_epochs_) max_iters = 0;
}

absl::Status VitSettings::CheckStart() const {
  if (!resume.empty() && resume != "auto" && !initial_model().empty()) {
    return absl::InvalidArgumentError("--resume and --init-from are mutually exclusive: leave one out");
  }
  return Settings::CheckStart();
}

absl::Status VitSettings::Check(const std::vector<comm::MeshAxis>& axes) const {
  PLAIT_RETURN_IF_ERROR(CheckModel(*this));
  PLAIT_RETURN_IF_ERROR(optimizer.Check());
  PLAIT_RETURN_IF_ERROR(optimizer.CheckPlaces(axes, offload));
  PLAIT_RETURN_IF_ERROR(CheckRun(*this));
  if (!sizes_are_unknown()) {
    PLAIT_RETURN_IF_ERROR(CheckTokens(
        axes, absl::StrCat("--image-size=", image_size, " --patch-size=", patch_size, " --pool=", pool),
        Options(classes).tokens(), "tests"));
  }
  PLAIT_RETURN_IF_ERROR(CheckLayers(axes, "depth", depth));
  return CheckShared(axes);
}

vit::VitOptions VitSettings::Options(std::int64_t class_count) const {
  return {.image_size = image_size,
          .patch_size = patch_size,
          .dim = dim,
          .depth = depth,
          .heads = heads,
          .head_dim = head_dim,
          .mlp_dim = mlp_dim,
          .classes = class_count,
          .qkv_bias = qkv_bias,
          .pool = pool == "mean" ? vit::Pool::kMean : vit::Pool::kClassToken,
          .dropout = dropout,
          .norm_eps = norm_eps,
          .attention = attn == "sdpa" ? vit::Attention::kSdpa : vit::Attention::kMath};
}

std::string VitSettings::initial_model() const {
  return init_from == "scratch" ? "" : base::FromUser(init_from);
}

}  // namespace plait::vit_training
