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

// A bound of the memory of the plan and its kernels without their weights, from the description
// alone.
uint64_t BytesOfPlan(const ModelDescription& description) {
  constexpr uint64_t kOwn = 65536, kLayer = 32768, kBin = 4096;
  uint64_t layers = 0, bins = 0;
  const auto add_embedding = [&](const AdaptiveEmbedding& embedding) {
    bins += embedding.bins.size();
    for (const KeptDefineUnit& unit : embedding.units) bins += 1 + unit.unit.layers.size();
  };
  const auto add = Overloaded{
      add_embedding,
      [&](const TransformerDecoder& decoder) { layers += decoder.layers.size(); },
      [&](const RecurrentDecoder& decoder) { layers += decoder.layers.size(); },
      [&](const DenseLayers& dense) { layers += dense.layers.size(); },
      [&](const AdaptiveSoftmax& softmax) { layers += softmax.tails.size(); },
      [&](const TransformerEncoder& encoder) {
        add_embedding(encoder.embedding);
        layers += encoder.stack.layers.size();
      },
      [&](const RecurrentEncoder& encoder) {
        add_embedding(encoder.embedding);
        layers += encoder.forward.size() + encoder.backward.size();
      },
      [&](const MaskedModel& masked) {
        add_embedding(masked.segments);
        layers += masked.stack.layers.size();
      },
      [](const NeuralCache&) {},
      [](const BagClassifier&) {},
  };
  for (const Block& block : description.blocks) std::visit(add, block);
  return kOwn + kLayer * layers + kBin * bins;
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

// Names the first node that the backend left to a reference kernel.
void WarnOfSubstitutes(const Model& model) {
  const auto kernels = model.kernels();
  const auto is_substitute = [](const Kernel& kernel) { return kernel.is_substitute; };
  const auto first = std::find_if(kernels.begin(), kernels.end(), is_substitute);
  if (first == kernels.end()) return;
  const auto count = std::count_if(first, kernels.end(), is_substitute);
  model.Log(LogLevel::kWarning,
            std::to_string(count) + " of " + std::to_string(kernels.size()) +
                " nodes run on reference kernels, which are slower; the first is " +
                model.plan().nodes[static_cast<size_t>(first - kernels.begin())].name);
}

// The model of which only this part is left.
ModelDescription PartOf(const ModelDescription& description, const UnitPart& part) {
  AdaptiveEmbedding embedding = *FindBlock<AdaptiveEmbedding>(description);
  KeptDefineUnit unit = embedding.units[part.unit];
  const auto first = embedding.bins.begin() + unit.first_bin;
  embedding.bins = {first, first + unit.bin_count};
  unit.first_bin = 0;
  unit.unit.layers.resize(part.layer);
  unit.tensors.resize(part.layer);
  embedding.width = static_cast<uint32_t>(OutputWidth(unit.unit));
  embedding.scale = 1;
  embedding.units = {std::move(unit)};
  ModelDescription left;
  left.vocabulary_size = description.vocabulary_size;
  left.blocks.emplace_back(std::move(embedding));
  return left;
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

// The memory that opening has taken from the budget, or from what it may take without a limit.
class Model::Opening {
 public:
  Opening(MemoryBudget& budget, const ModelFile& file)
      : budget_(budget),
        limited_(budget.limit() != MemoryBudget::kNoLimit),
        left_(limited_ ? budget.left() : kOpeningBytes + kOpeningBytesPerByte * file.file_size()) {}

  uint64_t left() const { return left_; }
  // Claims `bytes` for `what`. Call before the memory is allocated.
  Status Claim(const char* what, uint64_t bytes) {
    if (bytes > left_ || !budget_.Claim(bytes)) return Refuse(what, bytes);
    left_ -= bytes;
    return Status();
  }
  void Release(uint64_t bytes) {
    budget_.Release(bytes);
    left_ += bytes;
  }
  Status Refuse(const char* what, uint64_t bytes) const {
    return Status::Refusal(
        KINGLET_OUT_OF_MEMORY, "model", what,
        "at most " + std::to_string(left_) + " bytes, what " +
            (limited_ ? "the memory limit of " + std::to_string(budget_.limit()) + " leaves"
                      : "a file of its size may take without a memory limit"),
        std::to_string(bytes) +
            (limited_ ? "" : "; set memory_limit to open it if you trust the file"));
  }

 private:
  MemoryBudget& budget_;
  bool limited_;
  uint64_t left_;
};

Status Model::AddSpeltWords(Opening& opening) {
  if constexpr (!kSmallBuild) {
    KINGLET_RETURN_IF_ERROR(opening.Claim("spellings", SpeltWords::BytesOf(plan_, vocabulary())));
    KINGLET_ASSIGN_OR_RETURN(spelt_words_, SpeltWords::Of(plan_, vocabulary(), budget_));
    if (spelt_words_ != nullptr) plan_.letters = spelt_words_->Lengths();
  }
  return {};
}

Result<uint32_t> Model::Spell(std::string_view word) const {
  if (spells()) return spelt_words_->Number(word);
  return Status::Refusal(KINGLET_UNSUPPORTED, "model", "spelling",
                         "a model that keeps a character CNN (convert --keep-characters N)",
                         "one without");
}

Status Model::RefuseInput(uint32_t number, const std::string& asker,
                          const std::string& where) const {
  return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, asker, where,
                         "a number below " + std::to_string(vocabulary_size()) +
                             (spells() ? ", or that of a word that was spelt" : ""),
                         std::to_string(number));
}

void Model::SetSpelling(uint32_t number, StreamFrame& frame) const {
  if (!spells()) return;
  frame.spelling = spelt_words_->Find(number)->bytes;
  if (number >= vocabulary_size()) frame.spelt = number;
}

Status Model::BindToHost(const ReleaseBytes& release, Opening& opening) {
  uint64_t weights = 0;
  // Bytes of the file that are released while weights are laid out make room for weights.
  const uint64_t most = opening.left() + (release ? file_->file_size() : 0);
  const auto claim = [&](uint64_t bytes) {
    weights += bytes;
    if (weights > most) throw std::bad_alloc();
  };
  try {
    Result<std::vector<Kernel>> kernels = backend_->bind(plan_, layout_, {release, claim});
    if (!kernels.ok() && weights <= most) return kernels.status();
    if (kernels.ok()) kernels_ = std::move(kernels).value();
  } catch (const std::bad_alloc&) {
    if (weights <= most) throw;
  }
  if (weights > most) return opening.Refuse("weights", weights);
  opening.Release(file_->file_size() - file_->held_bytes());
  return opening.Claim("weights", weights);
}

// The weights go to the device's memory; the budget is of the host's.
Status Model::BindToDevice(const ReleaseBytes& release, Opening& opening) {
  KINGLET_ASSIGN_OR_RETURN(device_, backend_->bind_device(plan_, layout_, release));
  opening.Release(file_->file_size() - file_->held_bytes());
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
    model->session_memory_limit_ = options.session_memory_limit;
    model->budget_ = std::make_shared<MemoryBudget>(options.memory_limit);
    const ModelFile& read = *model->file_;
    Opening opening(*model->budget_, read);
    KINGLET_RETURN_IF_ERROR(opening.Claim("file", read.file_size()));
    KINGLET_RETURN_IF_ERROR(opening.Claim("words and text", read.table_bytes()));
    KINGLET_RETURN_IF_ERROR(opening.Claim("tokenizer", ModelText::BytesOf(read)));
    KINGLET_ASSIGN_OR_RETURN(model->text_, ModelText::Of(read, model->budget_));
    KINGLET_RETURN_IF_ERROR(opening.Claim("plan", BytesOfPlan(read.description())));
    KINGLET_ASSIGN_OR_RETURN(model->plan_,
                             options.only
                                 ? Lower(PartOf(read.description(), *options.only), read.tensors())
                                 : Lower(read));
    KINGLET_RETURN_IF_ERROR(model->AddSpeltWords(opening));
    KINGLET_ASSIGN_OR_RETURN(model->layout_, LayOut(model->plan_, model->backend_->real_bytes));
    KINGLET_RETURN_IF_ERROR(model->backend_->bind_device ? model->BindToDevice(release, opening)
                                                         : model->BindToHost(release, opening));

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
