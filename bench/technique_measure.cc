#include "bench/technique_measure.h"

#include <cmath>
#include <memory>
#include <set>
#include <utility>
#include <variant>

#include "converters/texts/token_file.h"
#include "format/overloaded.h"
#include "runtime/accounting/exact_sum.h"
#include "runtime/scored_stream.h"
#include "runtime/session.h"
#include "tools/model_facts.h"
#include "tools/words.h"

namespace kinglet {
namespace {

using TensorIds = std::set<TensorId>;

void Take(const Plan& plan, TensorId id, TensorIds& ids) {
  ids.insert(id);
  if (const CodedView* coded = plan.weights[id].coded()) ids.insert(coded->scheme.codebook);
}

TensorIds InputTables(const Plan& plan) {
  TensorIds ids;
  for (const Node& node : plan.nodes) {
    const auto* row = std::get_if<EmbedRow>(&node.op);
    if (row == nullptr) continue;
    for (const EmbeddingBin& bin : row->bins) {
      Take(plan, bin.table, ids);
      if (bin.projection) Take(plan, *bin.projection, ids);
    }
    for (const DefineRows& unit : row->units) {
      for (const DefineTensors& tensors : unit.tensors) {
        ids.insert(tensors.weight);
        for (const auto& id : {tensors.bias, tensors.norm_gain, tensors.norm_offset}) {
          if (id) ids.insert(*id);
        }
      }
    }
  }
  return ids;
}

// The weights of the clusters' nodes: matrices, and tables with their codebooks.
TensorIds OutputTables(const Plan& plan) {
  TensorIds ids;
  for (const ClusterPlan& cluster : plan.clusters) {
    for (size_t i = cluster.nodes.begin; i < cluster.nodes.end; ++i) {
      std::visit(
          Overloaded{[&](const MatVec& product) { Take(plan, product.weight, ids); },
                     [&](const PartialProducts& partial) { Take(plan, partial.table, ids); },
                     [&](const CodedProduct& product) { Take(plan, product.table, ids); },
                     []<OneOf<CacheAppend, EmbedRow, LayerNorm, CodedSums, Quantise, Add, AddScalar,
                              AddPositionRow, AddSinusoids, AddQueryBias, WindowAttention,
                              LogSumExp, CacheWeights, LstmGates, GruGates, RnnGates, QrnnGates,
                              BagAppend, BagFeatures, ScaleShiftRelu, StoreRow, LoadRow,
                              SourceAttention, RootMeanSquareNorm, ApplyActivation, Join>
                            Op>(const Op&) {}},
          plan.nodes[i].op);
    }
  }
  return ids;
}

Result<std::vector<uint32_t>> IdsOf(const TechniqueText& text, const Model& model) {
  if (text.ids) return ReadIds(text.path);
  KINGLET_ASSIGN_OR_RETURN(TokenSequence words, ReadTextSequence(text.path, model.text()));
  return std::move(words.ids);
}

Result<double> PerplexityOf(const std::shared_ptr<const Model>& model, const TechniqueText& text) {
  KINGLET_ASSIGN_OR_RETURN(const std::vector<uint32_t> ids, IdsOf(text, *model));
  if (ids.size() < 2) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "perplexity", text.path, "at least 2 words",
                           std::to_string(ids.size()));
  }
  const std::vector<uint32_t> stream = ScoredStream(model->file().description(), ids);
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model));
  ExactSum sum;
  for (size_t i = 1; i < stream.size(); ++i) {
    KINGLET_RETURN_IF_ERROR(session->StepToken(stream[i - 1]));
    KINGLET_ASSIGN_OR_RETURN(const double value, session->LogProbability(stream[i]));
    sum.Add(value);
  }
  return std::exp(-sum.Value() / static_cast<double>(stream.size() - 1));
}

}  // namespace

TableBytes TableBytesOf(const Model& model) {
  const ModelFacts facts = DescribeModel(model.file());
  const auto bytes = [&facts](const TensorIds& ids) {
    uint64_t sum = 0;
    for (const TensorId id : ids) sum += facts.tensors[id].Bytes();
    return sum;
  };
  const TensorIds input = InputTables(model.plan()), output = OutputTables(model.plan());
  TensorIds both = input;
  both.insert(output.begin(), output.end());
  return {bytes(input), bytes(output), bytes(both)};
}

Result<TechniqueMeasurement> MeasureTechnique(const ConvertOptions& options,
                                              const TechniqueText& text) {
  KINGLET_ASSIGN_OR_RETURN(const ConvertSummary summary, Convert(options));
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model,
                           Model::Open(options.output, {}));
  TechniqueMeasurement found;
  found.tables = TableBytesOf(*model);
  found.coded = CodedTablesOf(model->file());
  found.file_bytes = summary.file_bytes;
  KINGLET_ASSIGN_OR_RETURN(found.perplexity, PerplexityOf(model, text));
  return found;
}

}  // namespace kinglet
