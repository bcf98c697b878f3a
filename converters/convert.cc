#include "converters/convert.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <new>
#include <span>
#include <system_error>
#include <utility>
#include <variant>

#include "converters/checkpoints/average.h"
#include "converters/checkpoints/checkpoint_file.h"
#include "converters/checkpoints/checkpoint_path.h"
#include "converters/checkpoints/derived_weights.h"
#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/convert_options.h"
#include "converters/families/families.h"
#include "converters/families/name_match.h"
#include "converters/golden.h"
#include "converters/passes/cache.h"
#include "converters/passes/calibrate.h"
#include "converters/passes/input_moments.h"
#include "converters/recipe/apply_passes.h"
#include "converters/recipe/recipe.h"
#include "converters/recipe/recipe_family.h"
#include "converters/recipe/recipe_file.h"
#include "converters/recipe/recipe_model.h"
#include "converters/tensor_passes.h"
#include "converters/texts/masked_file.h"
#include "converters/texts/vocabulary_file.h"
#include "converters/thread_shares.h"
#include "converters/tokenizers/tokenizer_file.h"
#include "converters/vocabulary_choice.h"
#include "format/file_layout.h"
#include "format/ledger.h"
#include "format/model_file.h"
#include "format/overloaded.h"
#include "format/packed_model.h"
#include "format/write_file.h"
#include "runtime/scored_stream.h"
#include "runtime/text/tokenizer.h"

namespace kinglet {
namespace {

std::string FolderOf(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

// The next step for a recipe that does not fit.
constexpr const char* kOfRecipe =
    "`kinglet inspect` shows all names and shapes; docs/RECIPES.md describes recipes";

// The tensors of the recipe's sources, files in the folder of the checkpoint.
Result<CheckpointTensors> ReadSources(const Recipe& recipe) {
  CheckpointTensors tensors;
  for (const auto& [name, file] : recipe.sources) {
    KINGLET_ASSIGN_OR_RETURN(const std::string path,
                             recipe.source_folder.File("/sources/" + QuotedName(name), file));
    KINGLET_ASSIGN_OR_RETURN(CheckpointFile more, OpenCheckpointFile(path));
    ComputeWeights(more.tensors);
    for (CheckpointTensor tensor : more.tensors) {
      tensor.name = more.tensors.size() == 1 ? name : name + "." + tensor.name;
      tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

// The blocks that a recipe describes.
Result<LoadedModel> LoadByRecipe(Recipe recipe, const ConvertOptions& options,
                                 const CheckpointFile& file) {
  if (options.memory_length) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "convert", "mem-len",
                           "none with a recipe that names its own blocks",
                           std::to_string(*options.memory_length));
  }
  KINGLET_RETURN_IF_ERROR(CheckAllMet({options.ignored_options}));
  if (options.define_cache_rows) KeepUnits(*options.define_cache_rows, recipe);
  CheckpointTensors tensors = file.tensors;
  KINGLET_ASSIGN_OR_RETURN(const CheckpointTensors more, ReadSources(recipe));
  tensors.insert(tensors.end(), more.begin(), more.end());
  return WithNextStep(ModelFromRecipe(recipe, tensors, MachineThreads()), kOfRecipe);
}

// The blocks of the family that is named, or else of the family that recognises the tensors.
Result<LoadedModel> LoadByFamily(Recipe recipe, const ConvertOptions& options,
                                 const CheckpointFile& file, std::string& family_name) {
  if (options.define_cache_rows) KeepUnits(*options.define_cache_rows, recipe);
  KINGLET_ASSIGN_OR_RETURN(const CheckpointTensors more, ReadSources(recipe));
  KINGLET_ASSIGN_OR_RETURN(
      const FamilyTables tables,
      WithNextStep(FamilyTables::Make(recipe, file.tensors, more, MachineThreads()), kOfRecipe));
  FamilyInput input = InputOf(file, tables.weights());
  KINGLET_ASSIGN_OR_RETURN(
      const Family* family,
      ChooseFamily(recipe.family.empty() ? options.family : recipe.family, input));
  KINGLET_RETURN_IF_ERROR(CheckMemoryLength(*family, options.memory_length));
  family_name = family->name;
  IgnoredOptions ignored{options.ignored_options};
  input.config = options.config;
  input.memory_length = options.memory_length;
  input.define_cache_rows = options.define_cache_rows;
  input.character_cache_rows = options.character_cache_rows;
  input.vocabulary = options.vocabulary;
  input.ignored = &ignored;
  Result<LoadedModel> model = LoadFamily(*family, input);
  if (!model.ok()) return WithNextStep(model.status(), tables.weights());
  KINGLET_RETURN_IF_ERROR(CheckAllMet(ignored));
  KINGLET_RETURN_IF_ERROR(tables.Place(*model));
  return model;
}

bool Spells(const ModelDescription& description) {
  return FindBlock<AdaptiveEmbedding>(description)->bins.back().spelling.has_value();
}

bool HasDefine(const ModelDescription& description) {
  const auto source = FindSource(description);
  const bool has_unit = !FindBlock<AdaptiveEmbedding>(description)->units.empty();
  return (has_unit && !Spells(description)) || (source && !source->embedding->units.empty());
}

// Options that the loaded model must allow.
Status CheckAgainstModel(const ConvertOptions& options, const LoadedModel& model) {
  if (options.define_cache_rows && !HasDefine(model.draft.description)) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "convert", "keep-define",
                           "a DeFINE unit in the input", "none");
  }
  if (options.character_cache_rows && !Spells(model.draft.description)) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "convert", "keep-characters",
                           "a character CNN as the input", "none");
  }
  if (!options.segments.empty() && !IsMaskedModel(model.draft.description)) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "convert", "segments",
                           "none but for a masked model", options.segments);
  }
  if (!model.bits || !options.bits) return {};
  return Status::Refusal(
      KINGLET_INVALID_ARGUMENT, "convert", "bits",
      "none for a checkpoint that is quantised already",
      std::to_string(*options.bits) + " for one of " + std::to_string(*model.bits) + " bits");
}

