// The table against one that torchinfo printed, and the rows against the model and its formulas.
#include "models/vit/summary.h"

#include <gtest/gtest.h>

#include "models/vit/vit.h"

namespace plait::vit {
namespace {

// What torchinfo printed for timm's model of these sizes, with 128 images a batch.
TEST(LayersOf, PrintsAsTorchinfoDoes) {
  EXPECT_EQ(models::TableText(
                LayersOf({}, 128),
                {.depth = 1, .input_bytes = InputBytes({}, 128), .counting = models::Counting::kTorchinfo}),
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
Total mult-adds (G): 58.57
==========================================================================================
Input size (MB): 77.07
Forward/backward pass size (MB): 54465.11
Params size (MB): 1216.20
Estimated Total Size (MB): 55758.38
==========================================================================================)");
}

TEST(LayersOf, HasTheModelsParameters) {
  for (const Pool pool : {Pool::kMean, Pool::kClassToken}) {
    for (const bool bias : {true, false}) {
      const VitOptions options = {.image_size = 12,
                                  .patch_size = 2,
                                  .channels = 2,
                                  .dim = 24,
                                  .depth = 2,
                                  .heads = 3,
                                  .head_dim = 4,
                                  .mlp_dim = 20,
                                  .classes = 7,
                                  .qkv_bias = bias,
                                  .pool = pool};
      EXPECT_EQ(models::TotalsOf(LayersOf(options, 4)).parameters,
                models::CountParameters(Vit(options, at::TensorOptions(at::kMeta)).units()));
    }
  }
}

// A step is three times the forward pass, a mult-add two operations. Biases are no products: one for each output
// of a layer and each token.
TEST(LayersOf, HasTheOperationsOfTheFormula) {
  const VitOptions o;
  const double images = 2, tokens = 196;
  const double biases = images * (tokens * 1024 + 24 * tokens * (1024 + 4096 + 1024) + 1000);
  const auto mult_adds = static_cast<double>(models::TotalsOf(LayersOf(o, 2)).mult_adds);
  EXPECT_EQ(6 * (mult_adds - biases), 2 * FlopsPerImage(o));
}

}  // namespace
}  // namespace plait::vit
