// The families of checkpoints that this build converts. A family knows how one framework names
// its tensors and how its networks run, and makes blocks (format/blocks.h) of them. docs/ADDING.md
// walks through adding one.
#ifndef KINGLET_CONVERTERS_FAMILIES_FAMILIES_H_
#define KINGLET_CONVERTERS_FAMILIES_FAMILIES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/checkpoints/saved_module.h"
#include "converters/families/known_options.h"
#include "converters/families/pickled_modules.h"
#include "converters/network/loaded_model.h"
#include "converters/network/network.h"
#include "converters/texts/corpus_vocabulary.h"
#include "converters/texts/vocabulary_file.h"
#include "kinglet/status.h"

namespace kinglet {

struct FamilyInput {
  std::string checkpoint;  // path; families look for other files next to it
  // Path; empty: the file that the framework saves next to the checkpoint, if any.
  std::string config = {};
  std::optional<int64_t> step = {};
  // Names of a criterion's tensors start with "criterion.".
  const CheckpointTensors& weights;
  SavedModules modules = {};
  // The root of what torch.save wrote; nullptr for other containers. Lives as long as the weights.
  const PickleNode* root = nullptr;
  // How many earlier tokens a token attends to, instead of the checkpoint's number.
  std::optional<uint32_t> memory_length = {};
  // If set, a DeFINE unit stays in the model, and each stream caches this many of its rows.
  std::optional<uint32_t> define_cache_rows = {};
  // If set, a character CNN stays in the model, and each stream caches this many of its rows.
  std::optional<uint32_t> character_cache_rows = {};
  // Path of the user's vocabulary (ReadVocabularyFile); empty if the user gives none. For models
  // that compute with the words' characters.
  std::string vocabulary = {};
  IgnoredOptions* ignored = nullptr;  // may be nullptr
  // If set, only the names are compared (Network), and loading ends with a refusal.
  NameReport* report = nullptr;
  // The checkpoint's tensors that are in no form that is read (CheckpointFile).
  std::span<const std::string> unread_names = {};
};

// The checkpoint as a family's input, without the user's options. `weights`: its tensors, or what
// a recipe makes of them; they and the file outlive the input.
FamilyInput InputOf(const CheckpointFile& file, const CheckpointTensors& weights);

struct Family {
  std::string_view name;
  // What tells a checkpoint of the family by names: patterns (MatchesPattern) separated by
  // blanks; "|" stands between patterns of which one is enough. The checkpoint has a tensor of
  // each, and no tensor of those after "!".
  std::string_view marks = {};
  // An entry next to the state dict that the family's files have too, where names are not enough.
  // Such a family comes before those whose names it shares.
  std::string_view entry = {};
  // nullptr: no family reads the framework's networks, and `unread` is the message about one.
  Result<LoadedModel> (*load)(const FamilyInput& input) = nullptr;
  bool takes_memory_length = false;  // false: FamilyInput::memory_length is never set
  // The options of its framework, a table for each kind of configuration; nullptr if the family
  // reads none.
  std::span<const OptionTable> (*options)() = nullptr;
  // The pickled networks that the family reads; nullptr if it reads none.
  const PickledNetwork& (*modules)() = nullptr;
  WordOrder word_order = WordOrder::kUnknown;       // how the framework numbers words of a text
  WordNumbers word_numbers = WordNumbers::kByLine;  // how its vocabulary files number them
  std::string_view unread = {};
};

// Each is in the file of its name.
extern const Family kAwdLstm, kBert, kDefineAwdLstm, kEspnetRnn, kEspnetTransformer, kFairseq,
    kFairseqTranslation, kFastai, kFlair, kGpt2, kIcefallRnn, kIcefallTransformer, kMicronet,
    kOpenNmt, kPytorchExamples, kPytorchTransformer, kSpeechbrainRnn, kSpeechbrainTransformer,
    kTransfoXl, kTransformerXl, kZaremba;

// The families that this build reads.
std::span<const Family* const> Families();
// Also families that this build only knows by their names.
std::span<const Family* const> KnownFamilies();
// The family of this name that this build reads; nullptr if there is none.
const Family* FamilyNamed(std::string_view name);

// The family called `name`; if `name` is empty, the one that recognises the checkpoint. Errors:
// KINGLET_UNSUPPORTED for an unknown name or weights that no family recognises, naming some tensors
// and the families of this build; KINGLET_INVALID_CHECKPOINT if only another family recognises the
// weights.
Result<const Family*> ChooseFamily(std::string_view name, const FamilyInput& input);
// What the family makes of the checkpoint. Errors: those of CheckPickledModules and of the loader.
Result<LoadedModel> LoadFamily(const Family& family, const FamilyInput& input);
// "neurips-micronet, ..", for messages.
std::string FamilyNames();

// Refuses a memory length for a family that does not take one. Errors: KINGLET_UNSUPPORTED, naming
// the families that do.
Status CheckMemoryLength(const Family& family, std::optional<uint32_t> memory_length);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_FAMILIES_H_
