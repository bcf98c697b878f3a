// The model families this build can convert: names of a checkpoint's tensors -> blocks.
#ifndef KINGLET_CONVERTERS_FAMILIES_FAMILIES_H_
#define KINGLET_CONVERTERS_FAMILIES_FAMILIES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converters/sources/saved_module.h"
#include "converters/sources/source_weights.h"
#include "format/writer.h"
#include "kinglet/status.h"

namespace kinglet {

// A checkpoint as blocks and float32 tensors, before any pass.
struct LoadedModel {
  ModelDraft draft;
  // Fills a tensor of the draft, whose name and shape alone are there, from the checkpoint;
  // computed tensors stay as they are. Owns what it needs. Empty: all values are in the draft.
  std::function<Status(TensorId id, EncodedTensor& tensor)> read;
  // The tensors that the training code's quantiser covers: matrices get a scale per row, vectors
  // one divisor.
  std::vector<TensorId> quantisable;
  std::vector<TensorId> prunable;  // the tensors that the training code prunes
  // The checkpoint's weights are integers of so many bits times scales, and its activations are
  // quantised.
  std::optional<int> bits;
  // How a neural cache behaves that the user adds.
  CacheStart cache_start = CacheStart::kFirstPair;
  // How the model will be calibrated once its tensors are packed; set by passes of a recipe.
  struct Calibration {
    std::string path;  // as ReadCalibration's
    int bits;
  };
  std::optional<Calibration> calibration;
  std::vector<std::string> notes;  // for the user
};

struct FamilyInput {
  std::string checkpoint;  // path, for messages and to look beside it
  std::string config;      // path; empty: where the family's training code puts it
  std::optional<int64_t> step;
  // Of a criterion, names start with "criterion.".
  const SourceWeights& weights;
  SavedModules modules = {};
  // What torch.save wrote, whole; null for other containers. Lives as long as the weights.
  const PickleNode* root = nullptr;
  // In place of the number of earlier tokens that the checkpoint says a network sees.
  std::optional<uint32_t> memory_length = {};
  // A DeFINE unit stays in the model, and a stream keeps so many rows that it made.
  std::optional<uint32_t> define_cache_rows = {};
};

struct Family {
  std::string_view name;
  bool (*recognises)(std::span<const SourceTensor> weights);
  Result<LoadedModel> (*load)(const FamilyInput& input);
  bool takes_memory_length = false;  // otherwise FamilyInput::memory_length is none
};

std::span<const Family> Families();

// Reads all tensors of the draft that are not read yet. Errors: as reading one.
Status ReadTensors(LoadedModel& model);

// The family called `name`, or with an empty name the one that recognises the weights. Errors:
// KINGLET_UNSUPPORTED, saying what was found and what this build knows;
// KINGLET_INVALID_CHECKPOINT for a name whose family does not recognise the weights where another
// does.
Result<const Family*> ChooseFamily(std::string_view name, const std::string& checkpoint,
                                   std::span<const SourceTensor> weights);
// "neurips-micronet, ...": for messages.
std::string FamilyNames();

// Errors: KINGLET_UNSUPPORTED, naming the families whose memory can have another length.
Status CheckMemoryLength(const Family& family, std::optional<uint32_t> memory_length);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_FAMILIES_H_
