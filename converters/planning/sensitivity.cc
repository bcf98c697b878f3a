#include "converters/planning/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "converters/checkpoints/quoted.h"
#include "converters/name_pattern.h"
#include "converters/passes/low_rank.h"
#include "format/blocks.h"
#include "format/file_layout.h"
#include "format/overloaded.h"
#include "runtime/accounting/exact_sum.h"
#include "runtime/accounting/meter.h"
#include "runtime/accounting/micronet.h"
#include "runtime/accounting/trace.h"
#include "runtime/session.h"

namespace kinglet {
namespace {

constexpr uint64_t kReportEvery = 256;  // tokens

bool IsFloat32(const TensorView& view) {
  const auto* dense = std::get_if<DenseView>(&view.values);
  return dense != nullptr && dense->type == FloatType::kF32 && !view.derived;
}

uint64_t FilledUp(uint64_t bytes) {
  constexpr uint64_t kPart = 64;  // segments begin at multiples of it (docs/FORMAT.md)
  return (bytes + kPart - 1) / kPart * kPart;
}

uint64_t BytesOfView(const TensorView& view) {
  const uint64_t mask = view.mask ? FilledUp(view.mask->bytes.size()) : 0;
  return mask +
         std::visit(Overloaded{[](const DenseView& dense) { return FilledUp(dense.bytes.size()); },
                               [](const PackedView& packed) {
                                 return FilledUp(packed.codes.size()) +
                                        FilledUp(packed.scales.bytes.size());
                               },
                               [](const CodedView& coded) { return FilledUp(coded.codes.size()); }},
                    view.values);
}

// The tables that can be replaced by a coded form.
std::vector<TensorId> TablesOf(const ModelDescription& description) {
  std::vector<TensorId> tables;
  if (const auto* embedding = FindBlock<AdaptiveEmbedding>(description)) {
    for (const EmbeddingBin& bin : embedding->bins) tables.push_back(bin.table);
  }
  if (const auto* softmax = FindBlock<AdaptiveSoftmax>(description)) {
    if (softmax->head_table) tables.push_back(*softmax->head_table);
    for (const SoftmaxTail& tail : softmax->tails) tables.push_back(tail.table);
  }
  return tables;
}

// The packed parts of changed tensors, and the views of a model with those tensors.
struct ChangedModel {
  ModelPacker packer;
  std::vector<TensorView> views;
  uint64_t bytes = 0;
};

// The loss of a text that step(id) takes, token by token, in the session.
template <class StepTaken>
Result<TextLoss> LossBySteps(Session& session, const TokenInput& input,
                             const std::function<void(uint64_t)>& progress, const StepTaken& step) {
  const Model& model = session.model();
  const std::optional<uint32_t> start = model.file().description().start_token;
  if (start) KINGLET_RETURN_IF_ERROR(step(*start));
  TextLoss loss;
  loss.bin_counts.resize(EmbeddingOf(model.plan()).bins.size());
  ExactSum total, block;
  bool fed = start.has_value();
  const auto take = [&](std::span<const uint32_t> ids) -> Status {
    for (const uint32_t id : ids) {
      if (fed) {
        KINGLET_ASSIGN_OR_RETURN(const double log_probability, session.LogProbability(id));
        total.Add(log_probability);
        block.Add(log_probability);
        if (++loss.scored % kLossBlock == 0) {
          loss.blocks.push_back(-block.Value() / static_cast<double>(kLossBlock));
          block = ExactSum();
        }
      }
      KINGLET_RETURN_IF_ERROR(step(id));
      fed = true;
      ++loss.bin_counts[BinOf(model.plan(), id)];
      if (++loss.tokens % kReportEvery == 0 && progress) progress(kReportEvery);
    }
    return {};
  };
  KINGLET_RETURN_IF_ERROR(input(take));
  if (loss.scored == 0) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "sensitivity", "text",
                           start ? "a token or more" : "two tokens or more",
                           std::to_string(loss.tokens));
  }
  if (progress) progress(loss.tokens % kReportEvery);
  loss.nll = (0.0 - total.Value()) / static_cast<double>(loss.scored);
  return loss;
}

}  // namespace

Result<TextLoss> LossOfText(const std::shared_ptr<const Model>& model, const TokenInput& input,
                            const std::function<void(uint64_t)>& progress) {
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model));
  return LossBySteps(*session, input, progress,
                     [&](uint32_t id) { return session->StepToken(id); });
}

Result<TextLoss> RecordedLoss(const std::shared_ptr<const Model>& model, const TokenInput& input,
                              const std::function<void(uint64_t)>& progress,
                              ContextRecorder& recorder) {
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model));
  recorder.Watch(*session);
  return LossBySteps(*session, input, progress,
                     [&](uint32_t id) { return session->StepToken(id); });
}

Result<TextLoss> LossAfter(const RecordedContext& recorded,
                           const std::shared_ptr<const Model>& model, const TokenInput& input,
                           const std::function<void(uint64_t)>& progress) {
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model));
  uint64_t token = 0;
  return LossBySteps(*session, input, progress, [&](uint32_t id) {
    return session->StepTokenAfter(id, recorded.partial(), recorded.At(token++));
  });
}