// The checkpoint, or the mean of all checkpoints that are named.
Result<CheckpointFile> OpenCheckpoints(const std::string& path, const ConvertOptions& options,
                                       const Recipe& recipe) {
  const NetworkPlace place = {recipe.state_dict, recipe.prefix};
  std::vector<CheckpointFile> files;
  KINGLET_ASSIGN_OR_RETURN(CheckpointFile first, OpenCheckpointFile(path, place));
  files.push_back(std::move(first));
  for (const std::string& other : options.averaged) {
    KINGLET_ASSIGN_OR_RETURN(const std::string found, FindCheckpoint(other));
    KINGLET_ASSIGN_OR_RETURN(CheckpointFile file, OpenCheckpointFile(found, place));
    files.push_back(std::move(file));
  }
  CheckpointFile file;
  if (files.size() == 1) {
    file = std::move(files.front());
  } else {
    KINGLET_ASSIGN_OR_RETURN(file, AverageOf(std::move(files)));
  }
  // After the average, as a framework computes these weights from averaged tensors.
  for (std::string& note : ComputeWeights(file.tensors)) file.notes.push_back(std::move(note));
  return file;
}

Result<LoadedModel> LoadCheckpoint(const std::string& path, const ConvertOptions& options,
                                   const Recipe& recipe, ConvertSummary& summary) {
  KINGLET_ASSIGN_OR_RETURN(const CheckpointFile file, OpenCheckpoints(path, options, recipe));
  summary.checkpoint_bytes = file.bytes;
  if (recipe.has_network()) summary.family = kRecipeFamily;
  Result<LoadedModel> loaded = recipe.has_network()
                                   ? LoadByRecipe(recipe, options, file)
                                   : LoadByFamily(recipe, options, file, summary.family);
  if (!loaded.ok()) {
    const Status& refusal = loaded.status();
    if (file.unread.empty() || refusal.code() == KINGLET_OUT_OF_MEMORY) return refusal;
    return Status(refusal.code(), refusal.message() + "; " + file.unread);
  }
  LoadedModel model = std::move(loaded).value();
  KINGLET_RETURN_IF_ERROR(CheckAgainstModel(options, model));
  model.notes.insert(model.notes.begin(), file.notes.begin(), file.notes.end());
  Provenance& provenance = model.draft.description.provenance;
  provenance.producer = "kinglet " KINGLET_VERSION;
  provenance.family = summary.family;
  provenance.source = std::filesystem::path(path).filename().string();
  provenance.source_digest = file.digest;
  provenance.options = ShapingOptions(options);
  return model;
}

