// Tokenizes a corpus of any size into token files: data/text/README.md.
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/flags.h"
#include "base/path.h"
#include "base/process_exit.h"
#include "base/processors.h"
#include "base/progress.h"
#include "base/quantity.h"
#include "base/terminal.h"
#include "comm/interrupt.h"
#include "data/text/prepare_tokens.h"

namespace plait {
namespace {

constexpr int kUsageError = 2;

base::ToolUsage UsageOf(std::vector<base::BoundFlag>& flags) {
  return {.name = "prepare_text",
          .summary =
              "Tokenizes a corpus of any size into files that train_gpt and train_llama map into memory: "
              "text files, "
              "JSON lines, or folders of both.",
          .examples =
              {"prepare_text --data=corpus --bpe-folder=gpt2 --out=tokens",
               "zcat part-*.json.gz | prepare_text --data=- --bpe-folder=gpt2 --out=tokens",
               "prepare_text --data=pairs.jsonl --prompt-key=question --text-key=answer --bpe-folder=gpt2 "
               "--out=tokens",
               "prepare_text --data=corpus --bpe-folder=llama-2-7b --out=tokens"},
          .groups = {{"Input", {"data", "text_key", "prompt_key", "bpe_folder"}},
                     {"Output", {"out", "validation_share", "threads"}}},
          .bound = &flags};
}

std::string PartText(const data::PreparedTokens::Part& part) {
  return absl::StrCat(base::FormatCount(part.tokens), " tokens in ", base::FormatCount(part.documents),
                      part.documents == 1 ? " document" : " documents");
}

void Report(const data::PreparedTokens& made, const std::string& out) {
  std::cout << "vocab size: " << base::FormatCount(made.vocabulary_size) << "\n"
            << "train has " << PartText(made.train) << "\nval has " << PartText(made.validation) << "\n";
  if (made.empty_documents > 0) {
    std::cout << base::FormatCount(made.empty_documents) << " empty documents left out\n";
  }
  if (!made.has_end_of_text) {
    std::cout
        << "the vocabulary has no token for the end of a text: documents follow each other without a mark\n";
  }
  std::cout << "written to " << out << "; train_gpt or train_llama --data=" << out << " trains on it\n";
}

int Main(int argc, char** argv) {
  data::TokenOptions options;
  std::vector<base::BoundFlag> flags = {
      {"data", &options.input,
       "file or directory of .txt (a document each), .jsonl and .json files (a document a line), or -: JSON "
       "lines from standard input"},
      {"text_key", &options.documents.text_key, "key of the text in JSON objects"},
      {"prompt_key", &options.documents.prompt_key,
       "key of a prompt before the text, which --ignore-targets=prompts does not learn; empty: none"},
      {"bpe_folder", &options.bpe_folder,
       "directory with vocab.json and merges.txt (GPT-2's byte pairs), or with tokenizer.model "
       "(SentencePiece, as "
       "Llama's)"},
      {"out", &options.out, "directory for train.bin, val.bin, their indexes, and the vocabulary"},
      {"validation_share", &options.validation_share, "share of the documents, evenly, for validation"},
      {"threads", &options.threads, "threads that tokenize; 0: one per core"}};
  options.threads = 0;
  base::ParseFlagsOrExit(argc, argv, UsageOf(flags));
  const comm::InterruptHandler interrupt;
  if (options.input.empty() || options.out.empty() || options.bpe_folder.empty()) {
    base::WriteError("prepare_text: expected --data=PATH, --bpe-folder=DIR and --out=DIR");
    return kUsageError;
  }
  if (options.input != "-") options.input = base::FromUser(options.input);
  options.out = base::FromUser(options.out);
  options.bpe_folder = base::FromUser(options.bpe_folder);
  if (options.threads < 0) {
    base::WriteError(
        absl::StrCat("prepare_text: --threads=", options.threads, ": expected 0, or a number of threads"));
    return kUsageError;
  }
  if (options.threads == 0) options.threads = base::UsableProcessors();
  std::optional<base::Progress> bar;
  const auto made = data::PrepareTokens(options, [&](std::int64_t read, std::int64_t total) {
    if (!bar.has_value()) {
      bar.emplace(std::cout, base::DetectTerminal(1),
                  base::ProgressOptions{.label = "preparing", .total = total, .plain_seconds = 10});
    }
    total > 0 ? bar->Update(read) : bar->Redraw();
  });
  bar.reset();
  if (!made.ok()) {
    base::WriteError(absl::StrCat("prepare_text: ", made.status().message()));
    return 1;
  }
  Report(*made, options.out);
  return 0;
}

}  // namespace
}  // namespace plait

int main(int argc, char** argv) {
  return plait::base::RunTool("prepare_text", [&] { return plait::Main(argc, argv); });
}
