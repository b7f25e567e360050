#include "tools/text_training/corpus.h"

#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/path.h"
#include "base/quantity.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "comm/gathered_text.h"
#include "data/text/prepare.h"

namespace plait::text_training {
namespace {

// Path of the prepared file, on all ranks.
absl::StatusOr<std::string> Prepare(const TextSettings& settings, const comm::Communicator& world,
                                    const std::function<void(const std::string& line)>& say) {
  absl::StatusOr<data::PreparedTextFile> file = data::PreparedTextFile();
  if (world.rank() == 0) {
    file = data::PrepareText({.text = base::FromUser(settings.data),
                              .tokenizer = settings.tokenizer,
                              .bpe_folder = base::FromUser(settings.bpe_folder)});
  }
  PLAIT_RETURN_IF_ERROR(world.Agree(file.status()));
  for (const std::string& note : file->notes) say(note);
  return comm::GatherText(world, file->path)[0];
}

absl::StatusOr<Corpus> Read(const TextSettings& settings, const std::string& path) {
  Corpus corpus;
  PLAIT_ASSIGN_OR_RETURN(corpus.text, data::ReadPreparedText(path));
  PLAIT_ASSIGN_OR_RETURN(corpus.tokenizer,
                         data::OpenTokenizer(corpus.text, base::FromUser(settings.bpe_folder)));
  return corpus;
}

// Control characters but the newline as escapes.
std::string Visible(const std::string& text) {
  std::string shown;
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < ' ' || c == 0x7f;
    if (control && c != '\n') {
      absl::StrAppendFormat(&shown, "\\x%02x", static_cast<unsigned char>(c));
    } else {
      shown += c;
    }
  }
  return shown;
}

}  // namespace

absl::StatusOr<Corpus> RandomCorpus(std::uint64_t seed, std::int64_t vocabulary_size) {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint16_t>::max() + 1;
  if (vocabulary_size < 1 || vocabulary_size > kMost) {
    return absl::InvalidArgumentError(absl::StrCat("--data=random: a vocabulary of ", vocabulary_size,
                                                   "; expected 1 to ", kMost, " tokens"));
  }
  Corpus corpus;
  data::PreparedText& text = corpus.text;
  text.source = text.tokenizer = kRandomTokens;
  text.vocabulary_size = static_cast<std::int32_t>(vocabulary_size);
  base::RandomStream random(base::DeriveSeed(seed, "random tokens"));
  text.train.resize(kRandomTrainingTokens);
  text.validation.resize(kRandomValidationTokens);
  for (std::vector<std::uint16_t>* part : {&text.train, &text.validation}) {
    for (std::uint16_t& token : *part) {
      token = static_cast<std::uint16_t>(random.Below(static_cast<std::uint64_t>(vocabulary_size)));
    }
  }
  return corpus;
}

absl::StatusOr<Corpus> OpenCorpus(const TextSettings& settings, const comm::Communicator& world,
                                  const std::function<void(const std::string& line)>& say) {
  PLAIT_ASSIGN_OR_RETURN(const std::string path, Prepare(settings, world, say));
  absl::StatusOr<Corpus> corpus = Read(settings, path);
  PLAIT_RETURN_IF_ERROR(world.Agree(corpus.status()));
  return corpus;
}

std::string CorpusLines(const Corpus& corpus) {
  const data::PreparedText& text = corpus.text;
  std::string lines =
      corpus.tokenizer == nullptr
          ? "synthetic: random tokens, no text\n"
          : absl::StrCat("length of dataset in characters: ", base::FormatCount(text.characters), "\n");
  if (!text.code_points.empty()) {
    std::vector<std::int32_t> ids(text.vocabulary_size);
    std::iota(ids.begin(), ids.end(), 0);
    const absl::StatusOr<std::string> characters = corpus.tokenizer->Decode(ids);
    if (characters.ok()) absl::StrAppend(&lines, "all the unique characters: ", Visible(*characters), "\n");
  }
  absl::StrAppend(&lines, "vocab size: ", base::FormatCount(text.vocabulary_size), "\ntrain has ",
                  base::FormatCount(static_cast<std::int64_t>(text.train.size())), " tokens\nval has ",
                  base::FormatCount(static_cast<std::int64_t>(text.validation.size())), " tokens");
  return lines;
}

}  // namespace plait::text_training
