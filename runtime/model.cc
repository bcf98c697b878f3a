#include "runtime/model.h"

#include <algorithm>
#include <map>
#include <new>
#include <set>
#include <utility>
#include <variant>

#include "format/overloaded.h"
#include "format/row_reader.h"
#include "runtime/lower/lower.h"

namespace kinglet {

namespace {

// The bytes of the rows of relative positions, which every backend keeps as reals.
uint64_t BytesOfRelativeRows(const WindowAttention& op) {
  return std::visit(
      Overloaded{[]<OneOf<std::monostate, SlotColumns> Kind>(const Kind&) { return uint64_t{0}; },
                 [&](const RelativeRows& relative) {
                   return relative.Count(op.window) * op.heads * op.key_size * sizeof(float);
                 }},
      op.positions);
}

// The least memory that a backend can hold the plan's weights in: the integers of a product's
// matrix in their own bits, its reals in 32. Everything else may be read from the file.
uint64_t LeastBytes(const Plan& plan) {
  std::set<WeightId> matrices;
  uint64_t bytes = 0;
  const auto add = Overloaded{
      [&](const MatVec& op) { matrices.insert(op.weight); },
      [&](const PartialProducts& op) {
        matrices.insert(plan.weights[op.table].coded()->scheme.codebook);
      },
      [&](const WindowAttention& op) { bytes += BytesOfRelativeRows(op); },
      []<OneOf<CacheAppend, EmbedRow, LayerNorm, CodedSums, Quantise, Add, AddScalar,
               AddPositionRow, AddSinusoids, AddQueryBias, LogSumExp, CacheWeights, LstmGates,
               GruGates, RnnGates, QrnnGates, BagAppend, BagFeatures, ScaleShiftRelu, StoreRow,
               LoadRow, SourceAttention, RootMeanSquareNorm, ApplyActivation, Join>
             MayReadTheFile>(const MayReadTheFile&) {}};
  for (const Step& step : plan.steps) std::visit(add, step.op);
  for (const WeightId id : matrices) {
    const auto bits = static_cast<uint64_t>(RowReader::IntegerBits(plan.weights[id]));
    bytes += Count(plan.weights[id].shape) / 8 * (bits != 0 ? bits : 32);
  }
  return bytes;
}

// The bytes of the weights that the kernels hold. Memory that several of them share counts once.
uint64_t BytesOf(std::span<const Kernel> kernels) {
  std::map<const std::byte*, uint64_t> sizes;
  for (const Kernel& kernel : kernels) {
    for (const auto* ranges : {&kernel.weights, &kernel.weights_of_many}) {
      for (const MemoryRange& range : *ranges) {
        uint64_t& size = sizes[range.data()];
        size = std::max<uint64_t>(size, range.size());
      }
    }
  }
  uint64_t bytes = 0;
  for (const auto& [start, size] : sizes) bytes += size;
  return bytes;
}

Status OverLimit(const ModelFile& file, uint64_t limit, uint64_t weights) {
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, "model", "memory",
                         "at most " + std::to_string(limit) + " bytes, the memory limit",
                         std::to_string(file.held_bytes()) + " of the file and " +
                             std::to_string(weights) + " of weights");
}

std::string Describe(const Model& model) {
  return "model " + model.file().digest() + ": " + std::to_string(model.file().file_size()) +
         " bytes, " + std::to_string(model.vocabulary_size()) + " words, backend " +
         std::string(model.backend().name) +
         (model.device() == nullptr
              ? ""
              : " on " + model.device()->device_name() + ", " +
                    std::to_string(model.device()->weight_bytes()) + " bytes of weights there");
}

// Names the first step that the backend left to a reference kernel.
void WarnOfSubstitutes(const Model& model) {
  const auto kernels = model.kernels();
  const auto is_substitute = [](const Kernel& kernel) { return kernel.is_substitute; };
  const auto first = std::find_if(kernels.begin(), kernels.end(), is_substitute);
  if (first == kernels.end()) return;
  const auto count = std::count_if(first, kernels.end(), is_substitute);
  model.Log(LogLevel::kWarning,
            std::to_string(count) + " of " + std::to_string(kernels.size()) +
                " steps run on reference kernels, which are slower; the first is " +
                model.plan().steps[static_cast<size_t>(first - kernels.begin())].name);
}

ReleaseBytes ReleaserOf(ModelFile& file) {
  return [&file](WeightId weight, MemoryRange bytes) { file.Release(weight, bytes); };
}

}  // namespace

