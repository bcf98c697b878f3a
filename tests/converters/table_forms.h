// Every form of table that a recipe can describe, over tensors made up for it, in a safetensors
// file. Recipes name the tensors.
#ifndef KINGLET_TESTS_CONVERTERS_TABLE_FORMS_H_
#define KINGLET_TESTS_CONVERTERS_TABLE_FORMS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace kinglet {

// Tensors of a checkpoint that a test writes.
class TinyTensors {
 public:
  // Random values from offset - scale to offset + scale, which depend on the name.
  void Floats(const std::string& name, std::vector<uint64_t> shape, double scale = 0.5,
              double offset = 0);
  // Random integers below `end`.
  void Integers(const std::string& name, std::vector<uint64_t> shape, int64_t end);
  // The bytes of a safetensors file.
  std::string Safetensors() const;

 private:
  struct Tensor {
    std::string name, type;
    std::vector<uint64_t> shape;
    std::string bytes;
  };
  std::vector<Tensor> tensors_;
};

// A form at both ends of a network. JSON without the outer braces.
struct TableForm {
  std::string name;
  std::string input;   // members of a recipe's "embedding"
  std::string output;  // members of a recipe's "softmax", which may lack a bias
  std::string alone;   // the table alone, which replaces a family's; empty: the input has parts
};

// Adds tensors whose names begin with `side` and returns forms of tables [words, width], which name
// them with `prefix` in front. REQUIRES: words >= 8.
std::vector<TableForm> AddTableForms(const std::string& side, const std::string& prefix,
                                     uint64_t words, uint64_t width, TinyTensors& tensors);

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_TABLE_FORMS_H_
