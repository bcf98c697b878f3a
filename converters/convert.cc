#include "converters/convert.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <new>
#include <span>
#include <variant>

#include "converters/checkpoint_path.h"
#include "converters/convert_options.h"
#include "converters/families/families.h"
#include "converters/golden.h"
#include "converters/passes/cache.h"
#include "converters/passes/calibrate.h"
#include "converters/passes/pack.h"
#include "converters/passes/prune.h"
#include "converters/passes/quantise.h"
#include "converters/passes/recover.h"
#include "converters/recipe/recipe.h"
#include "converters/recipe/recipe_model.h"
#include "converters/source_file.h"
#include "converters/thread_shares.h"
#include "converters/vocabulary_file.h"
#include "format/coded_rows.h"
#include "format/ledger.h"
#include "format/model_file.h"
#include "format/writer.h"

namespace kinglet {
namespace {

std::string FolderOf(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

// The recipe's own blocks, from the checkpoint and the files that the recipe names beside it.
Result<LoadedModel> LoadByRecipe(const Recipe& recipe, const SourceFile& source) {
  SourceWeights tensors = source.tensors;
  for (const auto& [name, file] : recipe.sources) {
    const auto path = std::filesystem::path(FolderOf(source.path)) / file;
    KINGLET_ASSIGN_OR_RETURN(const SourceFile more, OpenSourceFile(path.string()));
    for (SourceTensor tensor : more.tensors) {
      tensor.name = more.tensors.size() == 1 ? name : name + "." + tensor.name;
      tensors.push_back(std::move(tensor));
    }
  }
  return ModelFromRecipe(recipe, tensors, MachineThreads());
}

Result<LoadedModel> LoadCheckpoint(const ConvertOptions& options, const Recipe& recipe,
                                   ConvertSummary& summary) {
  KINGLET_ASSIGN_OR_RETURN(const std::string path, FindCheckpoint(options.checkpoint));
  KINGLET_ASSIGN_OR_RETURN(const SourceFile source, OpenSourceFile(path));
  LoadedModel model;
  if (recipe.embedding) {
    if (options.memory_length) {
      return Status::Refusal(KINGLET_UNSUPPORTED, "convert", "mem-len",
                             "none with a recipe that names its own blocks",
                             std::to_string(*options.memory_length));
    }
    KINGLET_ASSIGN_OR_RETURN(model, LoadByRecipe(recipe, source));
    summary.family = "recipe";
  } else {
    KINGLET_ASSIGN_OR_RETURN(
        const Family* family,
        ChooseFamily(recipe.family.empty() ? options.family : recipe.family, path, source.tensors));
    KINGLET_RETURN_IF_ERROR(CheckMemoryLength(*family, options.memory_length));
    const PickleNode* root = source.checkpoint ? &source.checkpoint->root() : nullptr;
    KINGLET_ASSIGN_OR_RETURN(model, family->load({path, options.config, source.step, source.tensors,
                                                  source.modules, root, options.memory_length}));
    summary.family = family->name;
  }
  if (model.bits && options.bits) {
    return Status::Refusal(
        KINGLET_INVALID_ARGUMENT, "convert", "bits",
        "none for a checkpoint that is quantised already",
        std::to_string(*options.bits) + " for one of " + std::to_string(*model.bits) + " bits");
  }
  summary.checkpoint_bytes = source.bytes;
  Provenance& provenance = model.draft.description.provenance;
  provenance.producer = "kinglet " KINGLET_VERSION;
  provenance.family = summary.family;
  provenance.source = std::filesystem::path(path).filename().string();
  provenance.source_digest = source.digest;
  provenance.options = ShapingOptions(options);
  return model;
}

Status ReadVocabulary(const std::string& path, ModelDraft& draft) {
  if (path.empty()) return {};
  KINGLET_ASSIGN_OR_RETURN(draft.vocabulary, ReadVocabularyFile(path));
  const uint64_t expected = draft.description.vocabulary_size;
  if (draft.vocabulary.size() == expected) return {};
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "vocabulary", path,
                         std::to_string(expected) + " words as the model has",
                         std::to_string(draft.vocabulary.size()));
}

// The passes of a model, in their order. A quantised checkpoint is taken apart before it is pruned,
// so that pruning cannot hide a scale.
Status ApplyPasses(const ConvertOptions& options, const Recipe& recipe, LoadedModel& model) {
  ModelDraft& draft = model.draft;
  KINGLET_RETURN_IF_ERROR(ChangeCache(
      {options.cache_capacity, options.cache_theta, options.cache_lambda, model.cache_start},
      draft.description));
  if (model.bits) RecoverTensors(*model.bits, model.quantisable, draft, model.notes);
  KINGLET_RETURN_IF_ERROR(ApplyRecipePasses(
      recipe.passes, {FolderOf(options.recipe), MachineThreads(), options.progress}, model));
  if (options.prune) PruneTensors(*options.prune, model.prunable, draft);
  if (options.bits) QuantiseTensors(*options.bits, model.quantisable, draft);
  if (!options.calibration_text.empty()) {
    KINGLET_RETURN_IF_ERROR(Calibrate(options.calibration_text, *options.bits, draft));
  }
  PackTensors(draft);
  return {};
}

bool SameCodes(const Coded& coded, const TensorView& view) {
  const auto* codes = std::get_if<std::vector<uint32_t>>(&coded.codes);
  if (codes == nullptr) return view.coded()->seed.has_value();
  const CodedRows rows(view);
  std::vector<uint32_t> row(rows.positions());
  for (uint64_t i = 0; i < Rows(view.shape); ++i) {
    rows.Codes(i, row.data());
    if (!std::equal(row.begin(), row.end(),
                    codes->begin() + static_cast<ptrdiff_t>(i * row.size()))) {
      return false;
    }
  }
  return true;
}

// What the runtime will read is what was meant: every tensor of the file decodes to the draft's
// values, bit for bit but for the sign of zeros.
Status CheckDecoded(const ModelDraft& draft, const ModelFile& file) {
  for (size_t i = 0; i < draft.tensors.size(); ++i) {
    const auto* coded = std::get_if<Coded>(&draft.tensors[i].values);
    const bool equal = coded != nullptr
                           ? SameCodes(*coded, file.tensors()[i])
                           // No value is NaN, and unequal bits of equal floats are the two zeros.
                           : DecodedValues(draft.tensors[i]) == DecodedValues(file.tensors()[i]);
    if (equal) continue;
    return Status::Refusal(KINGLET_INTERNAL, "converted file", "tensor " + draft.tensors[i].name,
                           "the values that were written", "others");
  }
  return {};
}

void Summarise(const ModelDraft& draft, const ModelFile& file, ConvertSummary& summary) {
  summary.tensors = draft.tensors.size();
  for (const EncodedTensor& tensor : draft.tensors) {
    summary.parameters += Parameters(tensor);
    if (!tensor.derived) summary.nonzero_parameters += CountNonzeros(tensor);
  }
  summary.file_bytes = file.file_size();
  summary.digest = file.digest();
  for (const LedgerPart part :
       {LedgerPart::kFrame, LedgerPart::kHeader, LedgerPart::kValues, LedgerPart::kCodes,
        LedgerPart::kScales, LedgerPart::kMask, LedgerPart::kVocabulary, LedgerPart::kPadding}) {
    if (const uint64_t bytes = file.ledger().Total(part); bytes > 0) {
      summary.bytes_by_part.emplace_back(LedgerPartName(part), bytes);
    }
  }
}

Result<ConvertSummary> ConvertChecked(const ConvertOptions& options) {
  ConvertSummary summary;
  Recipe recipe;
  if (!options.recipe.empty()) {
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode node, RecipeNode::Read(options.recipe));
    KINGLET_ASSIGN_OR_RETURN(recipe, ParseRecipe(node));
  }
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, LoadCheckpoint(options, recipe, summary));
  ModelDraft& draft = model.draft;
  KINGLET_RETURN_IF_ERROR(ReadVocabulary(options.vocabulary, draft));
  std::optional<GoldenFile> golden;
  if (!options.golden.empty()) {
    KINGLET_ASSIGN_OR_RETURN(golden, ReadGolden(options.golden, options.ids));
    draft.description.golden = LeadingGolden(*golden, options.tolerance);
  }
  KINGLET_RETURN_IF_ERROR(ApplyPasses(options, recipe, model));

  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, SerialiseModel(draft));
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const ModelFile> file,
                           ModelFile::FromBytes(bytes));
  KINGLET_RETURN_IF_ERROR(CheckDecoded(draft, *file));
  if (golden) {
    KINGLET_ASSIGN_OR_RETURN(const GoldenReplay replay,
                             ReplayGolden(file, *golden, options.tolerance));
    summary.golden_positions = replay.positions;
    summary.golden_largest_difference = replay.largest_difference;
  }
  KINGLET_RETURN_IF_ERROR(WriteFileAtomically(bytes, options.output));
  Summarise(draft, *file, summary);
  summary.notes = std::move(model.notes);
  return summary;
}

}  // namespace

Result<ConvertSummary> Convert(const ConvertOptions& options) try {
  KINGLET_RETURN_IF_ERROR(CheckOptions(options));
  return ConvertChecked(options);
} catch (const std::bad_alloc&) {
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, "convert", options.checkpoint,
                         "memory for the model", "none");
}

}  // namespace kinglet