Result<std::shared_ptr<const Model>> Model::Open(const std::string& path,
                                                 const ModelOptions& options) {
  KINGLET_ASSIGN_OR_RETURN(auto file, ModelFile::Open(path, options.memory_limit));
  return Bind(file, ReleaserOf(*file), options);
}

Result<std::shared_ptr<const Model>> Model::FromBytes(std::span<const std::byte> bytes,
                                                      const ModelOptions& options) {
  KINGLET_ASSIGN_OR_RETURN(auto file, ModelFile::FromBytes(bytes, options.memory_limit));
  return Bind(file, ReleaserOf(*file), options);
}

Result<std::shared_ptr<const Model>> Model::FromFile(std::shared_ptr<const ModelFile> file,
                                                     const ModelOptions& options) {
  return Bind(std::move(file), {}, options);
}

Status Model::BindToHost(const ReleaseBytes& release) {
  const uint64_t file_bytes = file_->file_size();
  const uint64_t least = LeastBytes(plan_);
  const uint64_t released = release ? file_bytes : 0;  // at most, once bound
  if (!budget_->Claim(file_bytes) || budget_->left() + released < least) {
    return OverLimit(*file_, budget_->limit(), least);
  }
  KINGLET_ASSIGN_OR_RETURN(kernels_, backend_->bind(plan_, layout_, release));
  budget_->Release(file_bytes - file_->held_bytes());
  const uint64_t weights = std::max(least, BytesOf(kernels_));
  if (!budget_->Claim(weights)) return OverLimit(*file_, budget_->limit(), weights);
  return Status();
}

// The weights go to the device's memory; the budget is of the host's.
Status Model::BindToDevice(const ReleaseBytes& release) {
  const uint64_t file_bytes = file_->file_size();
  if (!budget_->Claim(file_bytes)) return OverLimit(*file_, budget_->limit(), 0);
  KINGLET_ASSIGN_OR_RETURN(device_, backend_->bind_device(plan_, layout_, release));
  budget_->Release(file_bytes - file_->held_bytes());
  return Status();
}

Result<std::shared_ptr<const Model>> Model::Bind(std::shared_ptr<const ModelFile> file,
                                                 const ReleaseBytes& release,
                                                 const ModelOptions& options) {
  try {
    std::shared_ptr<Model> model(new Model);
    model->file_ = std::move(file);
    model->backend_ = options.own_backend;
    if (model->backend_ == nullptr) {
      KINGLET_ASSIGN_OR_RETURN(model->backend_, FindBackend(options.backend));
    }
    KINGLET_ASSIGN_OR_RETURN(model->text_, ModelText::Of(*model->file_));
    KINGLET_ASSIGN_OR_RETURN(model->plan_, Lower(*model->file_));
    KINGLET_ASSIGN_OR_RETURN(model->layout_, LayOut(model->plan_, model->backend_->real_bytes));
    model->session_memory_limit_ = options.session_memory_limit;
    model->budget_ = std::make_shared<MemoryBudget>(options.memory_limit);
    KINGLET_RETURN_IF_ERROR(model->backend_->bind_device ? model->BindToDevice(release)
                                                         : model->BindToHost(release));

    if (model->backend_->cluster_functions != nullptr) {
      model->cluster_functions_ = model->backend_->cluster_functions();
    }
    model->log_ = options.log;
    model->Log(LogLevel::kInfo, Describe(*model));
    WarnOfSubstitutes(*model);
    return std::shared_ptr<const Model>(std::move(model));
  } catch (const std::bad_alloc&) {
    return Status(KINGLET_OUT_OF_MEMORY, "model: out of memory while laying out the weights");
  }
}

}  // namespace kinglet
