// Fixtures of passes: one flat array of doubles. A test takes values from it in the order in which
// the generator wrote them.
#ifndef KINGLET_TESTS_CONVERTERS_PASSES_FLAT_FIXTURE_H_
#define KINGLET_TESTS_CONVERTERS_PASSES_FLAT_FIXTURE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "converters/checkpoints/npy.h"

namespace kinglet {

inline std::vector<double> ReadDoubles(const std::string& name) {
  const Result<NpyArray> array = ReadNpy(std::string(KINGLET_TEST_DATA) + "/" + name);
  if (array.ok() && std::holds_alternative<std::vector<double>>(array->values)) {
    return std::get<std::vector<double>>(array->values);
  }
  ADD_FAILURE() << name << ": " << array.status().message();
  return {};
}

class FlatFixture {
 public:
  explicit FlatFixture(const std::string& name) : values_(ReadDoubles(name)) {}

  template <class Number>
  std::vector<Number> Take(uint64_t count) {
    std::vector<Number> taken(count);
    if (count > values_.size() - at_) {
      ADD_FAILURE() << "the fixture has " << values_.size() << " numbers";
      return taken;
    }
    for (Number& number : taken) number = static_cast<Number>(values_[at_++]);
    return taken;
  }
  uint64_t left() const { return values_.size() - at_; }

 private:
  std::vector<double> values_;
  size_t at_ = 0;
};

// The largest difference, relative to max(1, |expected|).
template <class Number>
double LargestDifference(const std::vector<Number>& found, const std::vector<double>& expected) {
  if (found.size() != expected.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double difference = std::fabs(found[i] - expected[i]);
    largest = std::fmax(largest, difference / std::fmax(1.0, std::fabs(expected[i])));
  }
  return largest;
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_PASSES_FLAT_FIXTURE_H_
