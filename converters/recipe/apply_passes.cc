#include "converters/recipe/apply_passes.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "converters/checkpoints/quoted.h"
#include "converters/name_pattern.h"
#include "converters/passes/error_feedback.h"
#include "converters/passes/low_rank.h"
#include "converters/passes/product_quantise.h"
#include "converters/passes/prune.h"
#include "converters/passes/quantise.h"
#include "converters/passes/reconstruction.h"
#include "converters/passes/slim_mapping.h"
#include "converters/passes/sub_vectors.h"
#include "converters/passes/summed_codes.h"
#include "converters/recipe/make_codes.h"
#include "converters/recipe/project_table.h"
#include "format/overloaded.h"

namespace kinglet {
namespace {

std::string NumberAs(double number, const char* format) {
  char text[48];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

std::string BytesReport(const Reconstruction& found) {
  return std::to_string(found.bytes_before) + " -> " + std::to_string(found.bytes_after) +
         " bytes, ratio " + NumberAs(found.Ratio(), "%.2f");
}

std::string Report(const std::string& tensor, const std::string& what,
                   const Reconstruction& found) {
  return tensor + ": " + what + ", relative error " + NumberAs(found.relative_error, "%.4g") +
         ", mean squared error " + NumberAs(found.mean_squared_error, "%.4g") + ", " +
         BytesReport(found);
}

// What a pass did to its tensors. Up to three tensors have a note each, more have one together.
class PassReports {
 public:
  void Add(std::string tensor, std::string what, const Reconstruction& found) {
    reports_.push_back({std::move(tensor), std::move(what), found});
  }

  std::vector<std::string> Notes() const {
    constexpr size_t kMaxNotes = 3;
    std::vector<std::string> notes;
    if (reports_.size() <= kMaxNotes) {
      for (const auto& [tensor, what, found] : reports_) {
        notes.push_back(Report(tensor, what, found));
      }
      return notes;
    }
    Reconstruction sum;
    const auto* worst = &reports_[0];
    for (const TensorReport& report : reports_) {
      sum.bytes_before += report.found.bytes_before;
      sum.bytes_after += report.found.bytes_after;
      if (report.found.relative_error > worst->found.relative_error) worst = &report;
    }
    notes.push_back(std::to_string(reports_.size()) + " tensors: " + reports_[0].what +
                    ", relative error up to " + NumberAs(worst->found.relative_error, "%.4g") +
                    " (" + worst->tensor + "), " + BytesReport(sum));
    return notes;
  }

 private:
  struct TensorReport {
    std::string tensor, what;
    Reconstruction found;
  };
  std::vector<TensorReport> reports_;
};

bool HoldsFloats(const EncodedTensor& tensor) {
  return std::visit(
      Overloaded{[](const DenseF32&) { return true; }, [](const DenseF16&) { return true; },
                 [](const Quantised&) { return false; }, [](const Coded&) { return false; }},
      tensor.values);
}

double FractionOf(const PrunePass& pass, const std::string& tensor) {
  for (const auto& [pattern, fraction] : pass.fractions) {
    if (MatchesPattern(pattern, tensor)) return fraction;
  }
  return pass.fraction;
}

// The pass with the fractions of its file, if it names one, and with their patterns.
Result<PassRecipe> WithFractions(PassRecipe pass, size_t index, const RecipeFolder& folder) {
  auto* prune = std::get_if<PrunePass>(&pass.form);
  if (prune == nullptr) return pass;
  if (!prune->fractions_file.empty()) {
    KINGLET_ASSIGN_OR_RETURN(
        const std::string path,
        folder.File("/passes/" + std::to_string(index) + "/fractions", prune->fractions_file));
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode node, RecipeNode::Read(path));
    KINGLET_ASSIGN_OR_RETURN(prune->fractions, ParseFractions(node));
  }
  for (const auto& [pattern, fraction] : prune->fractions) pass.tensors.push_back(pattern);
  return pass;
}

// Applies one pass to a model; a visitor of PassRecipe::form.
class PassRunner {
 public:
  PassRunner(const PassRecipe& pass, size_t index, const PassSurroundings& around,
             LoadedModel& model)
      : pass_(pass),
        index_(index),
        where_("pass " + std::to_string(index)),
        around_(around),
        model_(model) {}