double DifferenceError(const TextLoss& a, const TextLoss& b) {
  const size_t count = std::min(a.blocks.size(), b.blocks.size());
  if (count < 2) return 0;
  double mean = 0, squares = 0;
  for (size_t i = 0; i < count; ++i) mean += a.blocks[i] - b.blocks[i];
  mean /= static_cast<double>(count);
  for (size_t i = 0; i < count; ++i) {
    const double off = a.blocks[i] - b.blocks[i] - mean;
    squares += off * off;
  }
  return std::sqrt(squares / static_cast<double>(count - 1) / static_cast<double>(count));
}

OperationCounts CountOperations(const Model& model, const std::vector<uint64_t>& bin_counts) {
  OperationCounts counts;
  const Plan& plan = model.plan();
  if (plan.encoder) return counts;
  const std::vector<uint64_t> nonzeros = CountNonzeros(plan.weights);
  counts.executed =
      CountExecuted(plan, nonzeros, TraitsOf(model.backend()), SteadyFullTrace(plan, bin_counts))
          .operations.Total();
  if (const auto micronet = CountMicronet2019(plan, nonzeros, bin_counts); micronet.ok()) {
    counts.micronet = micronet->operations.WeightedTotal();
  }
  return counts;
}

Result<std::vector<TensorGroup>> Sensitivity::Groups(const std::vector<std::string>& patterns,
                                                     const std::vector<std::string>& names) const {
  const std::span<const TensorView> views = file_->tensors();
  std::vector<TensorGroup> groups;
  for (const std::string& pattern : patterns) {
    TensorGroup group = {pattern, {}};
    for (TensorId id = 0; id < views.size(); ++id) {
      if (!MatchesPattern(pattern, views[id].name) || !IsFloat32(views[id])) continue;
      for (const TensorGroup& other : groups) {
        if (std::find(other.tensors.begin(), other.tensors.end(), id) == other.tensors.end()) {
          continue;
        }
        return Status::Refusal(
            KINGLET_INVALID_ARGUMENT, "sensitivity", "tensors", "each tensor in one pattern",
            views[id].name + " in " + QuotedName(other.name) + " and " + QuotedName(pattern));
      }
      group.tensors.push_back(id);
    }
    if (group.tensors.empty()) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, "sensitivity", "tensors",
                             "a float32 tensor that " + QuotedName(pattern) + " names", "none");
    }
    groups.push_back(std::move(group));
  }
  if (!patterns.empty()) return groups;
  for (TensorId id = 0; id < views.size(); ++id) {
    const bool named = std::find(names.begin(), names.end(), views[id].name) != names.end();
    if (named && IsFloat32(views[id])) {
      groups.push_back({views[id].name, {id}});
    }
  }
  if (!groups.empty()) return groups;
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "sensitivity", "tensors",
                         "float32 tensors, or --tensors", "none");
}

Status Sensitivity::MeasureBaseline(const TokenInput& input, std::span<const TensorGroup> groups,
                                    const std::function<void(uint64_t)>& progress,
                                    uint64_t most_bytes) {
  KINGLET_ASSIGN_OR_RETURN(unchanged_, Model::FromFile(file_, ModelOptions{}));
  std::vector<std::vector<WeightId>> changed;
  for (const TensorGroup& group : groups) changed.push_back(group.tensors);
  recorder_.emplace(*unchanged_, changed, most_bytes);
  KINGLET_ASSIGN_OR_RETURN(baseline_, RecordedLoss(unchanged_, input, progress, *recorder_));
  operations_ = CountOperations(*unchanged_, baseline_.bin_counts);
  return {};
}

uint64_t Sensitivity::BytesOf(const TensorGroup& group) const {
  uint64_t bytes = 0;
  for (const TensorId id : group.tensors) bytes += BytesOfView(file_->tensors()[id]);
  return bytes;
}

uint64_t Sensitivity::EntriesOf(const TensorGroup& group) const {
  uint64_t entries = 0;
  for (const TensorId id : group.tensors) entries += Count(file_->tensors()[id].shape);
  return entries;
}

uint64_t Sensitivity::NonzerosOf(const TensorGroup& group) const {
  uint64_t nonzeros = 0;
  for (const TensorId id : group.tensors) nonzeros += CountNonzeros(Original(id));
  return nonzeros;
}

bool TakesTable(const Shape& shape, const TensorChange& change) {
  if (shape.size() != 2) return false;
  if (const auto* low = std::get_if<RankChange>(&change)) {
    return low->rank < std::min(shape[0], shape[1]) && shape[1] <= kMaxLowRankColumns;
  }
  const auto* coded = std::get_if<CodesChange>(&change);
  if (coded == nullptr) return true;
  const uint64_t each = (coded->sub_vectors + coded->positions - 1) / coded->positions;
  if (coded->form == CodeForm::kSum) {
    return coded->sub_vectors % coded->positions == 0 && shape[0] >= each;
  }
  if (shape[1] % coded->positions != 0) return false;
  return coded->form == CodeForm::kSlim ? coded->sub_vectors <= shape[0] * coded->positions
                                        : shape[0] >= each;
}

