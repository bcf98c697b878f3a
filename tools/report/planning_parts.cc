#include "tools/report/planning_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "converters/recipe/recipe_file.h"
#include "format/message_text.h"
#include "format/overloaded.h"
#include "tools/console.h"
#include "tools/json_lines.h"
#include "tools/report/charts.h"
#include "tools/report/html.h"
#include "tools/report/page_part.h"

namespace kinglet {
namespace {

class PlanReader {
 public:
  void Read(const PassRecipe& recipe) {
    std::visit(
        Overloaded{[&](const PrunePass& pass) {
                     for (const auto& [name, fraction] : pass.fractions) {
                       Of(name).sparsity = fraction;
                     }
                     for (const std::string& name : recipe.tensors) {
                       Of(name).sparsity = pass.fraction;
                     }
                   },
                   [&](const QuantisePass& pass) {
                     for (const std::string& name : recipe.tensors) Of(name).bits = pass.bits;
                   },
                   [&](const CodePass& pass) {
                     for (const std::string& name : recipe.tensors) {
                       Of(name).codes = ChangeText(CodesChange{pass.positions, pass.sub_vectors});
                     }
                   },
                   [](const HalvePass&) {}, [](const LowRankPass&) {}, [](const CalibratePass&) {}},
        recipe.form);
  }
  std::vector<PlannedTensor> Take() && { return std::move(tensors_); }

