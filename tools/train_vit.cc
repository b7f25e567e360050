// Trains a vision transformer on images, sharded over ranks: tools/vit_training/README.md.
#include <c10/core/ScalarType.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/path.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "data/images/open_image_sets.h"
#include "models/vit/summary.h"
#include "tools/image_training/image_batches.h"
#include "tools/training/program.h"
#include "tools/training/trainer.h"
#include "tools/vit_training/model_files.h"
#include "tools/vit_training/settings.h"
#include "tools/vit_training/vit_task.h"

namespace plait::vit_training {
namespace {

using training::Run;

std::vector<std::pair<std::string, std::string>> ConfigBlock(const VitSettings& s, const Run& run) {
  const std::int64_t all = s.GlobalBatch(run.data.size());
  return {{"preset", s.preset},
          {"data", s.data},
          {"augment", s.augment},
          {"batch_size", absl::StrCat(s.SamplesPerRank(run.data.size()), " a rank, ", all, " in all")},
          {"gradient_accumulation_steps", absl::StrCat(s.gradient_accumulation_steps)},
          {"learning_rate", absl::StrCat(s.optimizer.learning_rate)},
          {"strategy", s.strategy},
          {"dtype", s.dtype},
          {"activation_checkpointing", s.activation_checkpointing},
          {"device", run.environment.device.kind},
          {"world_size", absl::StrCat(run.world.size())},
          {"seed", absl::StrCat(s.seed)}};
}

absl::StatusOr<data::ImageSets> OpenImages(const VitSettings& s, const Run& run) {
  const std::string data = s.data == "fake" ? s.data : base::FromUser(s.data);
  absl::StatusOr<data::ImageSets> sets = data::OpenImageSets(
      {.data = data, .fake = {.train_samples = s.fake_samples, .side = s.image_size, .classes = s.classes}});
  return image_training::AgreeOnImages(std::move(sets), s.max_samples, "--data", run.world);
}

// The options of a model for these images.
absl::StatusOr<vit::VitOptions> OptionsOf(const VitSettings& s, const Run& run, const data::ImageSets& images,
                                          const InitialModel& files) {
  const auto found = static_cast<std::int64_t>(images.class_names.size());
  const bool set = run.table.Given("classes") || run.checkpoint.has_value();
  vit::VitOptions options = s.Options(set ? s.classes : found);
  options.channels = images.channels;
  if (files.has_value()) options.classes = files->options().classes;
  if (options.classes < found) {
    return absl::InvalidArgumentError(
        absl::StrCat(files.has_value() ? "--init-from: a head of " : "--classes=", options.classes,
                     files.has_value() ? " classes" : "", ": the images have ", found));
  }
  if (files.has_value()) {
    PLAIT_RETURN_IF_ERROR(CheckClassNames(*files, images.class_names, run, s.eval_only));
  }
  return options;
}

void ReportModel(const VitSettings& s, const vit::VitOptions& o, std::int64_t images, const Run& run) {
  run.log.Info(absl::StrCat("Using ", s.attn, " attention"));
  run.log.Info(absl::StrFormat(
      "config=ViTConfig(img_size=%d, batch_size=%d, num_heads=%d, head_dim=%d, depth=%d, patch_size=%d)",
      o.image_size, images, o.heads, o.head_dim, o.depth, o.patch_size));
  const models::Layer layers = vit::LayersOf(o, images);
  const auto element_bytes = static_cast<std::int64_t>(c10::elementSize(s.compute_type()));
  run.log.Info("\n" + models::TableText(layers, {.depth = 1,
                                                 .input_bytes = vit::InputBytes(o, images, element_bytes),
                                                 .element_bytes = element_bytes,
                                                 .counting = models::Counting::kTorchinfo}));
  run.log.Info(absl::StrCat("Mult-adds of all tokens, with attention's products: ",
                            base::FormatCount(models::TotalsOf(layers).mult_adds),
                            " (the table has torchinfo's: linear layers once per image)"));
}

absl::Status Train(VitSettings& settings, const InitialModel& files, Run& run) {
  const std::int64_t images_of_rank = settings.SamplesPerRank(run.data.size());
  if (settings.summary_only) {
    ReportModel(settings, files ? files->options() : settings.Options(settings.classes), images_of_rank, run);
    return absl::OkStatus();
  }
  PLAIT_ASSIGN_OR_RETURN(const data::ImageSets images, OpenImages(settings, run));
  PLAIT_ASSIGN_OR_RETURN(const vit::Preprocessor preprocessor, PreprocessorOf(settings, images, run));
  data::ImageSets scaled = images;
  scaled.scale = {.mean = preprocessor.mean, .deviation = preprocessor.deviation};
  run.log.Info(image_training::DataLine(scaled));
  PLAIT_ASSIGN_OR_RETURN(const vit::VitOptions options, OptionsOf(settings, run, images, files));
  PLAIT_RETURN_IF_ERROR(CheckSavedModel(settings, options, run));
  const std::vector<std::string> class_names = ClassNamesOfModel(images, files, run);
  VitTask task(settings, run, images, options, files, preprocessor, class_names);
  run.log.Info(absl::StrCat("len(train_set)=", images.train->samples()));
  ReportModel(settings, options, images_of_rank, run);
  training::Trainer trainer(run, task);
  PLAIT_RETURN_IF_ERROR(trainer.Prepare());
  if (settings.dry_run) return absl::OkStatus();
  run.log.Info(absl::StrCat("Training with ", run.world.size(), " x ", run.environment.device.kind,
                            " (s), using dtype=", settings.dtype));
  PLAIT_RETURN_IF_ERROR(trainer.Train());
  PLAIT_RETURN_IF_ERROR(SaveModel(settings, options, class_names, preprocessor, trainer.model(), run));
  return trainer.Conclude();
}

}  // namespace
}  // namespace plait::vit_training

int main(int argc, char** argv) {
  using namespace plait;
  vit_training::VitSettings settings;
  vit_training::InitialModel files;
  return training::RunProgram(
      argc, argv,
      {.name = "train_vit",
       .summary =
           "Trains a vision transformer on images, its parameters, gradients and optimizer state replicated "
           "or sharded over ranks.",
       .examples =
           {"train_vit --preset=cpu --data=cifar-10-batches-bin --augment=pad-crop --epochs=10 --nproc=2",
            "train_vit --summary-only", "mpirun -n 24 train_vit --max-iters=10 --dtype=bf16 --strategy=fsdp"},
       .settings = settings,
       .run = [&](training::Run& run) { return vit_training::Train(settings, files, run); },
       .take_sizes = [&](training::Run& run) -> absl::Status {
         PLAIT_ASSIGN_OR_RETURN(files, vit_training::OpenInitialModel(settings, run));
         return absl::OkStatus();
       },
       .config_block = [&](const training::Run& run) { return vit_training::ConfigBlock(settings, run); }});
}
