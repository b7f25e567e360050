#include "data/safetensors/model.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/testing/power_loss.h"
#include "data/hdf5/atomic_file.h"
#include "data/safetensors/shard_index.h"
#include "data/safetensors/testing/testing_tensors.h"
#include "data/safetensors/writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plait::data::safetensors {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

class ModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(::testing::TempDir(), "/model_", getpid(), "_",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name());
    ASSERT_TRUE(MakeFolders(folder_).ok());
    for (const int rows : {2, 3, 20, 1, 4}) tensors_.Add(absl::StrCat("w", rows), {DType::kF32, {rows, 2}});
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_))
      files.push_back(entry.path().filename().string());
    return files;
  }

  // Two tensors of 16 and 24 bytes in one shard, 160 bytes alone, then 8 and 32.
  void WriteThree() { ASSERT_TRUE(WriteModel(folder_, tensors_.views(), {.max_shard_bytes = 40}).ok()); }

  void ChangeIndex(const std::string& from, const std::string& to) {
    const std::string text = *ReadWholeFile(Index());
    const std::string changed = absl::StrReplaceAll(text, {{from, to}});
    ASSERT_NE(changed, text);
    std::ofstream(Index(), std::ios::binary) << changed;
  }

  std::string Error(absl::StatusCode code) const {
    const absl::Status status = Model::Open(folder_).status();
    EXPECT_EQ(status.code(), code) << status;
    return absl::StrReplaceAll(status.message(), {{folder_, "F"}});
  }

  void ExpectAllTensors(const Model& model) const {
    EXPECT_EQ(model.Names().size(), tensors_.views().size());
    EXPECT_EQ(model.total_bytes(), 240);
    for (std::size_t i = 0; i < tensors_.views().size(); ++i) {
      const TensorView& expected = tensors_.views()[i];
      std::string bytes(*ByteCount(expected.info), '\0');
      ASSERT_TRUE(model.Has(expected.name));
      const absl::Status read = model.ReadInto(expected.name, expected.info, bytes.data());
      ASSERT_TRUE(read.ok()) << read;
      EXPECT_EQ(bytes, tensors_.Bytes(i)) << expected.name;
    }
  }

  std::string Index() const { return folder_ + "/" + kIndexFile; }
  std::string Shard(int i) const { return folder_ + "/" + ShardName(i, 3); }

  std::string folder_;
  OwnedTensors tensors_;
};

TEST_F(ModelTest, OneFileWhereItFits) {
  ASSERT_TRUE(WriteModel(folder_, tensors_.views(), {.max_shard_bytes = 240}).ok());
  EXPECT_THAT(Files(), ElementsAre("model.safetensors"));
  const auto model = Model::Open(folder_);
  ASSERT_TRUE(model.ok()) << model.status();
  ExpectAllTensors(*model);
  EXPECT_EQ(model->files()[0].metadata(), (Metadata{{"format", "pt"}}));
  EXPECT_FALSE(model->index_total_bytes());
}

