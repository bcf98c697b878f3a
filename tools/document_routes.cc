#include "tools/document_routes.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include "converters/checkpoints/json_events.h"
#include "converters/checkpoints/text_input.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

constexpr const char* kObjectOfTexts =
    "an object of texts, as {\"en\":\"en.kgl\",\"de\":\"de.kgl\"}";

// An object of texts, and nothing else.
class TextsReader final : public JsonEvents {
 public:
  std::map<std::string, std::string> texts;
  bool ok = true;

  bool BeginObject() override { return Allow(!std::exchange(begun_, true)); }
  bool Name(std::string& name) override {
    name_ = std::move(name);
    return Allow(!texts.contains(name_));
  }
  bool EndObject() override { return true; }
  bool BeginList() override { return Allow(false); }
  bool EndList() override { return true; }
  bool Text(std::string& text) override {
    if (!Allow(begun_)) return false;
    texts[name_] = std::move(text);
    return true;
  }
  bool Number(std::optional<uint64_t> /*number*/) override { return Allow(false); }
  bool Boolean() override { return Allow(false); }
  bool Null() override { return Allow(false); }
  void Broken(size_t /*byte*/) override { ok = false; }

 private:
  bool Allow(bool allowed) { return ok = ok && allowed; }
  bool begun_ = false;
  std::string name_;
};

// The path of each value's model.
Result<std::map<std::string, std::string>> ReadModels(const std::string& file) {
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(file));
  TextsReader reader;
  ReadJson(text, reader);
  if (!reader.ok || reader.texts.empty()) {
    std::string found = WhyNotJson(text);
    if (found.empty()) found = "another value, a value twice, or no model";
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "--route", file, kObjectOfTexts, found);
  }
  for (auto& [value, path] : reader.texts) {
    path = (std::filesystem::path(file).parent_path() / path).string();
  }
  return std::move(reader.texts);
}

}  // namespace

Result<DocumentRoutes> DocumentRoutes::Open(const RunOptions& run, const DocumentBlocks& blocks,
                                            const RouteOptions& options) {
  std::map<std::string, std::string> paths = {{"", run.model}};
  if (!options.member.empty()) {
    KINGLET_ASSIGN_OR_RETURN(paths, ReadModels(options.models_file));
  }
  DocumentRoutes routes;
  routes.options_ = options;
  std::map<std::string, size_t> opened;
  for (const auto& [value, path] : paths) {
    const auto [place, is_new] = opened.emplace(path, routes.models_.size());
    routes.routes_.push_back({.value = value, .model = place->second});
    if (!is_new) continue;
    RunOptions its = run;
    its.model = path;
    KINGLET_ASSIGN_OR_RETURN(std::shared_ptr<const Model> model, OpenModel(its));
    KINGLET_RETURN_IF_ERROR(RequireNoSource(*model, "filter"));
    KINGLET_ASSIGN_OR_RETURN(DocumentScorer scorer, DocumentScorer::Create(model, its, blocks));
    routes.models_.push_back(std::move(model));
    routes.scorers_.push_back(std::move(scorer));
  }
  return routes;
}

Result<uint32_t> DocumentRoutes::RouteOf(const std::string& input_name,
                                         const Document& document) const {
  if (options_.member.empty()) return uint32_t{0};
  const auto found = std::find_if(routes_.begin(), routes_.end(), [&](const Route& route) {
    return document.route == route.value;
  });
  if (found != routes_.end()) return static_cast<uint32_t>(found - routes_.begin());
  if (!options_.refuses) return DocumentLoss::kNoRoute;
  return Status::Refusal(
      KINGLET_INVALID_ARGUMENT, input_name, Numbered("line", document.line_number),
      "a text \"" + options_.member + "\" that has a model in " + options_.models_file +
          " (--unrouted keeps or drops others)",
      document.route ? Quoted(std::string_view(*document.route).substr(0, 64)) : "none");
}

Result<std::vector<DocumentLoss>> DocumentRoutes::Score(const std::string& input_name,
                                                        std::span<const Document> documents,
                                                        const DocumentScorer::Omits& omits) {
  std::vector<DocumentLoss> losses(documents.size());
  std::vector<std::vector<size_t>> of_models(models_.size());
  for (size_t i = 0; i < documents.size(); ++i) {
    KINGLET_ASSIGN_OR_RETURN(const uint32_t route, RouteOf(input_name, documents[i]));
    losses[i].route = route;
    if (route != DocumentLoss::kNoRoute) of_models[routes_[route].model].push_back(i);
  }
  for (size_t model = 0; model < models_.size(); ++model) {
    const bool is_whole = of_models[model].size() == documents.size();
    std::vector<Document> its;
    if (!is_whole) {
      for (const size_t i : of_models[model]) its.push_back(documents[i]);
    }
    KINGLET_ASSIGN_OR_RETURN(
        const std::vector<DocumentLoss> found,
        scorers_[model].Score(input_name, is_whole ? documents : std::span<const Document>(its),
                              omits));
    for (size_t i = 0; i < found.size(); ++i) {
      DocumentLoss& loss = losses[of_models[model][i]];
      const uint32_t route = loss.route;
      loss = found[i];
      loss.route = route;
    }
  }
  return losses;
}

void DocumentRoutes::OnProgress(const std::function<void(uint64_t)>& report) {
  const auto scored = std::make_shared<std::vector<uint64_t>>(models_.size());
  for (size_t model = 0; model < models_.size(); ++model) {
    scorers_[model].OnProgress([=](uint64_t tokens) {
      (*scored)[model] = tokens;
      uint64_t all = 0;
      for (const uint64_t some : *scored) all += some;
      report(all);
    });
  }
}

}  // namespace kinglet
