// The text that a run learns from, on every rank, with the tokenizer that makes text of tokens again; or random
// tokens.
//
//   PLAIT_ASSIGN_OR_RETURN(const Corpus corpus, OpenCorpus(settings, world, say));
//   corpus.train().tokens;
//   corpus.tokenizer->Decode(ids);
//
// Collective: rank 0 prepares the text, or finds it prepared, then every rank reads the file; token files
// (data/text/token_file.h) are mapped by every rank. Errors are the same on all ranks.
#ifndef PLAIT_TOOLS_TEXT_TRAINING_CORPUS_H_
#define PLAIT_TOOLS_TEXT_TRAINING_CORPUS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "comm/communicator.h"
#include "data/text/prepared_text.h"
#include "data/text/token_file.h"
#include "data/text/tokenizer.h"
#include "tools/text_training/settings.h"

namespace plait::text_training {

struct Corpus {
  data::PreparedText text;                     // of token files without its tokens
  std::optional<data::TokenCorpus> files;      // token files
  std::unique_ptr<data::Tokenizer> tokenizer;  // none for random tokens, and token files without a vocabulary

  data::TokenPart train() const { return files ? files->train : data::TokenPart{.tokens = text.train}; }
  data::TokenPart validation() const {
    return files ? files->validation : data::TokenPart{.tokens = text.validation};
  }
  // As --tokenizer; kRandomTokens where there is none.
  std::string TokenizerName() const;
};

// Synthetic: tokens of an equal distribution, a function of seed and vocabulary. Local.
inline constexpr std::int64_t kRandomTrainingTokens = 1 << 20, kRandomValidationTokens = 1 << 17;
absl::StatusOr<Corpus> RandomCorpus(std::uint64_t seed, std::int64_t vocabulary_size);

// `say` gets a line for each thing that was done, on rank 0.
absl::StatusOr<Corpus> OpenCorpus(const TextSettings& settings, const comm::Communicator& world,
                                  const std::function<void(const std::string& line)>& say);

// What the text has, in the lines of nanoGPT's preparation:
//
//   length of dataset in characters: 1,115,394
//   all the unique characters:
//    !$&',-.3:;?ABC...                                   (of a tokenizer of characters; a newline comes
//    first)
//   vocab size: 65
//   train has 1,003,854 tokens
//   val has 111,540 tokens
//
// Of random tokens, instead of the first two: "synthetic: random tokens, no text"; of token files:
//
//   token files: openwebtext
//   vocab size: 50,257
//   train has 9,035,582,198 tokens in 8,009,762 documents
//   val has 4,434,897 tokens in 4,007 documents             (without an index: no documents)
std::string CorpusLines(const Corpus& corpus);

}  // namespace plait::text_training

#endif  // PLAIT_TOOLS_TEXT_TRAINING_CORPUS_H_