TEST_F(ModelTest, ShardsHoldTheirLimit) {
  WriteThree();
  EXPECT_THAT(Files(),
              UnorderedElementsAre("model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                   "model-00003-of-00003.safetensors", "model.safetensors.index.json"));
  for (const std::string& path : {folder_, Index()}) {
    const auto model = Model::Open(path);
    ASSERT_TRUE(model.ok()) << model.status();
    ExpectAllTensors(*model);
    EXPECT_EQ(model->index_total_bytes(), 240);
    ASSERT_EQ(model->files().size(), 3u);
    EXPECT_EQ(model->files()[0].data_bytes(), 40);
    EXPECT_EQ(model->files()[1].data_bytes(), 160) << "larger than the limit: alone";
    EXPECT_EQ(model->files()[2].data_bytes(), 40);
  }
  const auto alone = Model::Open(Shard(1));
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_THAT(alone->Names(), ElementsAre("w20"));
}

TEST_F(ModelTest, IndexAsTransformersWritesIt) {
  WriteThree();
  const auto entry = [](const char* name, int shard) {
    return absl::StrCat("    \"", name, "\": \"model-0000", shard, "-of-00003.safetensors\"");
  };
  EXPECT_EQ(*ReadWholeFile(Index()),
            absl::StrCat("{\n  \"metadata\": {\n    \"total_size\": 240\n  },\n  \"weight_map\": {\n",
                         entry("w1", 3), ",\n", entry("w2", 1), ",\n", entry("w20", 2), ",\n", entry("w3", 1),
                         ",\n", entry("w4", 3), "\n  }\n}\n"));
}

TEST_F(ModelTest, WritingOverAnotherLeavesNoneOfIt) {
  WriteThree();
  std::ofstream(folder_ + "/config.json") << "{}";
  std::ofstream(folder_ + "/model-of-mine.safetensors") << "mine";
  ASSERT_TRUE(WriteModel(folder_, tensors_.views(), {.max_shard_bytes = 1000}).ok());
  EXPECT_THAT(Files(), UnorderedElementsAre("model.safetensors", "config.json", "model-of-mine.safetensors"));
  ExpectAllTensors(*Model::Open(folder_));
  WriteThree();
  EXPECT_EQ(Files().size(), 6u);
  const auto model = Model::Open(folder_);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->files().size(), 3u);
}

TEST_F(ModelTest, BadInputLeavesTheOldModel) {
  WriteThree();
  std::vector<TensorView> twice = tensors_.views();
  twice.push_back(twice.front());
  EXPECT_EQ(WriteModel(folder_, twice, {.max_shard_bytes = 40}).message(),
            absl::StrCat(folder_, ": the name \"w2\" is given twice, expected every name once"));
  EXPECT_EQ(WriteModel(folder_, tensors_.views(), {.max_shard_bytes = 0}).message(),
            absl::StrCat(folder_, ": max_shard_bytes is 0, expected at least 1"));
  // The first shard would fit on the disk, all of them do not.
  std::vector<TensorView> huge = tensors_.views();
  huge.push_back({"huge", {DType::kU8, {std::int64_t{1} << 60}}, tensors_.views()[0].data});
  EXPECT_EQ(WriteModel(folder_, huge, {.max_shard_bytes = 40}).code(), absl::StatusCode::kResourceExhausted);
  ExpectAllTensors(*Model::Open(folder_));
}

// The second shard cannot take its place: a folder stands there.
TEST_F(ModelTest, AnInterruptedWriteIsNoModel) {
  WriteThree();
  fs::remove(Shard(1));
  fs::create_directory(Shard(1));
  EXPECT_FALSE(WriteModel(folder_, tensors_.views(), {.max_shard_bytes = 40}).ok());
  EXPECT_EQ(Error(absl::StatusCode::kNotFound),
            "F: no model, expected model.safetensors or model.safetensors.index.json");
}

// At any moment: the tensors that are described, or an error; behind the write the new ones.
TEST_F(ModelTest, ALossOfPowerLeavesNoNewTensorsBesideAnOldDescription) {
  const auto write = [this](float value, std::int64_t max_shard_bytes) {
    const std::vector<float> values(4, value);
    const TensorInfo info = {DType::kF32, {2}};
    const std::vector<TensorView> views = {{"a", info, &values[0]}, {"b", info, &values[2]}};
    const ModelOptions options = {.max_shard_bytes = max_shard_bytes, .descriptions = {"config.json"}};
    return WriteModel(folder_, views, options).ok() &&
           WriteWholeFile(folder_ + "/config.json", absl::StrCat(value)).ok();
  };
  const auto check = [](const std::string& folder, int written) -> std::string {
    const auto description = ReadWholeFile(folder + "/config.json");
    const auto model = Model::Open(folder);
    if (!description.ok() || !model.ok()) return written == 1 ? "cannot be loaded" : "";
    for (const char* name : {"a", "b"}) {
      float value = 0;
      std::memcpy(&value, model->Find(name)->data, sizeof(value));
      if (absl::StrCat(value) != *description)
        return absl::StrCat(name, " is ", value, ", not ", *description);
    }
    return "";
  };
  int operations = 0, states = 0;
  float value = 1;
  ASSERT_TRUE(write(value, 100));
  for (const std::int64_t max_shard_bytes : {100, 8, 8, 100}) {  // from a file to two, and back
    ++value;
    const auto body = [&](const base::testing::Mark& mark) {
      const bool written = write(value, max_shard_bytes);
      mark(1);
      return written;
    };
    const auto report = base::testing::LosePower(folder_, body, check);
    EXPECT_EQ(report.faults, std::vector<std::string>{});
    operations += report.operations;
    states += report.states;
  }
  EXPECT_GT(states, 20);
  RecordProperty("operations", operations);
  RecordProperty("states", states);
}

TEST_F(ModelTest, MissingShard) {
  WriteThree();
  fs::remove(Shard(1));
  EXPECT_EQ(Error(absl::StatusCode::kNotFound),
            "F/model.safetensors.index.json: shard \"model-00002-of-00003.safetensors\" is missing, expected "
            "3 shards "
            "beside the index");
}

TEST_F(ModelTest, DamagedShard) {
  WriteThree();
  fs::resize_file(Shard(2), fs::file_size(Shard(2)) - 1);
  EXPECT_EQ(Error(absl::StatusCode::kDataLoss),
            "F/model-00003-of-00003.safetensors: 39 bytes of data, expected 40: the file is cut short");
}

TEST_F(ModelTest, NameInIndexButNotInShard) {
  WriteThree();
  ChangeIndex("\"w3\"", "\"w3b\"");
  EXPECT_EQ(
      Error(absl::StatusCode::kDataLoss),
      "F/model.safetensors.index.json: tensor \"w3b\" is not in shard \"model-00001-of-00003.safetensors\", "
      "expected there");
}

TEST_F(ModelTest, NameInShardButNotInIndex) {
  WriteThree();
  ChangeIndex("    \"w3\": \"model-00001-of-00003.safetensors\",\n", "");
  EXPECT_EQ(Error(absl::StatusCode::kDataLoss),
            "F/model.safetensors.index.json: weight_map leaves out tensor \"w3\" of shard "
            "\"model-00001-of-00003.safetensors\", expected all of a shard's tensors");
}

TEST_F(ModelTest, NoModel) {
  EXPECT_EQ(Error(absl::StatusCode::kNotFound),
            "F: no model, expected model.safetensors or model.safetensors.index.json");
  std::ofstream(Index()) << "weights";
  EXPECT_EQ(Error(absl::StatusCode::kDataLoss),
            "F/model.safetensors.index.json: not JSON, expected an object with weight_map");
}

TEST(ShardIndexTest, EachFaultHasItsLine) {
  const auto error = [](const std::string& text) {
    const absl::Status status = ParseShardIndex(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << text;
    return std::string(status.message());
  };
  EXPECT_EQ(error("[]"), "not JSON, expected an object with weight_map");
  EXPECT_EQ(error("{\"weight_map\":{}"), "not JSON, expected an object with weight_map");
  EXPECT_EQ(error("{}"), "no weight_map, expected one with a file for every tensor");
  EXPECT_EQ(error(R"({"weight_map":[]})"), "no weight_map, expected one with a file for every tensor");
  EXPECT_EQ(error(R"({"weight_map":{"a":"x","a":"y"}})"), "duplicate name \"a\"");
  EXPECT_EQ(error(R"({"weight_map":{},"weight_map":{}})"), "duplicate name \"weight_map\"");
  for (const char* file : {"3", "\"\"", "\"../x\"", "\"/etc/passwd\"", "\"..\"", "{}", "\"a\\u0000b\""}) {
    EXPECT_EQ(error(absl::StrCat(R"({"weight_map":{"a":)", file, "}}")),
              "weight_map of \"a\" is not a plain file name, expected a file beside the index");
  }
}

TEST(ShardIndexTest, WhatOthersAddIsSkipped) {
  const auto index = ParseShardIndex(
      R"({"metadata":{"total_size":12,"total_parameters":3,"by":{"a":[1,{"a":2}],"b":0}},"x":[[1],{"y":{}}],
          "weight_map":{"a":"f","b":"f"}})");
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->total_bytes, 12);
  EXPECT_EQ(index->files, (std::map<std::string, std::string>{{"a", "f"}, {"b", "f"}}));
  EXPECT_FALSE(ParseShardIndex(R"({"metadata":{"total_size":1.5e9},"weight_map":{}})")->total_bytes);
}

TEST(ShardIndexTest, DamagedIndicesAreErrorsOrSound) {
  const std::string good =
      R"({"metadata":{"total_size":240},"weight_map":{"w1":"model-00001-of-00002.safetensors","w2":"b"}})";
  ASSERT_TRUE(ParseShardIndex(good).ok());
  base::RandomStream random(base::DeriveSeed(3, "damaged indices"));
  int accepted = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text = good;
    for (std::uint64_t change = 0; change <= random.Below(3); ++change) {
      text[random.Below(text.size())] = "{}[]\",:09-.e\\/u \n\xff"[random.Below(18)];
    }
    const auto index = ParseShardIndex(text);
    if (!index.ok()) continue;
    ++accepted;
    for (const auto& [name, file] : index->files) ASSERT_EQ(file.find('/'), std::string::npos) << text;
  }
  EXPECT_GT(accepted, 500);
  EXPECT_LT(accepted, 45'000);
  std::string deep = "{\"a\":";
  deep.append(1'000'000, '[');
  EXPECT_FALSE(ParseShardIndex(deep).ok());
}

}  // namespace
}  // namespace plait::data::safetensors
