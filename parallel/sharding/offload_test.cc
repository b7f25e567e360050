// Offloaded masters and parameters: training is bitwise identical to training in memory; bytes held; errors of the
// store.
#include <ATen/ops/equal.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <torch/csrc/autograd/autograd.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <limits>

#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"
#include "parallel/sharding/testing_model.h"

namespace plait::parallel {
namespace {

namespace fs = std::filesystem;
using comm::testing::World;

constexpr int kSteps = 4;

struct Setting {
  Strategy strategy;
  int replicas, shards;
  at::ScalarType compute_type = at::kFloat;
  bool reshard = true, prefetch = true;
  int passes = 1;
};

std::string TextOf(const Setting& s) {
  return std::string(Name(s.strategy)) + " " + std::to_string(s.replicas) + "x" + std::to_string(s.shards) +
         " " + toString(s.compute_type) + (s.reshard ? "" : " keeps") + (s.prefetch ? "" : " no prefetch") +
         " passes " + std::to_string(s.passes);
}

comm::DeviceMesh MeshOf(const Setting& s) {
  return *comm::DeviceMesh::Create(World(), {{"dp_replicate", s.replicas}, {"dp_shard", s.shards}});
}

StateStoreOptions InFile(const std::string& folder = ::testing::TempDir()) {
  return {.target = OffloadTarget::kFile, .folder = folder};
}

absl::StatusOr<std::unique_ptr<DataParallel>> Engine(TestingModel& model, const Setting& s,
                                                     const StateStoreOptions& masters, bool parameters) {
  return DataParallel::Create(
      MeshOf(s), model.units,
      {.strategy = s.strategy,
       .reshard_after_forward = s.reshard,
       .prefetch = s.prefetch,
       .compute_type = s.compute_type,
       .part_bytes = TestingModel::kWidth * TestingModel::kWidth * 4,  // the embedding, not the scale
       .masters_offload = masters,
       .offloads_parameters = parameters},
      [&model](std::size_t unit) { model.Initialize(unit); });
}

// A model with its engine and optimizer; everything in memory, or masters (and parameters) in `masters`.
struct Program {
  Program(const Setting& s, const StateStoreOptions& masters, bool parameters,
          const StateStoreOptions& moments = {})
      : setting(s), model(at::kFloat), dp(*Engine(model, s, masters, parameters)) {
    model.run = [this](std::size_t block, const models::BlockForward& forward, const models::BlockState& x) {
      return dp->Run(block, forward, x);
    };
    optimizer = *ShardedOptimizer::Create(*dp, {.lr = 0.02, .weight_decay = 0.1}, moments);
  }
  ~Program() { dp->WaitForParameters(); }

  // As a pipeline's executor does it.
  void BeginStage(std::ptrdiff_t following) const {
    if (staged) dp->BeginStage({.first = 0, .count = TestingModel::kBlocks, .following = following});
  }

  at::Tensor Loss(std::uint64_t seed) {
    const at::Tensor x = TestNumbers({3, TestingModel::kWidth}, seed, setting.compute_type);
    const at::Tensor y = TestNumbers({3, TestingModel::kWidth}, seed + 1, setting.compute_type);
    return dp->Forward([&] { return model.Loss(x, y) / static_cast<double>(World().size()); });
  }
  double Backward(int step) {
    double loss = 0;
    for (int pass = 0; pass < setting.passes; ++pass) {
      BeginStage(TestingModel::kBlocks - 1);
      const at::Tensor part = Loss(1000 * World().rank() + 10 * step + 5 * pass);
      BeginStage(pass + 1 == setting.passes ? -1 : 0);
      dp->Backward(part, {.last = pass + 1 == setting.passes, .reduce_every_micro_batch = false});
      loss += part.item<double>();
    }
    return loss;
  }
  double Evaluate() {
    const at::NoGradGuard no_grad;
    return Loss(99).item<double>();
  }
  std::vector<at::Tensor> Parameters() {
    std::vector<at::Tensor> all;
    dp->VisitUnsharded([&](const models::ParameterUnit& unit) {
      for (const models::ParameterSpec& p : unit.parameters) all.push_back(p.tensor.detach().clone());
    });
    return all;
  }
  std::vector<at::Tensor> Masters() {
    std::vector<at::Tensor> all;
    for (std::size_t shard = 0; shard < dp->shards().size(); ++shard) {
      const absl::Status status = dp->VisitMaster(shard, /*changes=*/false, [&](const at::Tensor& master) {
        all.push_back(master.clone());
        return absl::OkStatus();
      });
      EXPECT_TRUE(status.ok()) << status;
    }
    return all;
  }

