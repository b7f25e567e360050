// Plans: what is split, what is rejected, and the resulting placements.
#include "parallel/tensor/parallelize.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "parallel/tensor/testing/numbers.h"

namespace plait::tensor_parallel {
namespace {

using comm::testing::World;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An attention of `heads` heads of width 2 with a fused product, and a feed-forward of width `hidden`.
class Layers final : public SplittableModel {
 public:
  explicit Layers(std::int64_t heads, std::int64_t hidden, bool meta = false) {
    const auto make = [&](const std::string& name, at::IntArrayRef shape) {
      named_[name] = meta ? at::empty(shape, at::TensorOptions(at::kMeta)) : testing::Random(shape, 1);
    };
    make("attn.qkv", {6 * heads, 4});
    make("attn.qkv_bias", {6 * heads});
    make("attn.out", {4, 2 * heads});
    make("attn.out_bias", {4});
    make("up", {hidden, 4});
    make("down", {4, hidden});
    make("norm", {4});
  }

  std::vector<SplitGroup> SplitGroups(int /*ranks*/) override {
    return {{.name = "attn",
             .layers = {{.name = "attn.qkv",
                         .split = Split::kColumns,
                         .weight = named_["attn.qkv"],
                         .bias = named_["attn.qkv_bias"],
                         .sections = 3,
                         .granularity = 2},
                        {.name = "attn.out",
                         .split = Split::kRows,
                         .weight = named_["attn.out"],
                         .bias = named_["attn.out_bias"],
                         .granularity = 2}},
             .equal_parts = true,
             .use = [this](const TensorAxis&) { used_.push_back("attn"); }},
            {.name = "mlp",
             .layers = {{.name = "mlp.up", .split = Split::kColumns, .weight = named_["up"]},
                        {.name = "mlp.down", .split = Split::kRows, .weight = named_["down"]}},
             .use = [this](const TensorAxis&) { used_.push_back("mlp"); }}};
  }
  void UseTensorAxis(const TensorAxis&) override { used_.push_back("model"); }
  std::vector<models::ParameterUnit> units() const override {
    models::ParameterUnit unit = {.name = "root", .parameters = {}};
    for (const auto& [name, tensor] : named_) {
      const auto found = placements_.find(name);
      unit.parameters.push_back(
          {.name = name,
           .tensor = tensor,
           .placement = found == placements_.end() ? models::Placement() : found->second});
    }
    return {unit};
  }
  void SetPlacement(const at::Tensor& parameter, models::Placement placement) override {
    for (const auto& [name, tensor] : named_) {
      if (tensor.is_same(parameter)) placements_[name] = placement;
    }
  }

  const at::Tensor& operator[](const std::string& name) { return named_[name]; }
  const models::Placement& placement(const std::string& name) { return placements_[name]; }
  const std::vector<std::string>& used() const { return used_; }

