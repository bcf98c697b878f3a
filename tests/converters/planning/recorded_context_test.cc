// Records replace the nodes below a change: losses and states have the bits of a run of the
// complete changed model, for every tensor of models of every kind.
#include "converters/planning/recorded_context.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "converters/passes/quantise.h"
#include "converters/planning/sensitivity.h"
#include "format/writer.h"
#include "tests/support/define_builder.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/transformer_builder.h"

namespace kinglet::recorded_context_test {
namespace {

std::shared_ptr<const ModelFile> FileOf(const ModelDraft& draft) {
  const auto bytes = SerialiseModel(draft);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return *ModelFile::FromBytes(*bytes);
}

std::vector<std::pair<std::string, ModelDraft>> EveryKind() {
  std::vector<std::pair<std::string, ModelDraft>> kinds;
  kinds.emplace_back("MicroNet", TinyMicronet());
  kinds.emplace_back("MicroNet with a cache", TinyMicronet({.cache_capacity = 4}));
  kinds.emplace_back("Transformer", TinyTransformer());
  kinds.emplace_back("DeFINE", TinyDefine());
  for (const RecurrentCell cell :
       {RecurrentCell::kLstm, RecurrentCell::kGru, RecurrentCell::kQrnn}) {
    TinyRecurrentOptions options;
    options.cells = {cell, cell};
    options.cache_capacity = 5;
    kinds.emplace_back("recurrent " + std::to_string(static_cast<int>(cell)),
                       TinyRecurrent(options));
  }
  return kinds;
}

TEST(RecordedContext, GivesTheBitsOfAWholeRunForEveryTensor) {
  for (const auto& [kind, draft] : EveryKind()) {
    std::vector<uint32_t> ids;
    for (uint32_t i = 0; i < 40; ++i) ids.push_back(i * i % draft.description.vocabulary_size);
    const TokenInput input = [&ids](const auto& take) { return take(std::span(ids)); };
    Sensitivity recorded(FileOf(draft)), whole(FileOf(draft));
    std::vector<TensorGroup> groups;
    for (TensorId id = 0; id < draft.tensors.size(); ++id) {
      const EncodedTensor& tensor = draft.tensors[id];
      if (!tensor.derived && std::holds_alternative<DenseF32>(tensor.values)) {
        groups.push_back({tensor.name, {id}});
      }
    }
    ASSERT_TRUE(recorded.MeasureBaseline(input, groups, {}).ok());
    ASSERT_TRUE(whole.MeasureBaseline(input, groups, {}, 0).ok());
    EXPECT_EQ(recorded.baseline().nll, whole.baseline().nll) << kind;
    for (const TensorGroup& group : groups) {
      for (const TensorChange& change :
           {TensorChange(BitsChange{2}), TensorChange(SparsityChange{0.5})}) {
        const auto found = recorded.Measure(group, change, input, {});
        const auto expected = whole.Measure(group, change, input, {});
        ASSERT_TRUE(found.ok()) << found.status().message();
        ASSERT_TRUE(expected.ok());
        EXPECT_EQ(found->nll, expected->nll) << kind << ", " << group.name;
        EXPECT_EQ(found->standard_error, expected->standard_error) << kind << ", " << group.name;
      }
    }
  }
}

// The nodes that run again: few for the last layer's tensors, all for the first table.
TEST(RecordedContext, RunsLessTheLaterTheChange) {
  const auto file = FileOf(TinyMicronet({.cache_capacity = 4, .layers = 4}));
  const auto model = *Model::FromFile(file, {});
  std::vector<std::vector<WeightId>> changed;
  for (TensorId id = 0; id < file->tensors().size(); ++id) changed.push_back({id});
  const ContextRecorder recorder(*model, changed);
  const auto nodes_of = [&](const std::string& name) {
    for (TensorId id = 0; id < file->tensors().size(); ++id) {
      if (file->tensors()[id].name != name) continue;
      const RecordedContext* record = recorder.Find(std::vector<WeightId>{id});
      size_t nodes = 0;
      if (record == nullptr) return model->plan().context.end;
      for (const PartialContext::Run& run : record->partial().runs) nodes += run.end - run.begin;
      return nodes;
    }
    ADD_FAILURE() << name;
    return size_t{0};
  };
  const size_t all = model->plan().context.end;
  std::vector<size_t> nodes;
  for (const char* layer : {"0", "1", "2", "3"}) {
    nodes.push_back(nodes_of("layers." + std::string(layer) + ".qkv.weight"));
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_LT(nodes[i], i == 0 ? all + 1 : nodes[i - 1]);
    EXPECT_GT(nodes[i], size_t{2});
  }
  EXPECT_LT(nodes[3], all / 3);
}

// Records are dropped, the largest first.
TEST(RecordedContext, KeepsWithinItsMemory) {
  const ModelDraft draft = TinyMicronet({.layers = 3});
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < 200; ++i) ids.push_back(i * 7 % draft.description.vocabulary_size);
  const TokenInput input = [&ids](const auto& take) { return take(std::span(ids)); };
  const auto model = *Model::FromFile(FileOf(draft), {});
  std::vector<std::vector<WeightId>> changed;
  for (TensorId id = 0; id < draft.tensors.size(); ++id) changed.push_back({id});
  for (const uint64_t megabytes : {0, 1, 3, 512}) {
    const uint64_t most = megabytes << 20;
    ContextRecorder recorder(*model, changed, most);
    ASSERT_TRUE(RecordedLoss(model, input, {}, recorder).ok());
    uint64_t bytes = 0;
    std::vector<const RecordedContext*> seen;
    for (const auto& weights : changed) {
      const RecordedContext* record = recorder.Find(weights);
      if (record == nullptr || std::find(seen.begin(), seen.end(), record) != seen.end()) continue;
      seen.push_back(record);
      bytes += record->bytes();
    }
    EXPECT_LE(bytes, most);
    EXPECT_EQ(seen.empty(), megabytes == 0);
  }
}

}  // namespace
}  // namespace kinglet::recorded_context_test
