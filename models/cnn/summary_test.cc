// The table of the MNIST network as torchinfo prints it.
#include "models/cnn/summary.h"

#include <gtest/gtest.h>

namespace plait::cnn {
namespace {

TEST(LayersOf, PrintsAsTorchinfoDoes) {
  EXPECT_EQ(models::TableText(LayersOf({}, 64), {.input_bytes = 64 * 28 * 28 * 4}),
            R"(==========================================================================================
Layer (type:depth-idx)                   Output Shape              Param #
==========================================================================================
Net                                      [64, 10]                  --
├─Conv2d: 1-1                            [64, 32, 26, 26]          320
├─Conv2d: 1-2                            [64, 64, 24, 24]          18,496
├─Dropout: 1-3                           [64, 64, 12, 12]          --
├─Linear: 1-4                            [64, 128]                 1,179,776
├─Dropout: 1-5                           [64, 128]                 --
├─Linear: 1-6                            [64, 10]                  1,290
==========================================================================================
Total params: 1,199,882
Trainable params: 1,199,882
Non-trainable params: 0
Total mult-adds (M): 771.27
==========================================================================================
Input size (MB): 0.20
Forward/backward pass size (MB): 30.02
Params size (MB): 4.80
Estimated Total Size (MB): 35.02
==========================================================================================)");
}

TEST(LayersOf, FollowsTheOptions) {
  const CnnOptions options = {
      .rows = 9, .columns = 12, .conv1_channels = 3, .conv2_channels = 4, .hidden = 5, .classes = 6};
  std::int64_t parameters = 0;
  for (const at::Tensor& parameter : Cnn(options, at::TensorOptions(at::kMeta)).parameters()) {
    parameters += parameter.numel();
  }
  EXPECT_EQ(models::TotalsOf(LayersOf(options, 2)).parameters, parameters);
}

}  // namespace
}  // namespace plait::cnn
