// The hyper-parameters of a fairseq language model as nodes of a pickle, in fairseq's two forms.
#ifndef KINGLET_TESTS_CONVERTERS_FAIRSEQ_NODES_H_
#define KINGLET_TESTS_CONVERTERS_FAIRSEQ_NODES_H_

#include <map>
#include <string>

#include "tests/converters/module_nodes.h"

namespace kinglet {

class FairseqNodes {
 public:
  using Value = decltype(PickleNode::value);

  // Two layers of width 16, bands of 12, 14 and the other words, everything tied.
  FairseqNodes() {
    for (const auto& [name, value] :
         std::initializer_list<std::pair<const char*, int64_t>>{{"decoder_layers", 2},
                                                                {"decoder_embed_dim", 16},
                                                                {"decoder_ffn_embed_dim", 20},
                                                                {"decoder_attention_heads", 4},
                                                                {"adaptive_input_factor", 2},
                                                                {"adaptive_softmax_factor", 2},
                                                                {"tokens_per_sample", 24}}) {
      Set(name, value);
    }
    for (const char* name : {"adaptive_input", "tie_adaptive_weights", "tie_adaptive_proj",
                             "decoder_normalize_before"}) {
      Set(name, true);
    }
    Set("adaptive_input_cutoff", std::string("12,26"));
    Set("adaptive_softmax_cutoff", std::string("12,26"));
    Set("activation_fn", std::string("relu"));
    Set("max_target_positions", PickleNone{});
  }

  void Set(const std::string& name, Value value) { values_[name] = std::move(value); }
  void SetList(const std::string& name, std::initializer_list<Value> values) {
    PickleList list;
    for (const Value& value : values) list.items.push_back(nodes_.Add(value));
    Set(name, std::move(list));
  }
  void Remove(const std::string& name) { values_.erase(name); }

  // {"args": Namespace(..)}.
  const PickleNode& Args() {
    PickleObject arguments;
    arguments.class_name = "argparse.Namespace";
    arguments.state = Dict(values_);
    return *Dict({{"args", nodes_.Add(std::move(arguments))->value}});
  }
  // {"args": None, "cfg": {"model": {..}, "task": {"tokens_per_sample": ..}}}.
  const PickleNode& Config() {
    std::map<std::string, Value> model = values_, task;
    if (const auto moved = model.extract("tokens_per_sample"); !moved.empty()) {
      task[moved.key()] = moved.mapped();
    }
    PickleNode* config = Dict({{"model", Dict(model)->value}, {"task", Dict(task)->value}});
    return *Dict({{"args", PickleNone{}}, {"cfg", config->value}});
  }

 private:
  PickleNode* Dict(const std::map<std::string, Value>& values) {
    PickleDict dict;
    for (const auto& [name, value] : values) {
      dict.items.emplace_back(nodes_.Add(name), nodes_.Add(value));
    }
    return nodes_.Add(std::move(dict));
  }

  ModuleNodes nodes_;
  std::map<std::string, Value> values_;
};

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_FAIRSEQ_NODES_H_