 private:
  PlannedTensor& Of(const std::string& name) {
    const auto [place, added] = places_.emplace(name, tensors_.size());
    if (added) tensors_.push_back({name, std::nullopt, std::nullopt, ""});
    return tensors_[place->second];
  }
  std::map<std::string, size_t> places_;
  std::vector<PlannedTensor> tensors_;
};

std::string PlanningSection(const char* style, const char* title, const char* about,
                            const std::string& body) {
  return std::string("<section") + style + "><h2>" + title + "</h2>\n<p class=\"soft\">" + about +
         "</p>\n" + body + "</section>\n";
}

// A kind of change: the index of TensorChange's alternative.
using Kind = size_t;
constexpr std::array<const char*, 4> kKinds = {"fraction of zeros", "bits", "codes", "rank"};

// "0.5", "4", "2 x 8": a tick of the axis of a kind.
std::string TickOf(const TensorChange& change) {
  return std::visit(
      Overloaded{[](const SparsityChange& pruned) { return NumberText(pruned.fraction); },
                 [](const BitsChange& quantised) { return std::to_string(quantised.bits); },
                 [](const CodesChange& coded) {
                   return std::to_string(coded.positions) + "x" + std::to_string(coded.sub_vectors);
                 },
                 [](const RankChange& low) { return std::to_string(low.rank); }},
      change);
}

// The curves of all tensors for one kind of change, the most sensitive ones first; empty if no
// change of the kind was measured.
std::string CurvesOf(const SensitivityRecord& record, Kind kind) {
  std::vector<std::string> ticks;
  std::vector<Curve> curves(record.groups.size());
  for (size_t i = 0; i < curves.size(); ++i) curves[i].label = record.groups[i].name;
  double most = 0;
  for (const MeasuredChange& change : record.changes) {
    if (change.change.index() != kind) continue;
    const std::string tick = TickOf(change.change);
    size_t at = std::find(ticks.begin(), ticks.end(), tick) - ticks.begin();
    if (at == ticks.size()) ticks.push_back(tick);
    std::vector<std::optional<double>>& points = curves[change.group].points;
    if (points.size() <= at) points.resize(at + 1);
    points[at] = change.found.nll - record.nll;
    if (std::isfinite(*points[at])) most = std::max(most, *points[at]);
  }
  if (ticks.empty()) return "";
  const auto highest = [](const Curve& curve) {
    double found = -HUGE_VAL;
    for (const auto& point : curve.points) found = std::max(found, point.value_or(found));
    return found;
  };
  std::stable_sort(curves.begin(), curves.end(),
                   [&](const Curve& a, const Curve& b) { return highest(a) > highest(b); });
  std::erase_if(curves, [](const Curve& curve) { return curve.points.empty(); });
  const std::string about =
      std::string("Loss in nats above the unchanged model's by ") + kKinds[kind] + " of one tensor";
  return Figure("<figcaption>" + about + "</figcaption>" + CurveChart(about, ticks, curves, most),
                CurveLegend(curves));
}

std::string SensitivityHtml(const SensitivityFile& file) {
  std::string html = "<div class=\"models\">\n";
  for (Kind kind = 0; kind < kKinds.size(); ++kind) html += CurvesOf(file.record, kind);
  html += "</div>\n";
  HtmlTable table("Loss with one tensor changed",
                  {"tensor", "change", "more nats", "standard error", "bytes"});
  for (const MeasuredChange& change : file.record.changes) {
    table.Row({file.record.groups[change.group].name, ChangeText(change.change),
               Decimal(change.found.nll - file.record.nll, 6),
               Decimal(change.found.standard_error, 6), Grouped(change.found.bytes)});
  }
  return PlanningSection(
      " class=\"wide\"", "Sensitivity of each tensor",
      "Mean loss on another text with one tensor changed and all others unchanged. "
      "<code>kinglet sensitivity</code>",
      "<p>" + Grouped(file.scored) + " scored tokens of " + HtmlText(file.text) + "; unchanged " +
          Decimal(file.record.nll, 6) + " nats a token.</p>\n" + html +
          Details("Table of changes", table.Finish()));
}

// "4 bits, 60 % zeros".
std::string ChoiceText(const PlannedTensor& tensor) {
  std::string text = tensor.codes;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (tensor.bits) add(std::to_string(*tensor.bits) + " bits");
  if (tensor.sparsity) add(Decimal(100 * *tensor.sparsity, 1) + " % zeros");
  return text.empty() ? "unchanged" : text;
}

std::string PlanHtml(const std::vector<PlannedTensor>& plan) {
  constexpr double kFloatBits = 32;
  std::vector<Bar> bars;
  HtmlTable table("Changes of the plan to each tensor", {"tensor", "zeros", "bits", "codes"});
  // Tensors with the most bits and all entries, such as biases, were not chosen for: only the table
  // shows them.
  int most_bits = 0;
  for (const PlannedTensor& tensor : plan) most_bits = std::max(most_bits, tensor.bits.value_or(0));
  double most = 0;
  for (const PlannedTensor& tensor : plan) {
    const double bits =
        (tensor.bits ? *tensor.bits : kFloatBits) * (1 - tensor.sparsity.value_or(0));
    most = std::max(most, bits);
    if (tensor.sparsity || tensor.bits != most_bits)
      bars.push_back({tensor.name, ChoiceText(tensor), bits});
    table.Row({tensor.name, tensor.sparsity ? Decimal(100 * *tensor.sparsity, 1) + " %" : "",
               tensor.bits ? std::to_string(*tensor.bits) : "", tensor.codes});
  }
  return PlanningSection(
      "", "Choices of the plan",
      "Bits of each tensor, times the fraction of its entries that are not zero. "
      "<code>kinglet plan</code>",
      Figure(BarChart("Bits an entry by tensor", bars, most)) +
          (most_bits > 0
               ? "<p class=\"legend\">All others: " + std::to_string(most_bits) + " bits.</p>"
               : "") +
          Details("Table of the plan", table.Finish()));
}

}  // namespace

Result<Planning> ReadPlanning(const std::string& sensitivity, const std::string& plan) {
  Planning planning;
  if (!sensitivity.empty()) {
    KINGLET_ASSIGN_OR_RETURN(planning.sensitivity, ReadSensitivityFile(sensitivity));
  }
  if (plan.empty()) return planning;
  KINGLET_ASSIGN_OR_RETURN(const Recipe recipe, ChooseRecipe("", plan));
  PlanReader reader;
  for (const PassRecipe& pass : recipe.passes) reader.Read(pass);
  planning.plan = std::move(reader).Take();
  if (!planning.plan->empty()) return planning;
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "report", plan,
                         "a recipe of `kinglet plan`, which names tensors", "none");
}

std::string PlanningHtml(const Planning& planning) {
  return (planning.sensitivity ? SensitivityHtml(*planning.sensitivity) : "") +
         (planning.plan ? PlanHtml(*planning.plan) : "");
}

std::string PlanningJson(const Planning& planning) {
  std::string text;
  if (planning.sensitivity) {
    const SensitivityRecord& record = planning.sensitivity->record;
    JsonLine line;
    line.Key("sensitivity").BeginObject().Key("nll").Number(record.nll).Key("changes").BeginArray();
    for (const MeasuredChange& change : record.changes) {
      line.Object(ChangeLine(record.groups[change.group], change));
    }
    line.EndArray().EndObject();
    text += line.Finish();
  }
  if (planning.plan) {
    JsonLine line;
    line.Key("plan").BeginArray();
    for (const PlannedTensor& tensor : *planning.plan) {
      line.BeginObject().Key("tensor").Text(tensor.name);
      if (tensor.sparsity) line.Key("sparsity").Number(*tensor.sparsity);
      if (tensor.bits) line.Key("bits").Integer(static_cast<uint64_t>(*tensor.bits));
      if (!tensor.codes.empty()) line.Key("codes").Text(tensor.codes);
      line.EndObject();
    }
    line.EndArray();
    text += line.Finish();
  }
  return text;
}

}  // namespace kinglet
