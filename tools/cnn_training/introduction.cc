#include "tools/cnn_training/introduction.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "comm/launch/dist_info.h"

namespace plait::cnn_training {
namespace {

std::string ConfigBlock(const Config& c, const Place& place) {
  const int ranks = place.job.size;
  const std::vector<std::pair<std::string, std::string>> entries = {
      {"batch_size", absl::StrCat(c.batch_size, " a rank, ", c.batch_size * ranks, " in all")},
      {"test_batch_size", absl::StrCat(c.test_batch_size)},
      {"epochs", absl::StrCat(c.epochs)},
      {"lr", absl::StrCat(c.lr)},
      {"gamma", absl::StrCat(c.gamma)},
      {"weight_decay", absl::StrCat(c.weight_decay)},
      {"dropout", absl::StrCat(c.dropout1, ", ", c.dropout2)},
      {"strategy", c.strategy},
      {"dtype", c.dtype},
      {"activation_checkpoints", c.activation_checkpoints},
      {"world_size", absl::StrCat(ranks)},
      {"seed", absl::StrCat(c.seed)}};
  return comm::BulletBlock("CONFIG", entries, place.utf8);
}

}  // namespace

Place Introduce(const Config& config, const comm::DeviceMesh& mesh, const base::Log& log) {
  Place place = training_program::Introduce(
      mesh, {.strategy = absl::AsciiStrToUpper(config.strategy), .says_log_levels = false}, log);
  log.Info("\n\n" + ConfigBlock(config, place));
  return place;
}

data::RunFacts FactsOf(const Config& config, const Place& place, const std::string& settings) {
  return training_program::FactsOf({.program = "train_cnn", .seed = config.seed, .settings = settings},
                                   place);
}

}  // namespace plait::cnn_training
