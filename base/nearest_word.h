// Which word did the user mean?
#ifndef PLAIT_BASE_NEAREST_WORD_H_
#define PLAIT_BASE_NEAREST_WORD_H_

#include <string>
#include <vector>

namespace plait::base {

// Changes of one character, and swaps of neighbours, that turn `a` into `b` (optimal string alignment
// distance).
int EditDistance(const std::string& a, const std::string& b);

// The word with the least edit distance; a word that contains `word`, or the other way round, counts as one
// edit away. Ties go to the first. `words` must not be empty.
std::string NearestWord(const std::string& word, const std::vector<std::string>& words);

}  // namespace plait::base

#endif  // PLAIT_BASE_NEAREST_WORD_H_
