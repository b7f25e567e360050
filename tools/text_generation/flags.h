// The settings of generate.
#ifndef PLAIT_TOOLS_TEXT_GENERATION_FLAGS_H_
#define PLAIT_TOOLS_TEXT_GENERATION_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/sampling/sampler.h"

namespace plait::text_generation {

struct Request {
  std::string checkpoint = "";  // of train_gpt or train_llama
  std::string model = "";       // directory in Hugging Face's layout
  std::string bpe_folder = "";  // empty: the model's
  std::string prompt = "\n";
  std::string prompts_file = "";        // empty: `prompt` alone
  std::vector<std::string> stops = {};  // a sample ends before the first of them
  bool ignore_end_of_text = false;      // else a sample ends there, without its text
  std::int64_t max_new_tokens = 500;
  int num_samples = 1;
  int batch_size = 8;  // samples that are drawn together
  std::string dtype = "float32";
  sampling::SamplingOptions sampling = {.temperature = 0.8, .top_k = 200, .top_p = 1, .seed = 1337};
};

// For main: parses the command line, as base::ParseFlagsOrExit does. InvalidArgument, one line with the flag's
// name. Paths are absolute. --stop is a list with escapes as in C: "\n\n,User:", "\x2c" for a comma.
absl::StatusOr<Request> ReadRequest(int argc, char** argv);

}  // namespace plait::text_generation

#endif  // PLAIT_TOOLS_TEXT_GENERATION_FLAGS_H_