  Setting setting;
  bool staged = false;
  TestingModel model;
  std::unique_ptr<DataParallel> dp;
  std::unique_ptr<ShardedOptimizer> optimizer;
};

void ExpectEqual(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].equal(b[i])) << what << " " << i;
}

void ExpectSameBits(const Setting& s, const StateStoreOptions& masters, bool parameters) {
  SCOPED_TRACE(TextOf(s) + " masters in " + std::string(Name(masters.target)) +
               (parameters ? ", parameters offloaded" : ""));
  Program memory(s, {}, false), offloaded(s, masters, parameters, masters);
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_EQ(offloaded.Backward(step), memory.Backward(step)) << "step " << step;
    const StepResult expected = memory.optimizer->Step({.clip_norm = 0.5});
    const StepResult result = offloaded.optimizer->Step({.clip_norm = 0.5});
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.gradient_norm, expected.gradient_norm);
    if (step % 2 == 1) {
      EXPECT_EQ(offloaded.Evaluate(), memory.Evaluate());
    }
  }
  ExpectEqual(offloaded.Parameters(), memory.Parameters(), "parameter");
  ExpectEqual(offloaded.Masters(), memory.Masters(), "master of shard");
  EXPECT_TRUE(offloaded.dp->status().ok()) << offloaded.dp->status();
}

std::vector<Setting> Settings(at::ScalarType compute_type) {
  const int n = World().size();
  std::vector<Setting> settings = {{Strategy::kFsdp, 1, n, compute_type},
                                   {Strategy::kFsdp, 1, n, compute_type, false, false},
                                   {Strategy::kFsdp, 1, n, compute_type, true, false, 2},
                                   {Strategy::kFsdp, 1, n, compute_type, false, true, 2}};
  if (n % 2 == 0) settings.push_back({Strategy::kFsdp, 2, n / 2, compute_type});
  return settings;
}

TEST(OffloadTest, ParametersInAFileGiveTheSameBits) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const Setting& s : Settings(type)) ExpectSameBits(s, InFile(), /*parameters=*/true);
  }
  ExpectSameBits(Settings(at::kFloat)[0], {.target = OffloadTarget::kHost}, /*parameters=*/true);
}

TEST(OffloadTest, MastersInAFileGiveTheSameBits) {
  const int n = World().size();
  for (const Setting& s : Settings(at::kBFloat16)) ExpectSameBits(s, InFile(), /*parameters=*/false);
  for (const Strategy strategy : {Strategy::kZero1, Strategy::kZero2}) {
    ExpectSameBits({strategy, 1, n, at::kBFloat16}, InFile(), false);
    ExpectSameBits({strategy, 1, n, at::kBFloat16, true, true, 2}, {.target = OffloadTarget::kHost}, false);
  }
  ExpectSameBits({Strategy::kDdp, n, 1, at::kBFloat16}, InFile(), false);
  ExpectSameBits({Strategy::kDdp, n, 1, at::kFloat}, InFile(), false);  // masters are the parameters
}

// A skipped step changes neither masters nor parameters.
TEST(OffloadTest, AnOverflowChangesNothing) {
  Program program(Settings(at::kBFloat16)[0], InFile(), true, InFile());
  const std::vector<at::Tensor> before = program.Masters(), parameters = program.Parameters();
  program.dp->Backward(program.Loss(7) * std::numeric_limits<double>::infinity());
  EXPECT_TRUE(program.optimizer->Step({.loss_scale = 2}).skipped);
  ExpectEqual(program.Masters(), before, "master of shard");
  ExpectEqual(program.Parameters(), parameters, "parameter");
}

// Two buffers of the largest shard for all masters; without prefetch one unsharded block, and the root units.
TEST(OffloadTest, ParametersInAFileTakeTwoBuffers) {
  const Setting s = {Strategy::kFsdp, 1, World().size(), at::kFloat, true, false};
  Program program(s, InFile(), true, InFile());
  program.Backward(0);
  EXPECT_TRUE(program.optimizer->Step().status.ok());
  std::int64_t shares = 0, roots = 0, block = 0;
  for (const Shard& shard : program.dp->shards()) {
    EXPECT_FALSE(shard.master.defined());
    shares += shard.layout->shard_count() * 4;
    const bool is_block =
        !shard.layout->parameters().empty() && shard.layout->parameters()[0].name.rfind("block.", 0) == 0;
    (is_block ? block : roots) += (is_block && block > 0) ? 0 : shard.layout->count() * 4;
  }
  // All shards here are smaller than a block of the file. Gradients: sharded, and unsharded ones while they are used.
  const std::int64_t buffers = 2 * kStateBlockBytes, whole_gradients = World().size() > 1 ? roots + block : 0;
  const std::int64_t kept_gradients = World().size() > 1 ? shares : roots + TestingModel::kBlocks * block;
  EXPECT_LE(program.dp->peak_bytes(), buffers + roots + block + kept_gradients + whole_gradients);
  EXPECT_GE(program.dp->peak_bytes(), buffers + roots + block + kept_gradients);
}

