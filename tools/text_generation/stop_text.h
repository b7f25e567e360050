// Text that arrives token by token and ends before the first of some stop strings.
//
//   StopText text({"\n\n"});
//   write(text.Add("To be\n"));    // "To be": the line break may begin the stop string
//   write(text.Add("\nThat"));     // "", and text.stopped()
//   write(text.Rest());            // at the end of a text that was not stopped
//
// Local.
#ifndef PLAIT_TOOLS_TEXT_GENERATION_STOP_TEXT_H_
#define PLAIT_TOOLS_TEXT_GENERATION_STOP_TEXT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace plait::text_generation {

class StopText {
 public:
  // `stops` must not contain an empty string.
  explicit StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Appends `bytes`; returns the text that cannot be part of a stop string, in whole UTF-8 characters. Empty once
  // stopped.
  std::string Add(absl::string_view bytes);
  // Returns the text that was held back; empty once stopped.
  std::string Rest();
  bool stopped() const { return stopped_; }

 private:
  std::size_t SureBytes() const;

  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace plait::text_generation

#endif  // PLAIT_TOOLS_TEXT_GENERATION_STOP_TEXT_H_