// Reads the vocabulary that a framework writes to the checkpoint's folder, if it has as many words
// as the model: fairseq's dict.txt, Transformer-XL's vocab.pkl or vocab.bin. Families that have
// lists of their own have read them already.
Status FindVocabulary(const std::string& checkpoint, const std::string& family, ModelDraft& draft,
                      std::vector<std::string>& notes) {
  if (!draft.vocabulary.empty()) return {};
  for (const char* name : {"dict.txt", "vocab.pkl", "vocab.bin"}) {
    const std::string path = (std::filesystem::path(FolderOf(checkpoint)) / name).string();
    std::error_code unknown;
    if (!std::filesystem::is_regular_file(path, unknown)) continue;
    KINGLET_ASSIGN_OR_RETURN(VocabularyFile file, ReadVocabularyFile(path, UseOf(family, draft)));
    if (file.words.size() != draft.description.vocabulary_size) continue;
    draft.vocabulary = std::move(file.words);
    notes.insert(notes.end(), file.notes.begin(), file.notes.end());
    NoteMissingWords(draft, notes);
    return {};
  }
  return {};
}

// Reads the tokenizer that was given or the one in the folder of the checkpoint: of a model with
// words, and of a masked model whose folder was given, if it has as many pieces as the model. A
// model without a vocabulary gets the tokenizer's pieces as its words.
Status ReadTextTokenizer(ConvertOptions options, const std::string& checkpoint,
                         const std::string& family, ModelDraft& draft,
                         std::vector<std::string>& notes) {
  const FoundTokenizer left =
      options.tokenizer.empty() ? TokenizerNextTo(checkpoint, family) : FoundTokenizer();
  // Pieces are the model's words only where the folder was given, and no vocabulary.
  const bool found = !left.path.empty() && (left.has_words ? checkpoint != options.checkpoint &&
                                                                 options.vocabulary.empty()
                                                           : !draft.vocabulary.empty());
  if (found) options.tokenizer = left.path;
  if (options.tokenizer.empty()) return {};
  const bool may_not_fit = found && left.has_words && draft.vocabulary.empty();
  Result<TextTables> tokenizer = ReadTokenizer({options.tokenizer, options.lower_case, {}, 0});
  const StatusCode code = tokenizer.status().code();
  // The next conversion could read it, and make another file.
  const bool may_succeed = code == KINGLET_IO_ERROR || code == KINGLET_OUT_OF_MEMORY;
  if (!tokenizer.ok() && may_not_fit && !may_succeed) {
    notes.push_back("the model has ids only, as the tokenizer next to it is not read: " +
                    tokenizer.status().message());
    return {};
  }
  const bool reads_backward = draft.tokenizer && draft.tokenizer->reads_backward;  // of a family
  KINGLET_ASSIGN_OR_RETURN(draft.tokenizer, std::move(tokenizer));
  draft.tokenizer->reads_backward = reads_backward;
  if (may_not_fit && Tokenizer::SizeOf(*draft.tokenizer) != draft.description.vocabulary_size) {
    draft.tokenizer.reset();
    return {};
  }
  if (found) notes.push_back("text is tokenized by " + options.tokenizer);
  if (!draft.vocabulary.empty()) return {};
  std::visit(Overloaded{[&](const SentencePieceTables& tables) {
                          for (const auto& piece : tables.pieces) {
                            draft.vocabulary.push_back(piece.text);
                          }
                        },
                        [&](const WordPieceTables& tables) { draft.vocabulary = tables.pieces; },
                        [&](const BytePieceTables& tables) { draft.vocabulary = tables.pieces; },
                        [](const MergeTables&) {}, [](const WordRule&) {}},
             draft.tokenizer->method);
  const uint32_t expected = draft.description.vocabulary_size;
  if (draft.vocabulary.size() != expected) {
    return Status::Refusal(
        KINGLET_INVALID_ARGUMENT, "tokenizer", options.tokenizer,
        std::to_string(expected) + " pieces as the model has words, or a vocabulary (--vocab)",
        std::to_string(draft.vocabulary.size()));
  }
  return {};
}

