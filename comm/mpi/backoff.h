// Pauses between polls that leave the core to other ranks: 20 polls if ranks outnumber cores, else 20,000; then 50
// yields; then sleeps that grow by a tenth each from 10 microseconds to 1 millisecond, so that waiting takes at most
// about a tenth longer than necessary.
#ifndef PLAIT_COMM_MPI_BACKOFF_H_
#define PLAIT_COMM_MPI_BACKOFF_H_

namespace plait::comm {

class Backoff {
 public:
  explicit Backoff(bool oversubscribed) : spins_left_(oversubscribed ? 20 : 20000) {}
  void Pause();

 private:
  int spins_left_;
  int yields_left_ = 50;
  long sleep_nanoseconds_ = 10'000;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_BACKOFF_H_