bool Sensitivity::Takes(const TensorGroup& group, const TensorChange& change) const {
  if (std::holds_alternative<SparsityChange>(change)) {
    return std::all_of(group.tensors.begin(), group.tensors.end(),
                       [&](TensorId id) { return file_->tensors()[id].shape.size() == 2; });
  }
  if (std::holds_alternative<BitsChange>(change)) return true;
  const std::vector<TensorId> tables = TablesOf(file_->description());
  // The head of an adaptive softmax has no projection of its own.
  const auto* const softmax = FindBlock<AdaptiveSoftmax>(file_->description());
  const bool has_head = softmax != nullptr && softmax->head_table && !softmax->tails.empty() &&
                        std::holds_alternative<RankChange>(change);
  return std::all_of(group.tensors.begin(), group.tensors.end(), [&](TensorId id) {
    return std::find(tables.begin(), tables.end(), id) != tables.end() &&
           !(has_head && *softmax->head_table == id) &&
           TakesTable(file_->tensors()[id].shape, change);
  });
}

EncodedTensor Sensitivity::Original(TensorId id) const {
  const TensorView& view = file_->tensors()[id];
  EncodedTensor tensor = {view.name, view.shape, DenseF32{DecodedValues(view)}};
  tensor.pruned = view.mask.has_value();
  return tensor;
}

Result<uint64_t> Sensitivity::BytesAtBits(const TensorGroup& group, int bits) const {
  ModelPacker packer;
  for (const TensorId id : group.tensors) {
    KINGLET_ASSIGN_OR_RETURN(const ChangedTensor changed,
                             Changed(Original(id), BitsChange{bits}, 0, scale_by_));
    KINGLET_RETURN_IF_ERROR(packer.Add(changed.parts.front()));
  }
  uint64_t bytes = 0;
  for (const TensorView& view : packer.views()) bytes += BytesOfView(view);
  return bytes;
}

Result<Measurement> Sensitivity::Measure(const TensorGroup& group, const TensorChange& change,
                                         const TokenInput& input,
                                         const std::function<void(uint64_t)>& progress) const {
  ChangedModel changed;
  changed.views.assign(file_->tensors().begin(), file_->tensors().end());
  Measurement found;
  double error = 0, weight = 0;
  for (const TensorId id : group.tensors) {
    const EncodedTensor original = Original(id);
    const auto codebook = static_cast<TensorId>(changed.views.size());
    KINGLET_ASSIGN_OR_RETURN(const ChangedTensor tensor,
                             Changed(original, change, codebook, scale_by_));
    double squares = 0;
    for (const float value : std::get<DenseF32>(original.values).values) {
      squares += static_cast<double>(value) * value;
    }
    weight += squares;
    error += squares * tensor.relative_error * tensor.relative_error;
    found.entries += Count(original.shape);
    found.nonzeros += tensor.nonzeros;
    found.bytes += tensor.bytes.value_or(0);
    for (size_t part = 0; part < tensor.parts.size(); ++part) {
      KINGLET_RETURN_IF_ERROR(changed.packer.Add(tensor.parts[part]));
      const TensorView& view = changed.packer.views().back();
      if (!tensor.bytes) found.bytes += BytesOfView(view);
      if (part == 0) {
        changed.views[id] = view;
      } else {
        changed.views.push_back(view);
      }
    }
  }
  found.relative_error = weight > 0 ? std::sqrt(error / weight) : 0;
  // Equal values in an equal form change nothing. Another form may sum them in another order.
  if (found.relative_error == 0 && std::holds_alternative<SparsityChange>(change)) {
    if (progress) progress(baseline_.tokens);
    found.ran = false;
    found.nll = baseline_.nll;
    found.operations = operations_;
    return found;
  }
  const auto stored = [](const Vocabulary* words) {
    return words == nullptr ? std::nullopt : std::optional(words->stored());
  };
  std::vector<std::byte> bytes;
  {
    KINGLET_ASSIGN_OR_RETURN(
        const FileLayout layout,
        LayOutFile("sensitivity", {file_->description(), changed.views, stored(file_->vocabulary()),
                                   stored(file_->source_vocabulary()), file_->stored_tokenizer()}));
    bytes = layout.Bytes();
  }
  KINGLET_ASSIGN_OR_RETURN(std::shared_ptr<const ModelFile> file, ModelFile::FromBytes(bytes));
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model,
                           Model::FromFile(std::move(file), ModelOptions{}));
  const RecordedContext* recorded = recorder_ ? recorder_->Find(group.tensors) : nullptr;
  if (recorded != nullptr && !HaveTheSameNodes(unchanged_->plan(), model->plan())) {
    recorded = nullptr;  // for example, codes that replace a matrix
  }
  KINGLET_ASSIGN_OR_RETURN(const TextLoss loss, recorded != nullptr
                                                    ? LossAfter(*recorded, model, input, progress)
                                                    : LossOfText(model, input, progress));
  found.nll = loss.nll;
  found.standard_error = DifferenceError(loss, baseline_);
  found.operations = CountOperations(*model, baseline_.bin_counts);
  return found;
}

}  // namespace kinglet