// Applies the passes that do not work tensor by tensor. A recipe's passes get tensors as read, with
// the integers of a quantised checkpoint recovered.
Status ApplyPasses(const ConvertOptions& options, const Recipe& recipe, LoadedModel& model,
                   TensorPasses& tensor_passes) {
  ModelDraft& draft = model.draft;
  KINGLET_RETURN_IF_ERROR(ChangeCache(
      {options.cache_capacity, options.cache_theta, options.cache_lambda}, draft.description));
  if (!recipe.passes.empty()) {
    KINGLET_RETURN_IF_ERROR(tensor_passes.ReadAll());
    KINGLET_RETURN_IF_ERROR(
        WithNextStep(ApplyRecipePasses(recipe.passes,
                                       {recipe.folder, MachineThreads(), options.progress}, model),
                     kOfRecipe));
  }
  if (options.calibration_text.empty()) return {};
  if (model.calibration) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "convert", "calibrate",
                           "none with a recipe that calibrates", options.calibration_text);
  }
  RangeRule rule = {options.activation_bits.value_or(*options.bits), options.calibrate_by};
  if (options.percentile) rule.percentile = *options.percentile;
  model.calibration = {options.calibration_text, rule};
  return {};
}

void SummariseFile(const ModelFile& file, ConvertSummary& summary) {
  summary.file_bytes = file.file_size();
  summary.digest = file.digest();
  for (const LedgerPart part :
       {LedgerPart::kFrame, LedgerPart::kHeader, LedgerPart::kValues, LedgerPart::kCodes,
        LedgerPart::kScales, LedgerPart::kMask, LedgerPart::kVocabulary, LedgerPart::kTokenizer,
        LedgerPart::kPadding}) {
    if (const uint64_t bytes = file.ledger().Total(part); bytes > 0) {
      summary.bytes_by_part.emplace_back(LedgerPartName(part), bytes);
    }
  }
}

// Reads the golden values of a masked model's texts.
Result<std::vector<GoldenFile>> ReadMaskedAnswers(const ConvertOptions& options,
                                                  const ModelDraft& draft) {
  const auto mask = std::find(draft.vocabulary.begin(), draft.vocabulary.end(), "[MASK]");
  if (mask == draft.vocabulary.end()) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "convert", "golden",
                           "a vocabulary with [MASK] (--vocab vocab.txt)",
                           draft.vocabulary.empty() ? "ids only" : "a vocabulary without [MASK]");
  }
  if (FindBlock<AdaptiveSoftmax>(draft.description) == nullptr) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "convert", "golden",
                           "none for a model that predicts no words", options.golden);
  }
  KINGLET_ASSIGN_OR_RETURN(const std::vector<MaskedText> texts,
                           ReadMaskedIds(options.ids, options.segments));
  return ReadGoldenTexts(options.golden, texts,
                         static_cast<uint32_t>(mask - draft.vocabulary.begin()));
}

