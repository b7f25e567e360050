// Uses single libraries of Plait: named timers and seeds.
#include <iostream>

#include "base/seed.h"
#include "base/timer.h"
#include "base/timer_report.h"

int main() {
  plait::base::TimerSet timers;
  plait::base::RandomStream stream(plait::base::DeriveSeed(7, "example"));
  double sum = 0;
  for (int i = 0; i < 1000; ++i) {
    plait::base::ScopedTimer scope(timers.Get("draw"));
    sum += stream.Uniform();
  }
  std::cout << plait::base::TimerTable(timers, 0) << "mean of 1000 draws: " << sum / 1000 << "\n";
}
