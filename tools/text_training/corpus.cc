#include "tools/text_training/corpus.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
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
#include "data/hdf5/atomic_file.h"
#include "data/text/prepare.h"
#include "data/text/tokenizer_folder.h"

namespace plait::text_training {
namespace {

absl::Status CheckTokenizer(const TextSettings& settings) {
  const std::string& folder = settings.bpe_folder;
  if (settings.tokenizer == "characters") {
    if (folder.empty() || folder == settings.initial_model()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("--bpe-folder=", folder, ": expected --tokenizer=gpt2 or sentencepiece"));
  }
  if (!folder.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--tokenizer=", settings.tokenizer, ": expected --bpe-folder=DIR with its files"));
}

// Path of the prepared file, on all ranks.
absl::StatusOr<std::string> Prepare(const TextSettings& settings, const comm::Communicator& world,
                                    const std::function<void(const std::string& line)>& say) {
  PLAIT_RETURN_IF_ERROR(CheckTokenizer(settings));
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

// The tokenizer of the files: --bpe-folder's, else the one in their directory, where //tools:prepare_text puts it;
// without either, --vocab-size is required.
absl::Status ReadVocabulary(const TextSettings& settings, const std::string& folder, Corpus& corpus) {
  const bool is_beside = data::HasTokenizer(folder);
  std::string given = base::FromUser(settings.bpe_folder);
  // The files of --init-from need not have one.
  if (given == settings.initial_model() && !data::HasTokenizer(given)) given.clear();
  if (given.empty() && !is_beside) {
    if (settings.vocab_size < 1 || settings.vocab_size > std::numeric_limits<std::int32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--data=", settings.data,
                       ": token files without a vocabulary: give --bpe-folder with vocab.json and merges.txt "
                       "or with tokenizer.model, or --vocab-size"));
    }
    corpus.text.vocabulary_size = static_cast<std::int32_t>(settings.vocab_size);
    return absl::OkStatus();
  }
  const std::string kind = settings.tokenizer == "characters" ? "" : settings.tokenizer;
  PLAIT_ASSIGN_OR_RETURN(corpus.tokenizer, data::LoadTokenizer(given.empty() ? folder : given, kind));
  corpus.text.vocabulary_size = corpus.tokenizer->vocabulary_size();
  corpus.text.tokenizer_digest = corpus.tokenizer->digest();
  corpus.text.tokenizer = corpus.tokenizer->name();
  if (is_beside && !given.empty()) {
    PLAIT_ASSIGN_OR_RETURN(const std::unique_ptr<data::Tokenizer> own, data::LoadTokenizer(folder, kind));
    if (own->digest() != corpus.text.tokenizer_digest) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--bpe-folder=", settings.bpe_folder, ": another vocabulary than that of the tokens, which is in ",
          folder, ": leave the flag out"));
    }
  }
  return absl::OkStatus();
}

