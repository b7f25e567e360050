// Generates text from a trained GPT or Llama: tools/text_generation/README.md.
#include <ATen/Parallel.h>

#include <cstdio>
#include <string>

#include "base/process_exit.h"
#include "base/status_macros.h"
#include "comm/interrupt.h"
#include "tools/text_generation/flags.h"
#include "tools/text_generation/samples.h"
#include "tools/text_generation/saved_text_model.h"

namespace plait::text_generation {
namespace {

constexpr int kUsageError = 2;

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "generate: %s\n", std::string(status.message()).c_str());
  return code;
}

c10::ScalarType TypeOf(const Request& request) {
  if (request.dtype == "float64") return c10::ScalarType::Double;
  return request.dtype == "bfloat16" ? c10::ScalarType::BFloat16 : c10::ScalarType::Float;
}

absl::StatusOr<SavedTextModel> Load(const Request& request) {
  if (!request.model.empty()) return LoadHuggingFace(request.model, request.bpe_folder, TypeOf(request));
  return LoadCheckpoint(request.checkpoint, request.bpe_folder, TypeOf(request));
}

absl::Status Generate(const Request& request) {
  at::set_num_threads(1);
  PLAIT_ASSIGN_OR_RETURN(SavedTextModel saved, Load(request));
  std::printf("model: %s\n", saved.source.c_str());
  return WriteSamples(request, saved, [](absl::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  });
}

int Main(int argc, char** argv) {
  const absl::StatusOr<Request> request = ReadRequest(argc, argv);
  if (!request.ok()) return Fail(request.status(), kUsageError);
  const comm::InterruptHandler interrupt;
  const absl::Status status = Generate(*request);
  return status.ok() ? 0 : Fail(status, 1);
}

}  // namespace
}  // namespace plait::text_generation

int main(int argc, char** argv) {
  return plait::base::RunTool("generate", [&] { return plait::text_generation::Main(argc, argv); });
}