// Reads the golden values of one stream or, for a model with an encoder, of its pairs.
Result<std::vector<GoldenFile>> ReadAnswers(const ConvertOptions& options,
                                            const ModelDraft& draft) {
  const ModelDescription& description = draft.description;
  if (IsMaskedModel(description)) return ReadMaskedAnswers(options, draft);
  if (HasEncoder(description)) {
    return ReadGoldenPairs(options.golden, options.ids, *description.start_token);
  }
  KINGLET_ASSIGN_OR_RETURN(GoldenFile golden, ReadGolden(options.golden, options.ids));
  return std::vector<GoldenFile>{std::move(golden)};
}

std::vector<std::string> NamesOf(const std::vector<TensorId>& ids, const ModelDraft& draft) {
  std::vector<std::string> names;
  for (const TensorId id : ids) names.push_back(draft.tensors[id].name);
  return names;
}

void Report(const ConvertOptions& options, const std::string& text) {
  if (options.progress) options.progress(text);
}

// Packs the model into a temporary file. Each tensor is freed when it is packed, before the next
// one is read. Integers are recovered (Read) before entries are pruned (Apply), because pruning
// could remove the largest entry, from which a scale is found.
Result<NewFile> WritePacked(ModelDraft draft, TensorPasses& passes, const ConvertOptions& options) {
  ModelPacker packer;
  for (TensorId id = 0; id < draft.tensors.size(); ++id) {
    EncodedTensor tensor = std::move(draft.tensors[id]);
    Report(options, "tensor " + std::to_string(id + 1) + " of " +
                        std::to_string(draft.tensors.size()) + ": " + tensor.name);
    KINGLET_RETURN_IF_ERROR(passes.Read(id, tensor));
    const std::optional<RowCodes> rows = passes.Apply(id, tensor);
    KINGLET_RETURN_IF_ERROR(packer.Add(tensor, rows));
  }
  KINGLET_ASSIGN_OR_RETURN(
      const PackedModel packed,
      packer.Finish(draft.description, draft.vocabulary, draft.source_vocabulary, draft.tokenizer));
  return NewFile::Write(packed.Pieces(), options.output);
}

// Measures the inputs of the model's matrices while it computes in floats. The model is pruned
// first, as its file will be. REQUIRES: all tensors are read.
Result<InputMoments> MeasureFloatInputs(const ConvertOptions& options, LoadedModel model,
                                        const CalibrationInput& calibration) {
  model.read = {};
  model.bits.reset();
  TensorPasses passes({options.prune, std::nullopt}, model);
  KINGLET_ASSIGN_OR_RETURN(const NewFile written,
                           WritePacked(std::move(model.draft), passes, options));
  Report(options, "measuring the inputs of matrices on " + model.calibration->path);
  return MeasureInputs(written.temporary_path(), calibration);
}

// Runs the packed model on a text and writes it again, with quantisers of the measured ranges.
// Only one model is in memory at a time: first the running model, then the model that is copied.
Result<NewFile> WriteCalibrated(const std::string& path, const CalibrationInput& input,
                                const RangeRule& rule, const std::string& output) {
  KINGLET_ASSIGN_OR_RETURN(const ModelDescription description, Calibrated(path, input, rule));
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const ModelFile> file, ModelFile::Open(path));
  KINGLET_ASSIGN_OR_RETURN(const FileLayout layout, LayOutAgain(*file, description));
  return NewFile::Write(layout.Pieces(), output);
}

// Reads the file with the runtime's reader, replays the golden values, if any, and renames the file
// to the output path.
Status CommitChecked(NewFile written, std::span<const GoldenFile> golden,
                     const ConvertOptions& options, ConvertSummary& summary) {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const ModelFile> file,
                           ModelFile::Open(written.temporary_path()));
  SummariseFile(*file, summary);
  if (!golden.empty()) {
    Report(options, "replaying " + options.golden);
    Result<GoldenReplay> replayed = ReplayGolden(file, golden, options.tolerance);
    if (replayed.status().code() == KINGLET_MISMATCH && golden.front().mask &&
        options.segments.empty()) {
      return Status(KINGLET_MISMATCH,
                    replayed.status().message() + "; without --segments all segment numbers are 0");
    }
    KINGLET_ASSIGN_OR_RETURN(const GoldenReplay replay, std::move(replayed));
    summary.golden_positions = replay.positions;
    summary.golden_largest_difference = replay.largest_difference;
  }
  return written.Commit();
}

