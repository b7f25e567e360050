// A ring buffer of the latest values of a sequence.
#ifndef PLAIT_DATA_TRACE_LATEST_OF_H_
#define PLAIT_DATA_TRACE_LATEST_OF_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace plait::data {

template <typename T>
class LatestOf {
 public:
  explicit LatestOf(std::int64_t capacity) : capacity_(std::max<std::int64_t>(capacity, 1)) {}

  void Add(const T& value) {
    if (added_ < capacity_) {
      ring_.push_back(value);
    } else {
      ring_[added_ % capacity_] = value;
    }
    ++added_;
  }

  std::vector<T> InOrder() const {
    std::vector<T> values(ring_);
    std::rotate(values.begin(), values.begin() + (added_ > capacity_ ? added_ % capacity_ : 0), values.end());
    return values;
  }
  std::int64_t size() const { return static_cast<std::int64_t>(ring_.size()); }
  std::int64_t lost() const { return added_ - size(); }

 private:
  std::int64_t capacity_;
  std::int64_t added_ = 0;
  std::vector<T> ring_;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_TRACE_LATEST_OF_H_