  Status operator()(const PrunePass& pass) {
    return ForEach(model_.prunable, "prune", [&](TensorId id) -> Status {
      EncodedTensor& tensor = model_.draft.tensors[id];
      const std::vector<float> before = DecodedValues(tensor);
      PruneTensor(FractionOf(pass, tensor.name), tensor);
      tensor.pruned = true;
      Note(tensor, "pruned", before);
      return {};
    });
  }

  Status operator()(const QuantisePass& pass) {
    return ForEach(model_.quantisable, "quantise", [&](TensorId id) -> Status {
      EncodedTensor& tensor = model_.draft.tensors[id];
      KINGLET_ASSIGN_OR_RETURN(const std::vector<float> before, Float32Values(tensor));
      // Vectors are rounded later too, because calibration runs the text in floats.
      if (pass.round_by == RoundBy::kFeedback) {
        model_.rounded_with_feedback[id] = {pass.bits, pass.scale_by};
        return {};
      }
      if (tensor.shape.size() == 1) {
        tensor.values = QuantiseDivided(before, pass.bits, pass.scale_by);
      } else if (pass.per_tensor) {
        tensor.values = QuantiseWhole(before, pass.bits, pass.scale_by);
      } else {
        tensor.values = QuantiseRows(before, tensor.shape, pass.bits, pass.scale_by);
      }
      Note(tensor, std::to_string(pass.bits) + " bits", before);
      return {};
    });
  }

  Status operator()(const HalvePass&) {
    return ForEach({}, "half", [&](TensorId id) -> Status {
      EncodedTensor& tensor = model_.draft.tensors[id];
      KINGLET_ASSIGN_OR_RETURN(const std::vector<float> before, Float32Values(tensor));
      DenseF16 half;
      for (const float value : before) half.bits.push_back(FloatToHalf(value));
      const auto infinite = [](uint16_t word) { return (word & 0x7C00) == 0x7C00; };
      if (std::any_of(half.bits.begin(), half.bits.end(), infinite)) {
        return Refuse(tensor.name, "values up to 65504, the largest float16", "larger ones");
      }
      tensor.values = std::move(half);
      Note(tensor, "float16", before);
      return {};
    });
  }

  Status operator()(const CodePass& pass) {
    return ForEach({}, "code", [&](TensorId id) -> Status {
      const EncodedTensor& tensor = model_.draft.tensors[id];
      KINGLET_ASSIGN_OR_RETURN(const std::vector<float> before, Float32Values(tensor));
      const uint64_t pools = pass.pools == CodePass::Pools::kOne && !pass.sum ? 1 : pass.positions;
      Result<CodedTable> made = MakeCodes(pass, before, tensor.shape, around_.threads,
                                          ClusteringProgress(pass, tensor.name, pools));
      if (!made.ok()) return Placed(tensor.name, made.status());
      CodedTable coded = std::move(made).value();
      const bool hashed = pass.mapping == CodePass::Mapping::kHashed;
      Reconstruction found = Compare(before, tensor.shape, coded);
      if (hashed) found.bytes_after -= BytesOfCodes(coded);
      model_.notes.push_back(Report(
          tensor.name,
          std::to_string(coded.positions) + (hashed ? " hashed codes" : " codes") + " a row, " +
              std::to_string(coded.codebook.size() / coded.length) + " sub-vectors",
          found));
      Replace(id, std::move(coded), hashed ? std::optional(pass.seed) : std::nullopt);
      return {};
    });
  }

