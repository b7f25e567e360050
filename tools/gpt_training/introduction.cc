#include "tools/gpt_training/introduction.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "comm/launch/dist_info.h"

namespace plait::gpt_training {
namespace {

std::string ConfigBlock(const Config& c, const Place& place) {
  const int ranks = place.job.size;
  const std::vector<std::pair<std::string, std::string>> entries = {
      {"preset", c.preset},
      {"n_layer", absl::StrCat(c.n_layer)},
      {"n_head", absl::StrCat(c.n_head)},
      {"n_embd", absl::StrCat(c.n_embd)},
      {"block_size", absl::StrCat(c.block_size)},
      {"dropout", absl::StrCat(c.dropout)},
      {"bias", c.bias ? "true" : "false"},
      {"batch_size", absl::StrCat(GlobalBatchSize(c, ranks), " on ", ranks, ranks == 1 ? " rank" : " ranks")},
      {"gradient_accumulation_steps", absl::StrCat(c.gradient_accumulation_steps)},
      {"strategy", c.strategy},
      {"dtype", c.dtype},
      {"activation_checkpointing", c.activation_checkpointing},
      {"device", place.device.kind},
      {"world_size", absl::StrCat(ranks)},
      {"max_iters", absl::StrCat(c.max_iters)},
      {"seed", absl::StrCat(c.seed)}};
  return comm::BulletBlock("CONFIG", entries, place.utf8);
}

}  // namespace

Place Introduce(const Config& config, const comm::DeviceMesh& mesh, const base::Log& log) {
  Place place = training_program::Introduce(mesh, {.strategy = absl::AsciiStrToUpper(config.strategy)}, log);
  log.Info("\n\n" + ConfigBlock(config, place));
  return place;
}

data::RunFacts FactsOf(const Config& config, const Place& place, const std::string& settings) {
  return training_program::FactsOf({.program = "train_gpt", .seed = config.seed, .settings = settings},
                                   place);
}

}  // namespace plait::gpt_training