// Files without an index are of uint16. Halves of 32-bit ids would pass for ids: every second one is then 0, or the
// vocabulary larger than 16 bits.
absl::Status CheckType(const Corpus& corpus) {
  // Fewer ids, or those of a small vocabulary, may well be 0 in every second place.
  constexpr std::int64_t kFewest = 32, kBytes = 256, kLooksAt = 4096;
  for (const data::TokenPart& part : {corpus.train(), corpus.validation()}) {
    if (part.documents != nullptr) continue;
    const bool fits =
        corpus.text.vocabulary_size <= std::int64_t{std::numeric_limits<std::uint16_t>::max()} + 1;
    std::int64_t above_0[2] = {0, 0};  // at even and odd positions
    const std::int64_t count = std::min<std::int64_t>(part.tokens.size(), kLooksAt);
    for (std::int64_t i = 0; i < count; ++i) above_0[i % 2] += part.tokens[i] > 0 ? 1 : 0;
    const bool is_wide = corpus.text.vocabulary_size > kBytes && count >= kFewest &&
                         std::min(above_0[0], above_0[1]) == 0 && above_0[0] + above_0[1] > count / 4;
    if (fits && !is_wide) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(part.name, ": ids of 16 bits are expected without an index (.idx), but ",
                     fits ? "every second one is 0, as in ids of 32 bits"
                          : absl::StrCat("the vocabulary has ", corpus.text.vocabulary_size, " tokens"),
                     "; prepare_text makes files that say what they hold"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Corpus> MapFiles(const TextSettings& settings) {
  const std::string path = base::FromUser(settings.data);
  Corpus corpus;
  PLAIT_ASSIGN_OR_RETURN(corpus.files, data::OpenTokenCorpus(path));
  corpus.text.source = settings.data;
  const bool is_folder = corpus.files->files.size() > 1;
  PLAIT_RETURN_IF_ERROR(ReadVocabulary(settings, is_folder ? path : data::FolderOf(path), corpus));
  PLAIT_RETURN_IF_ERROR(CheckType(corpus));
  return corpus;
}

// --ignore-targets needs documents.
absl::Status CheckIgnored(const TextSettings& settings, const Corpus& corpus) {
  if (settings.IgnoredTargets() == data::IgnoredTargets::kNone) return absl::OkStatus();
  for (const data::TokenPart& part : {corpus.train(), corpus.validation()}) {
    if (part.documents != nullptr) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--ignore-targets=", settings.ignore_targets, ": ",
                     corpus.files ? part.name + " has no index (.idx): " : "",
                     "where documents begin is not known; prepare_text makes files that say so"));
  }
  return absl::OkStatus();
}

std::string PartText(const data::TokenPart& part) {
  std::string text = absl::StrCat(base::FormatCount(part.tokens.size()), " tokens");
  // If the part is not the whole file, the index does not tell the number of documents.
  if (part.documents != nullptr && part.documents->tokens() == part.tokens.size()) {
    absl::StrAppend(&text, " in ", base::FormatCount(part.documents->documents()), " documents");
  }
  return text;
}

// Escapes control characters except newlines.
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
  absl::StatusOr<Corpus> corpus;
  // Where one rank sees token files, all open them: ranks whose hosts lack them say so.
  std::int64_t has_files[] = {data::IsTokenCorpus(base::FromUser(settings.data)) ? 1 : 0};
  world.AllReduce(comm::BufferOf(absl::MakeSpan(has_files)), comm::ReduceOp::kMax);
  if (has_files[0] != 0) {
    corpus = MapFiles(settings);
  } else {
    PLAIT_ASSIGN_OR_RETURN(const std::string path, Prepare(settings, world, say));
    corpus = Read(settings, path);
  }
  PLAIT_RETURN_IF_ERROR(world.Agree(corpus.status()));
  PLAIT_RETURN_IF_ERROR(world.Agree(CheckIgnored(settings, *corpus)));
  return corpus;
}

std::string Corpus::TokenizerName() const {
  if (tokenizer == nullptr) return kRandomTokens;
  if (!text.code_points.empty()) return "characters";
  return data::KindOf(*tokenizer);
}

std::string CorpusLines(const Corpus& corpus) {
  const data::PreparedText& text = corpus.text;
  std::string lines = "synthetic: random tokens, no text\n";
  if (corpus.files) {
    lines = absl::StrCat("token files: ", text.source, "\n");
  } else if (corpus.tokenizer != nullptr) {
    lines = absl::StrCat("length of dataset in characters: ", base::FormatCount(text.characters), "\n");
  }
  if (!text.code_points.empty()) {
    std::vector<std::int32_t> ids(text.vocabulary_size);
    std::iota(ids.begin(), ids.end(), 0);
    const absl::StatusOr<std::string> characters = corpus.tokenizer->Decode(ids);
    if (characters.ok()) absl::StrAppend(&lines, "all the unique characters: ", Visible(*characters), "\n");
  }
  absl::StrAppend(&lines, "vocab size: ", base::FormatCount(text.vocabulary_size), "\ntrain has ",
                  PartText(corpus.train()), "\nval has ", PartText(corpus.validation()));
  return lines;
}

}  // namespace plait::text_training
