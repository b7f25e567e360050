// planted none|heap|leak|overflow|race: has that fault, which a sanitizer must detect.
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

// Opaque to the optimizer.
volatile int one = 1;

void Heap() {
  std::vector<int> numbers(8);
  int* const first = numbers.data();
  first[7 + one] = one;
}

void Leak() {
  int* volatile kept = new int[100];
  kept[0] = one;
  kept = nullptr;
}

void Overflow() { std::printf("%d\n", INT_MAX + one); }

void Race() {
  int number = 0;
  std::thread other([&number] { number += one; });
  number += one;
  other.join();
  std::printf("%d\n", number);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string fault = argc == 2 ? argv[1] : "";
  if (fault == "heap") Heap();
  if (fault == "leak") Leak();
  if (fault == "overflow") Overflow();
  if (fault == "race") Race();
  return 0;
}
