#include "tools/dist_test/startup_report.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "comm/launch/dist_info.h"

namespace plait::dist_test {
namespace {

std::string ConfigBlock(const Config& config, const Place& place) {
  const std::vector<std::pair<std::string, std::string>> entries = {
      {"warmup", absl::StrCat(config.warmup)},
      {"log_freq", absl::StrCat(config.log_freq)},
      {"batch_size", absl::StrCat(config.batch_size)},
      {"input_size", absl::StrCat(config.input_size)},
      {"output_size", absl::StrCat(config.output_size)},
      {"dtype", config.dtype},
      {"device", place.device.kind},
      {"world_size", absl::StrCat(place.job.size)},
      {"train_iters", absl::StrCat(config.train_iters)}};
  return comm::BulletBlock("CONFIG", entries, place.utf8);
}

}  // namespace

Place Introduce(const Config& config, const device::DevicePlan& device, const comm::DeviceMesh& mesh,
                const base::Log& log) {
  Place place = training::ReportStartup(
      mesh, {.strategy = absl::AsciiStrToUpper(Name(config.strategy)), .gpu = device.gpu}, log);
  if (!config.collectives) log.Info("\n\n" + ConfigBlock(config, place));
  return place;
}

data::RunFacts FactsOf(const Config& config, const Place& place) {
  return training::FactsOf({.program = "test_dist", .seed = config.seed, .settings = FlagSettings()}, place);
}

}  // namespace plait::dist_test
