// The training text on every rank, with its tokenizer; or random tokens.
//
//   PLAIT_ASSIGN_OR_RETURN(const Corpus corpus, OpenCorpus(settings, world, say));
//   corpus.train().tokens;
//   corpus.tokenizer->Decode(ids);
//
// OpenCorpus is collective: rank 0 tokenizes the text, or finds it in the cache, then every rank reads the file; token
// files (data/text/token_file.h) are memory-mapped by every rank. Errors are the same on all ranks.
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
  data::PreparedText text;                     // of token files: its facts, without tokens
  std::optional<data::TokenCorpus> files;      // if --data names token files
  std::unique_ptr<data::Tokenizer> tokenizer;  // null for random tokens, and token files without a vocabulary

  data::TokenPart train() const { return files ? files->train : data::TokenPart{.tokens = text.train}; }
  data::TokenPart validation() const {
    return files ? files->validation : data::TokenPart{.tokens = text.validation};
  }
  // "characters", "gpt2" or "sentencepiece", as for --tokenizer; kRandomTokens if there is no tokenizer.
  std::string TokenizerName() const;
};

// Uniformly distributed tokens, a function of seed and vocabulary size. INVALID_ARGUMENT unless that is 1 to 65536.
// Local.
inline constexpr std::int64_t kRandomTrainingTokens = 1 << 20, kRandomValidationTokens = 1 << 17;
absl::StatusOr<Corpus> RandomCorpus(std::uint64_t seed, std::int64_t vocabulary_size);

// `say` is called on rank 0 with a line for each step of the preparation; not for token files.
absl::StatusOr<Corpus> OpenCorpus(const TextSettings& settings, const comm::Communicator& world,
                                  const std::function<void(const std::string& line)>& say);

// Statistics of the text, in the format of nanoGPT's prepare.py:
//
//   length of dataset in characters: 1,115,394
//   all the unique characters:
//    !$&',-.3:;?ABC...                                   (character tokenizer only; newline is the first character)
//   vocab size: 65
//   train has 1,003,854 tokens
//   val has 111,540 tokens
//
// Random tokens have "synthetic: random tokens, no text" in place of the first two entries. Token files:
//
//   token files: openwebtext
//   vocab size: 50,257
//   train has 9,035,582,198 tokens in 8,009,762 documents
//   val has 4,434,897 tokens in 4,007 documents             (documents are omitted without an index)
std::string CorpusLines(const Corpus& corpus);

}  // namespace plait::text_training

#endif  // PLAIT_TOOLS_TEXT_TRAINING_CORPUS_H_
