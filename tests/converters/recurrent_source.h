// Recurrent networks in memory for tests of the families: tensors as a checkpoint would have them.
#ifndef KINGLET_TESTS_CONVERTERS_RECURRENT_SOURCE_H_
#define KINGLET_TESTS_CONVERTERS_RECURRENT_SOURCE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "tests/support/model_builder.h"

namespace kinglet {

class RecurrentSource {
 public:
  // Adds a tensor of random values that depend on its name; replaces a tensor of the same name.
  void Add(const std::string& name, const std::vector<uint64_t>& shape) {
    Remove(name);
    uint64_t count = 1;
    for (const uint64_t dimension : shape) count *= dimension;
    TestRandom random(std::hash<std::string>()(name));
    std::vector<float>& values = values_[name];
    values.clear();
    for (uint64_t i = 0; i < count; ++i) values.push_back(random.Signed());
    names_.emplace_back(name, shape);
  }
  void Remove(const std::string& name) {
    std::erase_if(names_, [&name](const auto& entry) { return entry.first == name; });
  }
  void Copy(const std::string& from, const std::string& to) { values_[to] = values_.at(from); }
  std::vector<float>& Values(const std::string& name) { return values_.at(name); }

  // Refer to this object.
  CheckpointTensors Weights() const {
    CheckpointTensors weights;
    for (const auto& [name, shape] : names_) {
      weights.push_back({name, shape, [this, name = name]() -> Result<std::vector<float>> {
                           return values_.at(name);
                         }});
    }
    return weights;
  }

 private:
  std::vector<std::pair<std::string, std::vector<uint64_t>>> names_;
  std::map<std::string, std::vector<float>> values_;
};

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_RECURRENT_SOURCE_H_