  Status operator()(const LowRankPass& pass) {
    return ForEach({}, "low_rank", [&](TensorId id) -> Status {
      const EncodedTensor& tensor = model_.draft.tensors[id];
      if (tensor.shape.size() != 2) return Refuse(tensor.name, "a matrix", "a vector");
      KINGLET_ASSIGN_OR_RETURN(const std::vector<float> before, Float32Values(tensor));
      Result<LowRank> made =
          pass.rank ? FactoriseToRank(before, tensor.shape, *pass.rank, around_.threads)
                    : FactoriseToError(before, tensor.shape, pass.error, around_.threads);
      if (!made.ok()) return Placed(tensor.name, made.status());
      Reconstruction found = Compare(before, tensor.shape, *made);
      const std::string name = tensor.name;
      const std::string what = "rank " + std::to_string(made->rank);
      KINGLET_RETURN_IF_ERROR(ProjectTable(id, *std::move(made), where_, model_, found));
      model_.notes.push_back(Report(name, what, found));
      return {};
    });
  }

  Status operator()(const CalibratePass& pass) {
    for (const TensorId id : model_.quantisable) {
      const EncodedTensor& tensor = model_.draft.tensors[id];
      if (HoldsFloats(tensor) && !model_.rounded_with_feedback.contains(id)) {
        return Refuse("calibrate, " + tensor.name, "integers (put a quantise pass before)",
                      "floats");
      }
    }
    std::string path;
    if (pass.ranges.empty()) {
      KINGLET_ASSIGN_OR_RETURN(
          path, around_.folder.File("/passes/" + std::to_string(index_) + "/text", pass.text));
    }
    model_.calibration = LoadedModel::Calibration{std::move(path), pass.rule, pass.ranges};
    return {};
  }

 private:
  // The error of a pass, after the names of pass and tensor.
  Status Placed(const std::string& tensor, const Status& status) const {
    return Status(status.code(), "recipe: " + where_ + ", " + tensor + ": " + status.message());
  }
  Status Refuse(const std::string& where, const std::string& expected,
                const std::string& found) const {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "recipe", where_ + ", " + where, expected,
                           found);
  }

  // Refuses a matrix that is rounded by feedback later: no pass may change it in between.
  Result<std::vector<float>> Float32Values(const EncodedTensor& tensor) const {
    const auto& waiting = model_.rounded_with_feedback;
    if (std::any_of(waiting.begin(), waiting.end(), [&](const auto& entry) {
          return &model_.draft.tensors[entry.first] == &tensor;
        })) {
      return Refuse(tensor.name, "a float32 tensor", "one that an earlier pass quantises");
    }
    const auto* dense = std::get_if<DenseF32>(&tensor.values);
    if (dense == nullptr) {
      return Refuse(tensor.name, "a float32 tensor", "one that an earlier pass encoded");
    }
    return dense->values;
  }

  // Runs `apply` on the tensors that the patterns name, or on `otherwise` if there are no patterns.
  template <class Apply>
  Status ForEach(const std::vector<TensorId>& otherwise, const char* what, Apply apply) {
    std::vector<TensorId> chosen;
    if (pass_.tensors.empty()) chosen = otherwise;
    for (const std::string& pattern : pass_.tensors) {
      bool any = false;
      for (TensorId id = 0; id < model_.draft.tensors.size(); ++id) {
        if (!MatchesPattern(pattern, model_.draft.tensors[id].name)) continue;
        any = true;
        if (std::find(chosen.begin(), chosen.end(), id) == chosen.end()) chosen.push_back(id);
      }
      if (!any) return Refuse(what, "a tensor whose name fits " + QuotedName(pattern), "none");
    }
    if (chosen.empty()) return Refuse(what, "\"tensors\", patterns of names", "none");
    for (const TensorId id : chosen) {
      if (model_.draft.tensors[id].coded() && pass_.tensors.empty()) continue;
      if (model_.draft.tensors[id].coded()) {
        return Refuse(model_.draft.tensors[id].name, "a tensor that is not coded", "codes");
      }
      KINGLET_RETURN_IF_ERROR(apply(id));
    }
    for (std::string& note : reports_.Notes()) model_.notes.push_back(std::move(note));
    return {};
  }

  void Note(const EncodedTensor& tensor, const std::string& what, std::span<const float> before) {
    reports_.Add(tensor.name, what, Compare(before, tensor));
  }

