// Files of transformers' processors; tests/export_model compares what they make of an image.
#include "models/vit/preprocessor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plait::vit {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

TEST(Preprocessor, OfPublishedModels) {
  // google/vit-base-patch16-224: all of the image.
  const auto vit =
      PreprocessorFrom(R"({"do_normalize": true, "do_resize": true, "image_mean": [0.5, 0.5, 0.5],
                                        "image_std": [0.5, 0.5, 0.5], "size": 224})",
                       3);
  ASSERT_TRUE(vit.ok()) << vit.status();
  EXPECT_THAT(vit->mean, ElementsAre(0.5, 0.5, 0.5));
  EXPECT_THAT(vit->deviation, ElementsAre(0.5, 0.5, 0.5));
  EXPECT_EQ(vit->centre_fraction, 1);
  EXPECT_TRUE(vit->squeezes);
  EXPECT_EQ(vit->resample, kBilinear);
  // facebook/deit-base-patch16-224: the centre of 256.
  const auto deit =
      PreprocessorFrom(R"({"crop_size": 224, "do_center_crop": true, "do_normalize": true, "do_resize": true,
      "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "resample": 3, "size": 256})",
                       3);
  ASSERT_TRUE(deit.ok()) << deit.status();
  EXPECT_THAT(deit->mean, ElementsAre(0.485, 0.456, 0.406));
  EXPECT_EQ(deit->centre_fraction, 224.0 / 256);
  EXPECT_TRUE(deit->squeezes);
  EXPECT_EQ(deit->resample, 3);
  // The same as transformers writes it again.
  const auto again = PreprocessorFrom(R"({"crop_size": {"height": 224, "width": 224}, "do_center_crop": true,
      "do_normalize": false, "size": {"height": 256, "width": 256}})",
                                      3);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->centre_fraction, 224.0 / 256);
  EXPECT_TRUE(again->squeezes);
  // openai/clip-vit-base-patch32: the shorter side.
  const auto clip =
      PreprocessorFrom(R"({"crop_size": 224, "do_center_crop": true, "do_normalize": false, "do_resize": true,
      "feature_extractor_type": "CLIPFeatureExtractor", "resample": 3, "size": 224})",
                       3);
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_FALSE(clip->squeezes);
  // As transformers' fast processors write ViT's.
  const auto fast = PreprocessorFrom(R"({"crop_size": null, "do_center_crop": null, "do_convert_rgb": null,
      "do_normalize": true, "do_rescale": null, "do_resize": true, "image_mean": [0.5, 0.5, 0.5],
      "image_processor_type": "ViTImageProcessorFast", "image_std": [0.5, 0.5, 0.5], "resample": null,
      "rescale_factor": null, "size": {"height": 224, "shortest_edge": null, "width": 224}})",
                                     3);
  ASSERT_TRUE(fast.ok()) << fast.status();
  EXPECT_EQ(*fast, *vit);
  const auto plain = PreprocessorFrom(R"({"do_normalize": false})", 2);
  EXPECT_THAT(plain->mean, ElementsAre(0, 0));
  EXPECT_THAT(plain->deviation, ElementsAre(1, 1));
}

TEST(Preprocessor, ComesBack) {
  const Preprocessor grey = {.mean = {0.1307}, .deviation = {0.3081}, .centre_fraction = 1};
  EXPECT_EQ(*PreprocessorFrom(PreprocessorText(grey, 28), 1), grey);
  const Preprocessor cut = {.mean = {0.1, 0.2, 0.3}, .deviation = {1, 2, 3}, .centre_fraction = 0.875};
  EXPECT_EQ(*PreprocessorFrom(PreprocessorText(cut, 224), 3), cut);
  for (const double fraction : {1.0, 0.875}) {
    const Preprocessor squeezed = {
        .mean = {0}, .deviation = {1}, .centre_fraction = fraction, .squeezes = true};
    EXPECT_EQ(*PreprocessorFrom(PreprocessorText(squeezed, 224), 1), squeezed);
  }
}

TEST(Preprocessor, WhatDoesNotFit) {
  const auto error = [](const std::string& text) {
    return std::string(PreprocessorFrom(text, 3).status().message());
  };
  EXPECT_EQ(error("[]"), "is not a JSON object");
  EXPECT_EQ(error("{}"), "\"image_mean\" is null; expected a number for each of 3 channels");
  EXPECT_THAT(error(R"({"image_mean": [0, 0]})"), StartsWith("\"image_mean\" is [0,0]; expected"));
  EXPECT_THAT(error(R"({"image_mean": [0, 0, "1"]})"), StartsWith("\"image_mean\""));
  EXPECT_EQ(error(R"({"image_mean": [0, 0, 0], "image_std": [1, 0, 1]})"),
            "\"image_std\" is [1,0,1]; expected a number for each of 3 channels, above 0");
  EXPECT_EQ(error(R"({"do_resize": false})"), "\"do_resize\" is false; expected true");
  EXPECT_THAT(error(R"({"resample": "bicubic"})"), StartsWith("\"resample\" is \"bicubic\"; expected"));
  EXPECT_EQ(error(R"({"do_rescale": false})"), "\"do_rescale\" is false; expected true");
  EXPECT_EQ(error(R"({"do_rescale": "no"})"), "\"do_rescale\" is \"no\"; expected true or false");
  EXPECT_EQ(error(R"({"rescale_factor": 1})"), "\"rescale_factor\" is 1.0; expected 1/255");
  EXPECT_THAT(error(R"({"do_center_crop": true, "size": {"shortest_edge": -1}})"), StartsWith("\"size\" is"));
  EXPECT_THAT(error(R"({"do_center_crop": true, "size": {"height": 256, "width": 128}})"),
              StartsWith("\"size\" is"));
  EXPECT_EQ(error(R"({"do_center_crop": true, "size": 256})"),
            "\"crop_size\" is null; expected a number of pixels");
}

}  // namespace
}  // namespace plait::vit
