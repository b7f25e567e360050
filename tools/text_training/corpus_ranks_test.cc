// Ranks that do not see the same files, as on hosts with file systems of their own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "comm/testing/world.h"
#include "tools/text_training/corpus.h"

namespace plait::text_training {
namespace {

struct TestSettings final : TextSettings {
  TestSettings() : TextSettings({"sequence", "lr"}) {}
  void Bind(training::SettingsTable&) override {}
  absl::Status Check(const std::vector<comm::MeshAxis>&) const override { return absl::OkStatus(); }
  ModelOptions Options(std::int64_t) const override { return {}; }
};

TEST(OpenCorpus, NamesTokenFilesThatOneRankLacks) {
  const comm::Communicator world = comm::testing::World();
  TestSettings settings;
  settings.data = absl::StrCat(std::getenv("TEST_TMPDIR"), "/tokens-", world.rank());
  settings.vocab_size = 7;
  std::filesystem::create_directories(settings.data);
  for (const char* name : {"/train.bin", "/val.bin"}) {
    if (world.rank() == 0) std::ofstream(settings.data + name) << std::string(200, '\0');
  }
  const absl::StatusOr<Corpus> corpus = OpenCorpus(settings, world, [](const std::string&) {});
  EXPECT_EQ(corpus.status().code(), absl::StatusCode::kNotFound) << corpus.status();
  EXPECT_NE(corpus.status().message().find("tokens-1/train.bin"), std::string::npos) << corpus.status();
}

}  // namespace
}  // namespace plait::text_training
