// The table against one that torchinfo printed, and its parts against sums.
#include "models/summary/model_table.h"

#include <gtest/gtest.h>

#include <string>

namespace plait::models {
namespace {

constexpr std::int64_t kBatch = 128, kTokens = 196, kWidth = 1024;

Layer NormLayer(std::vector<std::int64_t> shape) {
  return {.type = "LayerNorm", .output_shape = std::move(shape), .parameters = 2 * kWidth};
}

Layer Plain(const std::string& type, std::vector<std::int64_t> shape) {
  return {.type = type, .output_shape = std::move(shape)};
}

// Vision transformer, 224 x 224 pixels, patches of 16, depth 24, 16 heads of 64.
Layer VisionTransformer(std::int64_t positions) {
  const std::vector<std::int64_t> shape = {kBatch, kTokens, kWidth};
  const auto linear = [](std::int64_t inputs, std::int64_t outputs, bool bias) {
    return LinearLayer({kBatch, kTokens, outputs}, inputs, bias);
  };
  Layer block = Plain("Block", shape);
  block.repeat = 24;
  block.children = {NormLayer(shape), linear(kWidth, 3 * kWidth, false), linear(kWidth, kWidth, true),
                    NormLayer(shape), linear(kWidth, 4 * kWidth, true),  linear(4 * kWidth, kWidth, true)};
  Layer blocks = Plain("Sequential", shape);
  blocks.children = {block};
  Layer patches = Plain("PatchEmbed", shape);
  patches.children = {linear(768, kWidth, true)};
  Layer root = Plain("VisionTransformer", {kBatch, 1000});
  root.parameters = positions;
  root.children = {patches,
                   Plain("Dropout", shape),
                   Plain("Identity", shape),
                   Plain("Identity", shape),
                   blocks,
                   Plain("Identity", shape),
                   NormLayer({kBatch, kWidth}),
                   Plain("Dropout", {kBatch, kWidth}),
                   LinearLayer({kBatch, 1000}, kWidth, true)};
  return root;
}

// What torchinfo prints for it, except for two lines where it is wrong: mult-adds, where it counts a linear layer's
// weights once per sample, and bytes of parameters, where it omits the root's own. models/vit/summary_test.cc has the
// table with torchinfo's counting.
TEST(ModelTable, IsThatOfTorchinfo) {
  EXPECT_EQ(
      TableText(VisionTransformer(kTokens * kWidth), {.depth = 1, .input_bytes = kBatch * 3 * 224 * 224 * 4}),
      R"(==========================================================================================
Layer (type:depth-idx)                   Output Shape              Param #
==========================================================================================
VisionTransformer                        [128, 1000]               200,704
├─PatchEmbed: 1-1                        [128, 196, 1024]          787,456
├─Dropout: 1-2                           [128, 196, 1024]          --
├─Identity: 1-3                          [128, 196, 1024]          --
├─Identity: 1-4                          [128, 196, 1024]          --
├─Sequential: 1-5                        [128, 196, 1024]          302,235,648
├─Identity: 1-6                          [128, 196, 1024]          --
├─LayerNorm: 1-7                         [128, 1024]               2,048
├─Dropout: 1-8                           [128, 1024]               --
├─Linear: 1-9                            [128, 1000]               1,025,000
==========================================================================================
Total params: 304,250,856
Trainable params: 304,250,856
Non-trainable params: 0
Total mult-adds (T): 7.60
==========================================================================================
Input size (MB): 77.07
Forward/backward pass size (MB): 54465.11
Params size (MB): 1217.00
Estimated Total Size (MB): 55759.18
==========================================================================================)");
}

TEST(ModelTable, MemoryIsThatOfTorchinfo) {
  const TableOptions options = {.input_bytes = kBatch * 3 * 224 * 224 * 4};
  EXPECT_EQ((TotalBytes(VisionTransformer(0), options) + 5000) / 10000, 5575838);
}

TEST(ModelTable, HalvesWithTheElements) {
  const Layer root = VisionTransformer(0);
  EXPECT_EQ(2 * TotalBytes(root, {.element_bytes = 2}), TotalBytes(root, {.element_bytes = 4}));
}

// 6 products a token and block, and 128 x 196 tokens: written out.
TEST(ModelTable, CountsProductsForEveryRow) {
  const std::int64_t weights = 3 * 1024 * 1024 + 1024 * 1025 + 4096 * 1025 + 1024 * 4097;
  EXPECT_EQ(TotalsOf(VisionTransformer(0)).mult_adds,
            24 * weights * kBatch * kTokens + 1024 * 769 * kBatch * kTokens + 1000 * 1025 * kBatch);
}

Layer Repeated(std::int64_t repeat) {
  Layer block = Plain("Block", {2, 3});
  block.repeat = repeat;
  block.children = {LinearLayer({2, 3}, 3, false), LinearLayer({2, 3}, 3, false)};
  Layer tail = LinearLayer({2, 5}, 3, false);
  tail.shared = true;
  Layer row = Plain("ModuleList", {});
  row.children = {block, LinearLayer({2, 3}, 3, true)};
  Layer root = Plain("Net", {2, 5});
  root.children = {row, tail};
  return root;
}

std::string Body(const std::string& table) {
  const std::string line = std::string(90, '=') + "\n";
  const std::size_t first = table.find("Net"), last = table.find(line, first);
  return table.substr(first, last - first);
}

TEST(ModelTable, FoldsRepeatedLayersAndKeepsTheirNumbers) {
  EXPECT_EQ(Body(TableText(Repeated(4), {})),
            R"(Net                                      [2, 5]                    --
├─ModuleList: 1-1                        --                        --
│    └─Block: 2-1                        [2, 3]                    --
│    │    └─Linear: 3-1                  [2, 3]                    9
│    │    └─Linear: 3-2                  [2, 3]                    9
│    └─Block: 2-2 to 2-4 (each)          [2, 3]                    18
│    └─Linear: 2-5                       [2, 3]                    12
├─Linear: 1-2                            [2, 5]                    (shared)
)");
  EXPECT_EQ(Body(TableText(Repeated(2), {.depth = 2})),
            R"(Net                                      [2, 5]                    --
├─ModuleList: 1-1                        --                        --
│    └─Block: 2-1                        [2, 3]                    18
│    └─Block: 2-2                        [2, 3]                    18
│    └─Linear: 2-3                       [2, 3]                    12
├─Linear: 1-2                            [2, 5]                    (shared)
)");
}

TEST(ModelTable, CountsSharedParametersOnceAndTheirWorkTwice) {
  const Totals totals = TotalsOf(Repeated(4));
  EXPECT_EQ(totals.parameters, 4 * 18 + 12);
  EXPECT_EQ(totals.mult_adds, 2 * (4 * 18 + 12) + 2 * 15);
  EXPECT_EQ(totals.outputs, 4 * 2 * 6 + 6 + 10);
}

}  // namespace
}  // namespace plait::models
