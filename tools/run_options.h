// Options shared by all subcommands that run a model.
#ifndef KINGLET_TOOLS_RUN_OPTIONS_H_
#define KINGLET_TOOLS_RUN_OPTIONS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "kinglet/status.h"
#include "runtime/model.h"
#include "tools/arguments.h"
#include "tools/console.h"

namespace kinglet {

struct RunOptions {
  std::string model;  // path
  std::string backend = "cpu";
  size_t threads = 1;
  size_t lanes = 1;
  bool json = false;
};

// Declares M.kgl and --backend. `options` outlives the parsing.
void AddModelChoice(Arguments& arguments, RunOptions& options);
inline constexpr size_t kMaxLanes = 65536;
// Declares --threads and --lanes, whose help is `lanes`. `options` outlives the parsing.
void AddTeamOptions(Arguments& arguments, RunOptions& options, const std::string& lanes);
// Declares M.kgl, --backend and --json. `options` outlives the parsing.
void AddModelOptions(Arguments& arguments, RunOptions& options);
// Declares --threads.
void AddThreads(Arguments& arguments, size_t& threads);
// Declares --progress, which ProgressFormOf reads.
void AddProgress(Arguments& arguments, std::string& progress);
ProgressForm ProgressFormOf(const std::string& progress, const Console& console);
// AddModelOptions and AddTeamOptions. `options` outlives the parsing.
void AddRunOptions(Arguments& arguments, RunOptions& options, const std::string& lanes);

Result<std::shared_ptr<const Model>> OpenModel(const RunOptions& options);
// Like OpenModel, with every weight of the file kept in memory, for callers that read the weights.
Result<std::shared_ptr<const Model>> OpenWholeModel(const RunOptions& options);

// KINGLET_UNSUPPORTED for a model with an encoder, which needs a source, and for a masked model,
// which reads complete texts: `command` reads a stream of tokens.
Status RequireNoSource(const Model& model, const std::string& command);

// Significant digits that distinguish all values of the backend's real type: 9 or 17.
int NumberDigits(const Model& model);
// The number with NumberDigits significant digits.
std::string NumberText(double number, const Model& model);
// Replaces the file name in messages about standard input.
inline constexpr std::string_view kStandardInput = "standard input";
// The exact bits of a log-probability in the backend's real type, in hexadecimal.
std::string HexBits(double value, const Model& model);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_RUN_OPTIONS_H_