 private:
  std::map<std::string, at::Tensor> named_;
  std::map<std::string, models::Placement> placements_;
  std::vector<std::string> used_;
};

comm::DeviceMesh Mesh() { return *comm::DeviceMesh::Create(World(), {{"tp", World().size()}}); }

std::string ErrorOf(Layers& layers, const Plan& plan, const TensorAxisOptions& options = {}) {
  const absl::Status status = Parallelize(layers, Mesh(), plan, options);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(layers.used().empty()) << "something was changed";
  EXPECT_EQ(layers["up"].size(0), 5);
  return std::string(status.message());
}

TEST(Parallelize, CutsEveryLayerAndPlacesEveryParameter) {
  const int n = World().size(), r = World().rank();
  Layers whole(2 * n, 5), layers(2 * n, 5);
  ASSERT_TRUE(Parallelize(layers, Mesh(), DefaultPlan(layers, n)).ok());
  if (n == 1) {
    EXPECT_TRUE(layers.used().empty());
    return;
  }
  EXPECT_THAT(layers.used(), ElementsAre("attn", "mlp", "model"));
  // Two heads of width 2 of queries, of keys and of values.
  const at::Tensor sections = whole["attn.qkv"].view({3, 4 * n, 4}).narrow(1, 4 * r, 4).reshape({12, 4});
  EXPECT_TRUE(layers["attn.qkv"].equal(sections));
  EXPECT_EQ(layers["attn.qkv_bias"].size(0), 12);
  EXPECT_TRUE(layers["attn.out"].equal(whole["attn.out"].narrow(1, 4 * r, 4)));
  EXPECT_TRUE(layers["attn.out_bias"].equal(whole["attn.out_bias"]));
  const Range up = PartOf(5, r, n);
  EXPECT_TRUE(layers["up"].equal(whole["up"].narrow(0, up.begin, up.size())));
  EXPECT_TRUE(layers["down"].equal(whole["down"].narrow(1, up.begin, up.size())));
  EXPECT_EQ(layers.placement("attn.qkv").boxes.size(), 3u);
  EXPECT_THAT(layers.placement("attn.qkv").shape, ElementsAre(12 * n, 4));
  for (const char* name : {"attn.out_bias", "norm"}) {
    EXPECT_THAT(layers.placement(name).replicated, ElementsAre("tp")) << name;
    EXPECT_TRUE(layers.placement(name).partial.empty()) << name;
  }
}

TEST(Parallelize, UnderSequenceParallelismGradientsOfRowsArePartial) {
  if (World().size() == 1) return;
  Layers layers(2 * World().size(), 5);
  ASSERT_TRUE(
      Parallelize(layers, Mesh(), DefaultPlan(layers, World().size()), {.sequence_parallel = true}).ok());
  for (const char* name : {"attn.out_bias", "norm"}) {
    EXPECT_THAT(layers.placement(name).partial, ElementsAre("tp")) << name;
    EXPECT_TRUE(layers.placement(name).replicated.empty()) << name;
  }
}

TEST(Parallelize, NeedsNoMemory) {
  if (World().size() == 1) return;
  Layers layers(2 * World().size(), 5, /*meta=*/true);
  ASSERT_TRUE(Parallelize(layers, Mesh(), DefaultPlan(layers, World().size())).ok());
  EXPECT_TRUE(layers["attn.qkv"].is_meta());
  EXPECT_EQ(layers["attn.qkv"].size(0), 12);
}

TEST(Parallelize, RefusesPlansThatDoNotFit) {
  const int n = World().size();
  Layers layers(2 * n, 5);
  EXPECT_THAT(ErrorOf(layers, {{"mlp.upp", Split::kColumns}}),
              AllOf(HasSubstr("\"mlp.upp\""), HasSubstr("the nearest is mlp.up")));
  EXPECT_THAT(ErrorOf(layers, {{"mlp.*", Split::kColumns}}),
              AllOf(HasSubstr("mlp.down"), HasSubstr("can be split by rows")));
  EXPECT_THAT(ErrorOf(layers, {{"mlp.up", Split::kColumns}}),
              AllOf(HasSubstr("mlp.up"), HasSubstr("mlp.down"), HasSubstr("together or not at all")));
  if (n == 1) return;
  EXPECT_THAT(
      ErrorOf(layers, {{"mlp.up", Split::kColumns}, {"mlp.down", Split::kRows}}, {.sequence_parallel = true}),
      AllOf(HasSubstr("attn"), HasSubstr("every group")));
  Layers odd(2 * n + 1, 5);
  EXPECT_THAT(ErrorOf(odd, DefaultPlan(odd, n)),
              AllOf(HasSubstr("attn.qkv"), HasSubstr(std::to_string(2 * n + 1) + " heads for")));
}

TEST(Parallelize, RefusesFewerColumnsThanRanks) {
  if (World().size() == 1) return;
  Layers layers(World().size(), 1);
  const absl::Status status = Parallelize(layers, Mesh(), DefaultPlan(layers, World().size()));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("mlp.up"), HasSubstr("at least one each")));
}

TEST(Parallelize, NamesTheRankWithAnotherPlan) {
  if (World().size() == 1) return;
  Layers layers(2 * World().size(), 5);
  Plan plan = DefaultPlan(layers, World().size());
  if (World().rank() == 1) plan.resize(2);
  EXPECT_THAT(ErrorOf(layers, plan), AllOf(HasSubstr("the plan of rank 1 is"), HasSubstr("that of rank 0")));
}

}  // namespace
}  // namespace plait::tensor_parallel
