#include "data/text/testing/sentence_piece_files.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

namespace plait::data::testing {
namespace {

void Check(const sentencepiece::util::Status& status) {
  if (status.ok()) return;
  std::cerr << status.ToString() << "\n";
  std::abort();
}

}  // namespace

void WriteSentencePieceModel(const std::string& folder) {
  const std::string sentences = folder + "/sentences.txt";
  std::ofstream file(sentences);
  for (const char* animal : {"cat", "dog", "bird", "horse", "mouse"}) {
    for (const char* place : {"mat", "tree", "road", "house", "river"}) {
      file << "the " << animal << " sat on the " << place << " and looked at a zebra !\n";
    }
  }
  file.close();
  Check(sentencepiece::SentencePieceTrainer::Train(
      "--model_type=bpe --byte_fallback=true --normalization_rule_name=identity --minloglevel=2 "
      "--remove_extra_whitespaces=false --vocab_size=" +
      std::to_string(kSentencePieces) + " --input=" + sentences + " --model_prefix=" + folder +
      "/tokenizer"));
}

std::vector<int> IdsByLibrary(const std::string& folder, const std::string& text) {
  sentencepiece::SentencePieceProcessor processor;
  Check(processor.Load(folder + "/tokenizer.model"));
  std::vector<int> ids;
  Check(processor.Encode(text, &ids));
  return ids;
}

}  // namespace plait::data::testing
