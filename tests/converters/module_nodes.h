// Pickled modules, built node by node.
#ifndef KINGLET_TESTS_CONVERTERS_MODULE_NODES_H_
#define KINGLET_TESTS_CONVERTERS_MODULE_NODES_H_

#include <deque>
#include <string>
#include <utility>

#include "converters/checkpoints/pickle.h"

namespace kinglet {

class ModuleNodes {
 public:
  PickleNode* Add(decltype(PickleNode::value) value) {
    return &nodes_.emplace_back(PickleNode{std::move(value)});
  }
  PickleNode* Tensor() { return Add(PickleTensor{ElementType::kF32, "0", 1, 0, {1}, {1}}); }
  // An object with the three dicts of a module.
  PickleNode* Module(const std::string& class_name = "model.RNNModel") {
    PickleObject object;
    object.class_name = class_name;
    object.state = Add(PickleDict{});
    PickleNode* module = Add(std::move(object));
    for (const char* part : {"_parameters", "_buffers", "_modules"}) {
      Set(module, part, Add(PickleDict{}));
    }
    return module;
  }
  // An attribute of a module.
  void Set(PickleNode* module, const std::string& name, PickleNode* value) {
    Put(std::get<PickleObject>(module->value).state, name, value);
  }
  // An entry of one of its dicts.
  void Set(PickleNode* module, const std::string& part, const std::string& name,
           PickleNode* value) {
    PickleNode* state = std::get<PickleObject>(module->value).state;
    Put(const_cast<PickleNode*>(state->Find(part)), name, value);
  }

  // An entry of a dict.
  void Put(PickleNode* dict, const std::string& name, PickleNode* value) {
    std::get<PickleDict>(dict->value).items.emplace_back(Add(name), value);
  }

 private:
  std::deque<PickleNode> nodes_;
};

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_MODULE_NODES_H_
