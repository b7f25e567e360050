// Layers in the format in which PyTorch prints them, for Description() of models.
//
//   LinearText(8, 4, true)   // "Linear(in_features=8, out_features=4, bias=True)"
#ifndef PLAIT_MODELS_LAYER_TEXT_H_
#define PLAIT_MODELS_LAYER_TEXT_H_

#include <cstdint>
#include <string>

namespace plait::models {

std::string LinearText(std::int64_t in, std::int64_t out, bool bias);
std::string EmbeddingText(std::int64_t count, std::int64_t width);
std::string DropoutText(double p);
// The prefix of `count` identical entries of a ModuleList: "(0): ", "(0-11): 12 x ".
std::string RepeatText(std::int64_t count, std::int64_t first = 0);

}  // namespace plait::models

#endif  // PLAIT_MODELS_LAYER_TEXT_H_
