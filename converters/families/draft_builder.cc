#include "converters/families/draft_builder.h"

#include <algorithm>
#include <utility>

#include "converters/checkpoints/derived_weights.h"
#include "converters/checkpoints/quoted.h"
#include "converters/matrix_order.h"

namespace kinglet {
namespace {

// Longer lists of names are truncated, so that a hostile file cannot make an endless line.
constexpr size_t kMaxListed = 1000;

std::string Joined(const std::string& what, const std::vector<std::string>& items,
                   const char* separator) {
  std::string text = what;
  for (size_t i = 0; i < std::min(items.size(), kMaxListed); ++i) {
    text += (i == 0 ? "" : separator) + items[i];
  }
  if (items.size() > kMaxListed) {
    text += " and " + std::to_string(items.size() - kMaxListed) + " more";
  }
  return text;
}

// PyTorch's batch norms count the batches that they have seen; no network computes with that.
bool IsBatchCounter(std::string_view name) {
  constexpr std::string_view kCounter = "num_batches_tracked";
  return name.ends_with(kCounter) &&
         (name.size() == kCounter.size() || name[name.size() - kCounter.size() - 1] == '.');
}

}  // namespace

DraftBuilder::DraftBuilder(std::span<const CheckpointTensor> weights) : order_(weights) {
  for (const CheckpointTensor& tensor : weights) by_name_.emplace(tensor.name, &tensor);
}

const CheckpointTensor* DraftBuilder::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const CheckpointTensor* DraftBuilder::ClaimUnshaped(const std::string& name, bool required) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    if (required) missing_.push_back(name);
    return nullptr;
  }
  claimed_.insert(found->first);
  return found->second;
}

const CheckpointTensor* DraftBuilder::Claim(const std::string& name, const Shape& shape,
                                            bool required) {
  const CheckpointTensor* tensor = ClaimUnshaped(name, required);
  if (tensor == nullptr || tensor->shape == shape) return tensor;
  NoteMisshaped(*tensor, ShapeText(shape));
  return nullptr;
}

void DraftBuilder::RemoveExcluded(const std::string& name) {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) excluded_.insert(found->first);
}

bool DraftBuilder::IsMade(std::string_view name) const {
  const CheckpointTensor* tensor = Find(name);
  return tensor != nullptr && !tensor->made.empty();
}

const CheckpointTensor* DraftBuilder::ForOutput(const CheckpointTensor* inward) {
  if (inward == nullptr || inward->replaced == nullptr) return inward;
  if (inward->replaced->shape != inward->shape) {
    NoteMisshaped(*inward->replaced, ShapeText(inward->shape));
  }
  return inward->replaced.get();
}

void DraftBuilder::MarkUnused(const std::vector<std::string>& names) {
  std::string first;
  size_t others = 0;
  for (const std::string& name : names) {
    if (!Has(name) || IsMade(name) || Claimed(name)) continue;
    RemoveExcluded(name);
    if (first.empty()) {
      first = name;
    } else {
      ++others;
    }
  }
  if (first.empty()) return;
  const std::string more = " and " + std::to_string(others) + (others == 1 ? " other" : " others");
  model.notes.push_back(first + (others == 0 ? " is" : more + " are") +
                        " marked as unused, as the recipe makes the input");
}

void DraftBuilder::NoteMisshaped(const CheckpointTensor& tensor, const std::string& expected) {
  misshaped_.push_back("shape " + tensor.name + ": expected " + expected + ", found " +
                       ShapeText(tensor.shape));
}

TensorId DraftBuilder::Add(const std::string& name, const Shape& shape, Role role,
                           const CheckpointTensor* tensor, Origin origin) {
  const TensorId id = AddInput(name, shape, role, {tensor, origin, {}});
  if (tensor != nullptr && !tensor->made.empty()) {
    model.stand_ins.push_back({id, tensor->made, origin.row});
  }
  return id;
}

TensorId DraftBuilder::AddInput(const std::string& name, const Shape& shape, Role role,
                                Input input) {
  const auto id = static_cast<TensorId>(inputs_.size());
  inputs_.push_back(std::move(input));
  model.draft.tensors.push_back({name, shape, DenseF32{}, false});
  if (role != Role::kKept) model.quantisable.push_back(id);
  if (role == Role::kPrunedAlso) model.prunable.push_back(id);
  return id;
}

TensorId DraftBuilder::AddMade(const std::string& name, const Shape& shape, Role role,
                               const CheckpointTensor* tensor, Make make) {
  return AddInput(name, shape, role, {tensor, {}, std::move(make)});
}

TensorId DraftBuilder::AddMade(const std::string& name, const Shape& shape, Role role,
                               const std::vector<const CheckpointTensor*>& tensors, Make make) {
  std::vector<CheckpointTensor> others;
  for (size_t i = 1; i < tensors.size(); ++i) {
    // A missing tensor ends the conversion before values are made.
    if (tensors[i] != nullptr) others.push_back(*tensors[i]);
  }
  return AddMade(
      name, shape, role, tensors.front(),
      [others, make = std::move(make)](std::vector<float> values) -> Result<std::vector<float>> {
        uint64_t count = values.size();
        for (const CheckpointTensor& other : others) count += CountEntries(other.shape);
        values.reserve(count);
        for (const CheckpointTensor& other : others) {
          KINGLET_ASSIGN_OR_RETURN(const auto more, ReadFinite(other));
          values.insert(values.end(), more.begin(), more.end());
        }
        return make(std::move(values));
      });
}

