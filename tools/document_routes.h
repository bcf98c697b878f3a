// The models of documents: one for all, or one for each value of a member, such as a language.
#ifndef KINGLET_TOOLS_DOCUMENT_ROUTES_H_
#define KINGLET_TOOLS_DOCUMENT_ROUTES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kinglet/status.h"
#include "runtime/model.h"
#include "tools/document_reader.h"
#include "tools/document_scorer.h"
#include "tools/run_options.h"

namespace kinglet {

struct RouteOptions {
  std::string member;       // "" means one model for all documents
  std::string models_file;  // {"VALUE":"M.kgl",..}, with paths from the file's folder
  bool refuses = true;      // documents whose value has no model are an error
};

class DocumentRoutes {
 public:
  // Opens all models. Errors: those of Model::Open, RequireNoSource and DocumentScorer::Create;
  // KINGLET_INVALID_ARGUMENT for a file that is no object of texts.
  static Result<DocumentRoutes> Open(const RunOptions& run, const DocumentBlocks& blocks,
                                     const RouteOptions& options);

  size_t size() const { return routes_.size(); }
  // In ascending order; "" without a member.
  const std::string& ValueOf(size_t route) const { return routes_[route].value; }
  const Model& ModelOf(size_t route) const { return *models_[routes_[route].model]; }

  // The route of a document, or DocumentLoss::kNoRoute. KINGLET_INVALID_ARGUMENT for a document
  // without a model that the options refuse.
  Result<uint32_t> RouteOf(const std::string& input_name, const Document& document) const;
  // DocumentScorer::Score by each document's model.
  Result<std::vector<DocumentLoss>> Score(const std::string& input_name,
                                          std::span<const Document> documents,
                                          const DocumentScorer::Omits& omits);

  // Called with the number of tokens that were scored so far.
  void OnProgress(const std::function<void(uint64_t)>& report);

 private:
  struct Route {
    std::string value;
    size_t model = 0;
  };
  RouteOptions options_;
  std::vector<Route> routes_;
  std::vector<std::shared_ptr<const Model>> models_;
  std::vector<DocumentScorer> scorers_;  // of each model
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_DOCUMENT_ROUTES_H_