  std::function<void(uint64_t, const KMeansProgress&)> ClusteringProgress(const CodePass& pass,
                                                                          const std::string& tensor,
                                                                          uint64_t pools) const {
    if (!around_.progress) return {};
    return [this, pass, tensor, pools](uint64_t pool, const KMeansProgress& done) {
      const auto of = [](uint64_t number, uint64_t total) {
        return std::to_string(number + 1) + " of " + std::to_string(total);
      };
      around_.progress(where_ + ", " + tensor + ": pool " + of(pool, pools) + ", restart " +
                       of(done.restart, pass.restarts) + ", iteration " +
                       of(done.iteration, pass.iterations) + ", squared error " +
                       NumberAs(done.error, "%.6g"));
    };
  }

  // The tensor becomes coded. Later passes find its codebook as NAME.codebook.
  void Replace(TensorId id, CodedTable coded, std::optional<uint64_t> seed) {
    std::vector<EncodedTensor>& tensors = model_.draft.tensors;
    const auto codebook = static_cast<TensorId>(tensors.size());
    DraftTable made = ForDraft(std::move(coded), seed);
    made.table.scheme.codebook = codebook;
    tensors.push_back(
        {tensors[id].name + ".codebook", made.codebook_shape, std::move(made.codebook), false});
    tensors[id].values = std::move(made.table);
    tensors[id].pruned = false;
    for (std::vector<TensorId>* list : {&model_.quantisable, &model_.prunable}) {
      std::replace(list->begin(), list->end(), id, codebook);
    }
  }

  const PassRecipe& pass_;
  const size_t index_;
  std::string where_;
  const PassSurroundings& around_;
  LoadedModel& model_;
  PassReports reports_;  // of tensors whose encoding alone changed
};

}  // namespace

Status ApplyRecipePasses(const std::vector<PassRecipe>& passes, const PassSurroundings& around,
                         LoadedModel& model) {
  for (size_t i = 0; i < passes.size(); ++i) {
    if (model.calibration) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, "recipe", "pass " + std::to_string(i),
                             "calibrate as the last pass, as it runs the finished model",
                             "a pass after it");
    }
    KINGLET_ASSIGN_OR_RETURN(const PassRecipe pass, WithFractions(passes[i], i, around.folder));
    KINGLET_RETURN_IF_ERROR(std::visit(PassRunner(pass, i, around, model), pass.form));
  }
  if (model.rounded_with_feedback.empty() ||
      (model.calibration && model.calibration->ranges.empty())) {
    return {};
  }
  const TensorId id = model.rounded_with_feedback.begin()->first;
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "recipe", model.draft.tensors[id].name,
                         "a calibrate pass, on whose text rounding by feedback runs",
                         model.calibration ? "one with ranges" : "none");
}

void RoundWithFeedback(const InputMoments& moments, size_t threads, LoadedModel& model) {
  PassReports reports;
  for (const auto& [id, rounding] : std::exchange(model.rounded_with_feedback, {})) {
    EncodedTensor& tensor = model.draft.tensors[id];
    const std::vector<float> before = std::move(std::get<DenseF32>(tensor.values).values);
    const auto found = moments.find(id);
    const bool is_fed = tensor.shape.size() == 2 && found != moments.end() &&
                        found->second.width == Cols(tensor.shape);
    if (tensor.shape.size() == 1) {
      tensor.values = QuantiseDivided(before, rounding.bits, rounding.scale_by);
    } else if (is_fed) {
      tensor.values = QuantiseWithFeedback(before, tensor.shape, rounding.bits, rounding.scale_by,
                                           found->second, kFeedbackDamping, threads);
    } else {
      tensor.values = QuantiseRows(before, tensor.shape, rounding.bits, rounding.scale_by);
    }
    reports.Add(tensor.name,
                std::to_string(rounding.bits) + " bits" + (is_fed ? ", rounded by feedback" : ""),
                Compare(before, tensor));
  }
  for (std::string& note : reports.Notes()) model.notes.push_back(std::move(note));
}

}  // namespace kinglet