TensorId DraftBuilder::AddTransposed(const std::string& name, const Shape& shape, Role role,
                                     const CheckpointTensor* tensor) {
  const TensorId id =
      AddMade(name, shape, role, tensor,
              [rows = shape[1], columns = shape[0]](const std::vector<float>& values) {
                return Transposed(values, rows, columns);
              });
  MarkDerived(id);
  return id;
}

TensorId DraftBuilder::AddCoded(const std::string& name, CodedTable table) {
  const Shape shape = {table.rows, Cols(table)};
  DraftTable made = ForDraft(std::move(table), std::nullopt);
  made.table.scheme.codebook =
      Add(name + ".codebook", made.codebook_shape, Role::kPrunedAlso, nullptr);
  model.draft.tensors.back().values = std::move(made.codebook);
  const TensorId id = Add(name, shape, Role::kKept, nullptr);
  model.draft.tensors.back().values = std::move(made.table);
  return id;
}

TensorId DraftBuilder::AddComputed(const std::string& name, std::vector<float> values) {
  const Shape shape = {values.size()};
  return AddComputed(name, shape, std::move(values));
}

TensorId DraftBuilder::AddComputed(const std::string& name, const Shape& shape,
                                   std::vector<float> values) {
  const TensorId id = Add(name, shape, Role::kKept, nullptr);
  model.draft.tensors[id].values = DenseF32{std::move(values)};
  MarkDerived(id);
  return id;
}

std::vector<std::string> DraftBuilder::DerivedFaults() const {
  std::vector<std::string> faults;
  for (const DerivedWeight& weight : DerivedWeights(order_)) {
    const auto asked = [this](const std::string& name) { return claimed_.contains(name); };
    const bool missing = std::find(missing_.begin(), missing_.end(), weight.name) != missing_.end();
    const bool parts =
        !weight.dropped && std::any_of(weight.trained.begin(), weight.trained.end(), asked);
    if (missing || parts || asked(weight.name)) faults.push_back(weight.text);
  }
  return faults;
}

Status DraftBuilder::CheckNames(const std::string& network) const {
  std::vector<std::string> unused;
  for (const CheckpointTensor& tensor : order_) {
    if (tensor.spare || claimed_.contains(tensor.name) || excluded_.contains(tensor.name) ||
        IsBatchCounter(tensor.name)) {
      continue;
    }
    unused.push_back(QuotedName(tensor.name));
  }
  std::vector<std::string> faults;
  if (!missing_.empty()) faults.push_back(Joined("missing ", missing_, ", "));
  if (!unused.empty()) faults.push_back(Joined("unused ", unused, ", "));
  if (!misshaped_.empty()) faults.push_back(Joined("", misshaped_, "; "));
  if (const std::vector<std::string> derived = DerivedFaults(); !derived.empty()) {
    faults.push_back(Joined("", derived, "; "));
  }
  if (faults.empty()) return {};
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", "state dict",
                         "the tensors of " + network, Joined("", faults, "; "));
}

// Reads one tensor of the draft at a time. A reader outlives the builder and owns what it needs.
class DraftBuilder::Reader {
 public:
  explicit Reader(const std::vector<Input>& inputs) {
    for (const Input& input : inputs) {
      parts_.push_back(
          {input.tensor == nullptr ? CheckpointTensor() : *input.tensor, input.origin, input.make});
    }
  }

  Status operator()(TensorId id, EncodedTensor& tensor) const {
    const auto& [stored, origin, make] = parts_[id];
    if (!stored.values) return {};  // computed
    std::vector<float> values;
    if (make) {
      KINGLET_ASSIGN_OR_RETURN(values, ReadFinite(stored));
      KINGLET_ASSIGN_OR_RETURN(values, make(std::move(values)));
    } else if (tensor.shape == stored.shape) {
      KINGLET_ASSIGN_OR_RETURN(values, ReadFinite(stored));
    } else {
      KINGLET_ASSIGN_OR_RETURN(values, ReadPart(stored, origin, tensor.shape));
    }
    tensor.values = DenseF32{std::move(values)};
    return {};
  }

 private:
  struct Part {
    CheckpointTensor stored;
    Origin origin;
    Make make;
  };

  static Result<std::vector<float>> ReadPart(const CheckpointTensor& stored, const Origin& origin,
                                             const Shape& shape) {
    if (stored.shape.size() == 1) return ReadFiniteRows(stored, origin.column, Count(shape));
    const uint64_t rows = Rows(shape), columns = Cols(shape), width = Cols(stored.shape);
    KINGLET_ASSIGN_OR_RETURN(std::vector<float> values, ReadFiniteRows(stored, origin.row, rows));
    if (columns == width) return values;
    std::vector<float> part;
    part.reserve(rows * columns);
    for (uint64_t row = 0; row < rows; ++row) {
      const auto first = values.begin() + static_cast<ptrdiff_t>(row * width + origin.column);
      part.insert(part.end(), first, first + static_cast<ptrdiff_t>(columns));
    }
    return part;
  }

  std::vector<Part> parts_;  // by tensor id
};

void DraftBuilder::DeferValues() { model.read = Reader(inputs_); }

Status DraftBuilder::ReadValues() {
  DeferValues();
  return ReadTensors(model);
}

}  // namespace kinglet
