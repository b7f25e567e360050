// Checks for programming errors: a failed check aborts the process.
//
//   PLAIT_CHECK(level < levels) << "level " << level << " of " << levels;
//   PLAIT_CHECK_OK(status);
//
// prints one line to standard error and aborts:
//
//   mgrit/delta.cc:41: PLAIT_CHECK(level < levels) failed: level 3 of 3
//
// Always on, also in optimised builds. What follows << is evaluated only on failure. Errors of input and environment
// are returned as absl::Status instead (base/status_macros.h).
#ifndef PLAIT_BASE_CHECK_H_
#define PLAIT_BASE_CHECK_H_

#include <ostream>
#include <sstream>

namespace plait::base::internal {

// Gathers the message; its destructor prints it in one write and aborts.
class CheckFailure {
 public:
  CheckFailure(const char* what, const char* file, int line);
  [[noreturn]] ~CheckFailure();
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;

  std::ostream& stream();

 private:
  std::ostringstream head_;
  std::ostringstream message_;
};

// Turns `stream << a << b` into void, so that both arms of ?: agree. & binds weaker than <<.
struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace plait::base::internal

#define PLAIT_CHECK(condition)                                                                               \
  (condition) ? static_cast<void>(0)                                                                         \
              : ::plait::base::internal::Voidify() &                                                         \
                    ::plait::base::internal::CheckFailure("PLAIT_CHECK(" #condition ")", __FILE__, __LINE__) \
                        .stream()

// `expression` is an absl::Status or anything with ok() and operator<<.
#define PLAIT_CHECK_OK(expression)                                                                          \
  do {                                                                                                      \
    const auto& plait_check_status = (expression);                                                          \
    if (!plait_check_status.ok()) {                                                                         \
      ::plait::base::internal::CheckFailure("PLAIT_CHECK_OK(" #expression ")", __FILE__, __LINE__).stream() \
          << plait_check_status;                                                                            \
    }                                                                                                       \
  } while (false)

#endif  // PLAIT_BASE_CHECK_H_