// Forward, backward and step prefetch each shard before it is needed: only the very first read is unexpected.
TEST(OffloadTest, EveryReadBeginsBeforeItIsWanted) {
  const int n = World().size();
  std::vector<Setting> settings = {{Strategy::kZero1, 1, n, at::kBFloat16}};
  for (const bool reshard : {true, false}) {
    for (const bool prefetch : {true, false}) {
      settings.push_back({Strategy::kFsdp, 1, n, at::kFloat, reshard, prefetch});
    }
  }
  for (const Setting& s : settings) {
    for (const bool staged : {false, true}) {
      SCOPED_TRACE(TextOf(s) + (staged ? " staged" : ""));
      Program program(s, InFile(), /*parameters=*/s.strategy == Strategy::kFsdp, InFile());
      program.staged = staged;
      const std::int64_t before = program.dp->unexpected_reads();
      for (int step = 0; step < 3; ++step) {
        program.Backward(step);
        EXPECT_TRUE(program.optimizer->Step().status.ok());
      }
      EXPECT_LE(program.dp->unexpected_reads() - before, 1);
    }
  }
}

absl::Status CreationOf(const Setting& s, const StateStoreOptions& masters, bool parameters) {
  TestingModel model(at::kFloat);
  return Engine(model, s, masters, parameters).status();
}

TEST(OffloadTest, BadInputIsToldOnAllRanks) {
  const int n = World().size();
  const bool last = World().rank() == n - 1;
  const Setting fsdp = {Strategy::kFsdp, 1, n};
  EXPECT_EQ(CreationOf(fsdp, InFile(last ? "/no/such/folder" : ::testing::TempDir()), true).message(),
            "cannot keep parameters in /no/such/folder: No such file or directory; name a folder that exists "
            "and takes files");
  EXPECT_EQ(
      CreationOf({Strategy::kZero2, 1, n, at::kBFloat16}, InFile(last ? "/dev/null" : "/tmp"), false)
          .message(),
      "cannot keep master parameters in /dev/null: Not a directory; name a folder that exists and takes "
      "files");
  EXPECT_EQ(
      CreationOf({Strategy::kZero2, 1, n}, InFile(), true).message(),
      "strategy zero2 keeps parameters unsharded in memory, they cannot be offloaded; choose fsdp (zero3)");
  EXPECT_EQ(
      CreationOf(fsdp, {}, true).message(),
      "parameters are to be offloaded, but their masters are to stay in memory; name the host or a file "
      "for the masters");
  if (n == 1) return;
  const absl::Status differ = CreationOf(fsdp, InFile(), /*parameters=*/!last);
  EXPECT_NE(differ.message().find("give all ranks the same flags"), absl::string_view::npos) << differ;
}

// Limits the size of this rank's files, which simulates a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_ = {};
};

TEST(OffloadTest, OneRanksFullDiskIsToldOnAllRanks) {
  absl::Status status;
  {
    const FileSizeLimit limit(World().rank() == World().size() - 1 ? 4096 : RLIM_INFINITY);
    status = CreationOf({Strategy::kFsdp, 1, World().size()}, InFile(), true);
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(status.message()).find("parameters: 0.000 GB are needed in "), 0u) << status;
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
}

// Truncates every state file of this process; they are unlinked.
void CutStateFiles() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (fs::read_symlink(entry.path(), error).string().find("plait-state-") != std::string::npos) {
      files.push_back(entry.path());
    }
  }
  EXPECT_FALSE(files.empty());
  for (const fs::path& path : files) {
    const int file = open(path.c_str(), O_RDWR);
    EXPECT_EQ(ftruncate(file, 0), 0);
    close(file);
  }
}

// Collectives continue, the loss is NaN, and the step is skipped with the same error on all ranks.
TEST(OffloadTest, AReadThatFailsOnOneRankEndsTheStepOnAll) {
  Program program({Strategy::kFsdp, 1, World().size()}, InFile(), true);
  program.Backward(0);
  EXPECT_TRUE(program.optimizer->Step().status.ok());
  if (World().rank() == World().size() - 1) CutStateFiles();
  EXPECT_TRUE(std::isnan(program.Backward(1)));
  const absl::Status status = program.optimizer->Step({.clip_norm = 1, .loss_scale = 2}).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(std::string(status.message()).find("parameters in " + ::testing::TempDir()), 0u) << status;
  EXPECT_EQ(program.optimizer->steps(), 1);
}

}  // namespace
}  // namespace plait::parallel
