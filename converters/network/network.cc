#include "converters/network/network.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "converters/checkpoints/derived_weights.h"
#include "converters/checkpoints/quoted.h"
#include "format/limits.h"
#include "format/message_text.h"

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

std::vector<std::string> QuotedAll(std::vector<std::string> names) {
  for (std::string& name : names) name = Quoted(name);
  return names;
}

// The part of a tensor that has this shape and begins at `row` and `column`.
TensorRef PartAt(const CheckpointTensor& tensor, const Shape& shape, uint64_t row,
                 uint64_t column) {
  TensorRef ref{tensor.name};
  if (tensor.shape == shape) return ref;
  if (tensor.shape.size() == 1) {
    ref.columns = TensorRef::Range{column, column + Count(shape)};
    return ref;
  }
  ref.rows = TensorRef::Range{row, row + Rows(shape)};
  if (Cols(shape) != Cols(tensor.shape)) {
    ref.columns = TensorRef::Range{column, column + Cols(shape)};
  }
  return ref;
}

std::string KeyOf(const std::optional<TensorRef::Range>& range) {
  return range ? std::to_string(range->begin) + ":" + std::to_string(range->end) : ":";
}

}  // namespace

bool IsBias(std::string_view name) {
  return name.substr(name.rfind('.') + 1).find("bias") != name.npos;
}

Status ReadTensors(LoadedModel& model) {
  if (!model.read) return {};
  std::vector<EncodedTensor>& tensors = model.draft.tensors;
  for (size_t id = 0; id < tensors.size(); ++id) {
    KINGLET_RETURN_IF_ERROR(model.read(static_cast<TensorId>(id), tensors[id]));
  }
  model.read = nullptr;
  return {};
}

Network::Network(std::span<const CheckpointTensor> weights, NameReport* report)
    : order_(weights), report_(report) {
  for (const CheckpointTensor& tensor : weights) {
    if (!by_name_.emplace(tensor.name, &tensor).second) doubled_.push_back(QuotedName(tensor.name));
  }
}

const CheckpointTensor* Network::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

uint32_t Network::Dimension(std::string_view name, size_t axis) const {
  const CheckpointTensor* tensor = Find(name);
  const bool has =
      tensor != nullptr && axis < tensor->shape.size() && tensor->shape[axis] <= kMaxDimension;
  return has ? static_cast<uint32_t>(tensor->shape[axis]) : 0;
}

const CheckpointTensor* Network::ClaimUnshaped(const std::string& name, bool required) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    if (required) missing_.push_back(name);
    return nullptr;
  }
  claimed_.insert(found->second->name);
  return found->second;
}

const CheckpointTensor* Network::Claim(const std::string& name, const Shape& shape, bool required) {
  const CheckpointTensor* tensor = ClaimUnshaped(name, required);
  const bool unknown = std::find(shape.begin(), shape.end(), 0u) != shape.end();
  if (tensor == nullptr || unknown || tensor->shape == shape) return tensor;
  if (tensor->is_zeros) {
    return &Own({name, shape, [n = Count(shape)]() -> Result<std::vector<float>> {
                   return std::vector<float>(n);
                 }});
  }
  NoteMisshaped(*tensor, ShapeText(shape));
  return nullptr;
}

std::optional<std::pair<const CheckpointTensor*, std::string>> Network::OnlyOne(
    const std::string& first, const std::string& second) const {
  if (Has(first) == Has(second)) return std::nullopt;
  return Has(first) ? std::pair(Find(first), second) : std::pair(Find(second), first);
}

bool Network::Share(const std::string& first, const std::string& second, bool is_stated) {
  const auto only = OnlyOne(first, second);
  if (!only) return false;
  const auto& [tensor, name] = *only;
  model.shared.push_back(name);
  if (!is_stated) assumed_.push_back(name);
  by_name_.emplace(shared_names_.emplace_back(name),
                   tensor->replaced != nullptr ? tensor->replaced.get() : tensor);
  return true;
}

void Network::MayShare(const std::string& first, const std::string& second,
                       const std::string& how) {
  const auto only = OnlyOne(first, second);
  if (only)
    ties_to_state_.push_back("if " + only->second + " is " + only->first->name + ": " + how);
}

void Network::RemoveExcluded(const std::string& name) {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) excluded_.insert(found->first);
}

void Network::NoteMisshaped(const CheckpointTensor& tensor, const std::string& expected) {
  misshaped_.push_back("shape " + tensor.name + ": expected " + expected + ", found " +
                       ShapeText(tensor.shape));
}