Result<ConvertSummary> ConvertChecked(const ConvertOptions& options) {
  ConvertSummary summary;
  KINGLET_ASSIGN_OR_RETURN(const std::string path, FindCheckpoint(options.checkpoint));
  Recipe recipe;
  if (options.family.empty()) {
    KINGLET_ASSIGN_OR_RETURN(recipe,
                             ChooseRecipe(path, options.recipe, options.trust_recipe_paths));
  }
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, LoadCheckpoint(path, options, recipe, summary));
  ModelDraft& draft = model.draft;
  if (path != options.checkpoint && options.vocabulary.empty() &&
      options.vocabulary_texts.empty()) {
    KINGLET_RETURN_IF_ERROR(FindVocabulary(path, summary.family, draft, model.notes));
  }
  KINGLET_RETURN_IF_ERROR(ChooseVocabulary(options, summary.family, draft, model.notes));
  KINGLET_RETURN_IF_ERROR(ReadTextTokenizer(options, path, summary.family, draft, model.notes));
  NoteCapitals(draft, model.notes);
  KINGLET_RETURN_IF_ERROR(NotePieces(draft, model.notes));
  std::vector<GoldenFile> golden;
  if (!options.golden.empty()) {
    KINGLET_ASSIGN_OR_RETURN(golden, ReadAnswers(options, draft));
    draft.description.golden =
        LeadingGolden(golden.front(), FirstPredicted(draft.description), options.tolerance);
  }
  TensorPasses tensor_passes({options.prune, options.bits, options.scale_by}, model);
  KINGLET_RETURN_IF_ERROR(ApplyPasses(options, recipe, model, tensor_passes));
  CalibrationInput calibration;
  if (model.calibration && !model.calibration->ranges.empty()) {
    calibration.ranges = model.calibration->ranges;
  } else if (model.calibration) {
    KINGLET_ASSIGN_OR_RETURN(
        calibration, ReadCalibration(model.calibration->path, draft.description, draft.vocabulary,
                                     draft.tokenizer));
    model.notes.insert(model.notes.end(), calibration.notes.begin(), calibration.notes.end());
  }
  if (options.round_by == RoundBy::kFeedback || !model.rounded_with_feedback.empty()) {
    KINGLET_RETURN_IF_ERROR(tensor_passes.ReadAll());
    KINGLET_ASSIGN_OR_RETURN(InputMoments moments, MeasureFloatInputs(options, model, calibration));
    RoundWithFeedback(moments, MachineThreads(), model);
    if (options.round_by == RoundBy::kFeedback) tensor_passes.UseMoments(std::move(moments));
  }
  summary.quantisable = NamesOf(model.quantisable, draft);
  summary.prunable = NamesOf(model.prunable, draft);
  KINGLET_ASSIGN_OR_RETURN(NewFile written, WritePacked(std::move(draft), tensor_passes, options));
  if (model.calibration) {
    if (calibration.ranges.empty()) {
      Report(options, "running the model on " + model.calibration->path);
    }
    KINGLET_ASSIGN_OR_RETURN(written, WriteCalibrated(written.temporary_path(), calibration,
                                                      model.calibration->rule, options.output));
  }
  KINGLET_RETURN_IF_ERROR(CommitChecked(std::move(written), golden, options, summary));
  summary.tensors = tensor_passes.counts().tensors;
  summary.parameters = tensor_passes.counts().parameters;
  summary.nonzero_parameters = tensor_passes.counts().nonzero_parameters;
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