Result<bool> Network::Tie(const CheckpointTensor& first, const CheckpointTensor& second,
                          const std::string& option) {
  if (report_ != nullptr) return false;
  KINGLET_ASSIGN_OR_RETURN(const bool same, SameParameter(first, second));
  if (!option.empty()) KINGLET_RETURN_IF_ERROR(CheckStatedTie(option, first, second, same));
  if (same && &first != &second) {
    const auto known = tied_.find(&first);
    tied_.emplace(&second, known == tied_.end() ? &first : known->second);
  }
  return same;
}

bool Network::IsMade(std::string_view name) const {
  const CheckpointTensor* tensor = Find(name);
  return tensor != nullptr && !tensor->made.empty();
}

void Network::MarkUnused(const std::vector<std::string>& names) {
  std::string first;
  size_t others = 0;
  for (const std::string& name : names) {
    if (!Has(name) || IsMade(name) || Claimed(name) || Find(name)->name != name) continue;
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

TensorId Network::AddReference(const std::string& name, const Shape& shape, Role role,
                               Reference reference) {
  std::string key;
  for (Part& part : reference.parts) {
    if (const auto tied = tied_.find(part.tensor); tied != tied_.end()) part.tensor = tied->second;
    key += std::to_string(reinterpret_cast<uintptr_t>(part.tensor)) + "[" + KeyOf(part.ref.rows) +
           "," + KeyOf(part.ref.columns) + (part.ref.transpose ? "T" : "") + "]";
  }
  const auto id = static_cast<TensorId>(references_.size());
  if (!reference.parts.empty()) {
    const auto [known, added] =
        added_.emplace(key + reference.change.Text() + ShapeText(shape), id);
    if (!added) return known->second;
  }
  references_.push_back(std::move(reference));
  model.draft.tensors.push_back({name, shape, DenseF32{}, false});
  if (role != Role::kKept) model.quantisable.push_back(id);
  if (role == Role::kPrunedAlso) model.prunable.push_back(id);
  return id;
}

TensorId Network::Add(const std::string& name, const Shape& shape, Role role,
                      const CheckpointTensor* tensor, Origin origin) {
  if (tensor == nullptr) return AddReference(name, shape, role, {});
  const size_t count = references_.size();
  const TensorId id = AddReference(
      name, shape, role, {{{tensor, PartAt(*tensor, shape, origin.row, origin.column)}}, {}});
  if (references_.size() > count && !tensor->made.empty()) {
    model.stand_ins.push_back({id, tensor->made, origin.row});
  }
  return id;
}

TensorId Network::AddJoined(const std::string& name, const Shape& shape, Role role,
                            const std::vector<const CheckpointTensor*>& tensors,
                            const Change& change) {
  Reference reference{{}, change};
  for (const CheckpointTensor* tensor : tensors) {
    if (tensor == nullptr) return AddReference(name, shape, role, {});
    reference.parts.push_back({tensor, {tensor->name}});
  }
  return AddReference(name, shape, role, std::move(reference));
}

TensorId Network::AddTransposed(const std::string& name, const Shape& shape, Role role,
                                const CheckpointTensor* tensor, const Change& change) {
  if (tensor == nullptr) return AddReference(name, shape, role, {});
  TensorRef ref{tensor->name};
  ref.transpose = true;
  return AddReference(name, shape, role, {{{tensor, ref}}, change});
}

TensorId Network::AddValues(const std::string& name, const Shape& shape,
                            decltype(EncodedTensor::values) values, Role role) {
  const TensorId id = AddReference(name, shape, role, {});
  model.draft.tensors[id].values = std::move(values);
  return id;
}

TensorId Network::AddComputed(const std::string& name, const Shape& shape, Change made) {
  const TensorId id = AddReference(name, shape, Role::kKept, {{}, std::move(made)});
  MarkDerived(id);
  return id;
}

TensorId Network::AddCoded(const std::string& name, CodedTable table,
                           std::optional<uint64_t> seed) {
  const Shape shape = {table.rows, Cols(table)};
  DraftTable made = ForDraft(std::move(table), seed);
  made.table.scheme.codebook = AddValues(name + ".codebook", made.codebook_shape,
                                         std::move(made.codebook), Role::kPrunedAlso);
  return AddValues(name, shape, std::move(made.table), Role::kKept);
}

Result<const CheckpointTensor*> Network::Find(const TensorRef& ref) const {
  const CheckpointTensor* found = Find(ref.name);
  if (found == nullptr) return RefuseTensor(ref, "a tensor of this name", "none");
  return found;
}

Result<Shape> Network::ShapeOf(const TensorRef& ref) const {
  KINGLET_ASSIGN_OR_RETURN(const CheckpointTensor* tensor, Find(ref));
  return PartShape(ref, tensor->shape);
}

Result<TensorValues<float>> Network::Read(const TensorRef& ref) const {
  KINGLET_ASSIGN_OR_RETURN(const CheckpointTensor* tensor, Find(ref));
  TensorValues<float> part;
  KINGLET_ASSIGN_OR_RETURN(part.shape, PartShape(ref, tensor->shape));
  KINGLET_ASSIGN_OR_RETURN(part.values, ReadPart(*tensor, ref));
  return part;
}

Result<std::vector<float>> Network::Read(const TensorRef& ref, const Shape& shape) const {
  KINGLET_ASSIGN_OR_RETURN(TensorValues<float> read, Read(ref));
  if (read.shape == shape) return std::move(read.values);
  return RefuseTensor(ref, "shape " + ShapeText(shape), ShapeText(read.shape));
}

Result<TensorValues<int64_t>> Network::ReadIntegers(const TensorRef& ref) const {
  KINGLET_ASSIGN_OR_RETURN(const CheckpointTensor* tensor, Find(ref));
  return ReadIntegerPart(*tensor, ref);
}

Result<TensorId> Network::AddJoinedRefs(const std::string& name, const std::vector<TensorRef>& refs,
                                        const Shape& shape, Role role, const Change& change) {
  Reference reference{{}, change};
  for (const TensorRef& ref : refs) {
    KINGLET_ASSIGN_OR_RETURN(const CheckpointTensor* tensor, Find(ref));
    KINGLET_RETURN_IF_ERROR(PartShape(ref, tensor->shape).status());
    reference.parts.push_back({tensor, ref});
  }
  return AddReference(name, shape, role, std::move(reference));
}

Result<TensorId> Network::AddRef(const std::string& name, const TensorRef& ref, Use use,
                                 const Change& change) {
  KINGLET_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(ref));
  const size_t rank = use == Use::kTable || use == Use::kMatrix ? 2 : 1;
  if (shape.size() != rank) {
    return RefuseModel(name, rank == 2 ? "a matrix" : "a vector",
                       ShapeText(shape) + " of " + QuotedName(ref.name));
  }
  if (use == Use::kMatrix) KINGLET_RETURN_IF_ERROR(CheckOriented(ref, shape));
  const Role role = rank == 2           ? Role::kPrunedAlso
                    : use == Use::kKept ? Role::kKept
                                        : Role::kQuantised;
  return AddJoinedRefs(name, {ref}, shape, role, change);
}

Result<std::optional<TensorId>> Network::AddOptionalRef(const std::string& name,
                                                        const std::optional<TensorRef>& ref,
                                                        Use use, const Change& change) {
  if (!ref) return std::optional<TensorId>();
  KINGLET_ASSIGN_OR_RETURN(const TensorId id, AddRef(name, *ref, use, change));
  return std::optional(id);
}

std::vector<std::string> Network::DerivedFaults() const {
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

std::vector<std::string> Network::Unused() const {
  std::vector<std::string> unused;
  for (const CheckpointTensor& tensor : order_) {
    // Modules without a state of their own leave an empty one (torch's get_extra_state).
    const bool is_empty_state = tensor.name.ends_with("_extra_state") &&
                                std::count(tensor.shape.begin(), tensor.shape.end(), 0u) > 0;
    if (tensor.spare || claimed_.contains(tensor.name) || excluded_.contains(tensor.name) ||
        IsBatchCounter(tensor.name) || is_empty_state) {
      continue;
    }
    unused.push_back(tensor.name);
  }
  return unused;
}

Status Network::CheckNames(const std::string& network) const {
  std::vector<std::string> faults, missing = missing_, unused = Unused();
  if (report_ != nullptr) {
    *report_ = {true, missing_, std::move(unused)};
    return Status(KINGLET_INVALID_CHECKPOINT, "only the names of " + network + " were compared");
  }
  std::vector<std::string> patterns;  // of a recipe
  std::string not_its_own;            // unused, and from the recipe itself
  for (std::string& name : unused) {
    if (Find(name)->is_zeros || IsMade(name)) not_its_own = Quoted(name);
    patterns.push_back(Quoted(name));
    name = QuotedName(name);
  }
  // A tensor that nothing reads may be the one that a tie replaced, under another name.
  if (!unused.empty()) missing.insert(missing.end(), assumed_.begin(), assumed_.end());
  if (!missing.empty()) faults.push_back(Joined("missing ", missing, ", "));
  if (!unused.empty()) faults.push_back(Joined("unused ", unused, ", "));
  if (!doubled_.empty()) faults.push_back(Joined("twice ", doubled_, ", "));
  if (!misshaped_.empty()) faults.push_back(Joined("", misshaped_, "; "));
  if (const std::vector<std::string> derived = DerivedFaults(); !derived.empty()) {
    faults.push_back(Joined("", derived, "; "));
  }
  if (faults.empty()) return {};
  const bool only_unused = faults.size() == 1 && !unused.empty();
  const bool of_recipe = network.starts_with("the recipe");  // which need not name a bias
  const bool only_biases = !of_recipe && faults.size() == 1 && !missing.empty() &&
                           std::all_of(missing.begin(), missing.end(), IsBias);
  std::string next;
  if (!not_its_own.empty()) {
    next = " (delete " + not_its_own + " from the recipe: the network has no such tensor)";
  } else if (only_unused) {
    next = " (a --recipe with \"unused\": [" + Joined("", patterns, ", ") +
           "] omits what the network does not compute with)";
  } else if (only_biases) {
    next = " (of a network without them a --recipe with \"zeros\": [" +
           Joined("", QuotedAll(missing), ", ") + "]; if they were lost, save it with them)";
  } else if (unused.empty() && !ties_to_state_.empty()) {
    next = " (" + Joined("", ties_to_state_, "; ") + ")";
  }
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", "state dict",
                         "the tensors of " + network, Joined("", faults, "; ") + next);
}

// Reads one tensor of the model at a time. Outlives the network and owns what it needs.
class Network::Reader {
 public:
  explicit Reader(std::vector<Reference> references)
      : references_(std::make_shared<std::vector<Reference>>(std::move(references))),
        tensors_(std::make_shared<std::deque<CheckpointTensor>>()) {
    std::unordered_map<const CheckpointTensor*, const CheckpointTensor*> copies;
    for (Reference& reference : *references_) {
      for (Part& part : reference.parts) {
        const CheckpointTensor*& copy = copies[part.tensor];
        if (copy == nullptr) copy = &tensors_->emplace_back(*part.tensor);
        part.tensor = copy;
      }
    }
  }

  Status operator()(TensorId id, EncodedTensor& tensor) const {
    const Reference& reference = references_->at(id);
    if (reference.parts.empty() && reference.change.functions.empty()) return {};
    std::vector<float> values;
    for (const Part& part : reference.parts) {
      KINGLET_ASSIGN_OR_RETURN(std::vector<float> more, ReadPart(*part.tensor, part.ref));
      if (values.empty()) {
        values = std::move(more);
      } else {
        values.insert(values.end(), more.begin(), more.end());
      }
    }
    auto changed = reference.change.Apply(std::move(values));
    if (!changed.ok()) {
      return {changed.status().code(),
              "recipe: " + tensor.name + ", " + changed.status().message()};
    }
    values = *std::move(changed);
    if (values.size() != Count(tensor.shape)) {
      return RefuseModel(tensor.name, std::to_string(Count(tensor.shape)) + " values",
                         std::to_string(values.size()));
    }
    tensor.values = DenseF32{std::move(values)};
    return {};
  }

 private:
  // Shared by the copies of a std::function.
  std::shared_ptr<std::vector<Reference>> references_;  // by tensor id
  std::shared_ptr<std::deque<CheckpointTensor>> tensors_;
};

LoadedModel Network::Finish() {
  for (const Reference& reference : references_) {
    LoadedModel::Origin& origin = model.origins.emplace_back();
    origin.change = reference.change;
    for (const Part& part : reference.parts) {
      origin.parts.push_back(part.ref);
      origin.parts.back().name = part.tensor->name;
    }
  }
  model.read = Reader(std::move(references_));
  return std::move(model);
}

Result<LoadedModel> Network::Build(const std::string& network) {
  KINGLET_RETURN_IF_ERROR(CheckNames(network));
  return Finish();
}

}  // namespace kinglet
