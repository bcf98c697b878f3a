// kinglet inspect: the blocks and tensors of a model file, and the purpose of each byte; or the
// tensors of a checkpoint, and what reads them.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tools/commands.h"
#include "tools/folded_layers.h"
#include "tools/inspect_checkpoint.h"
#include "tools/inspect_report.h"
#include "tools/json_lines.h"
#include "tools/model_facts.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

struct InspectOptions {
  std::string path;
  bool json = false;
  bool skeleton = false;
  bool all_layers = false;
};

std::string Row(const char* name, const std::string& value) { return FactLine(name, value); }

std::string RightAligned(const std::string& text, size_t columns) {
  return std::string(columns - std::min(columns, text.size()), ' ') + text;
}

std::string TensorTable(const ModelFile& file, const ModelFacts& facts, bool all) {
  std::vector<std::string> names;
  for (const TensorFacts& tensor : facts.tensors) names.push_back(tensor.name);
  const std::vector<FoldedRow> rows = FoldLayers(names, [&](size_t a, size_t b) {
    return !all && facts.tensors[a].shape == facts.tensors[b].shape &&
           EncodingText(file.tensors()[a]) == EncodingText(file.tensors()[b]);
  });
  size_t name_columns = 4, shape_columns = 5, encoding_columns = 8;
  for (size_t i = 0; i < facts.tensors.size(); ++i) {
    name_columns = std::max(name_columns, DisplayText(facts.tensors[i].name).size());
    shape_columns = std::max(shape_columns, ShapeText(facts.tensors[i].shape).size());
    encoding_columns = std::max(encoding_columns, EncodingText(file.tensors()[i]).size());
  }
  name_columns = std::min(name_columns, size_t{48});
  const auto row = [&](const std::string& name, const std::string& shape,
                       const std::string& encoding, const std::string& bytes) {
    return "  " + FittedText(name, name_columns) + "  " + FittedText(shape, shape_columns) + "  " +
           FittedText(encoding, encoding_columns) + "  " + RightAligned(bytes, 12) + "\n";
  };
  std::string text = "\ntensors\n" + FoldedNote(rows) + row("name", "shape", "encoding", "bytes");
  for (const FoldedRow& folded : rows) {
    uint64_t bytes = 0;
    for (const size_t member : folded.members) bytes += facts.tensors[member].Bytes();
    const size_t first = folded.members[0];
    text += row(folded.name, ShapeText(facts.tensors[first].shape),
                EncodingText(file.tensors()[first]), Grouped(bytes));
  }
  return text;
}

std::string TextReport(const std::string& path, const ModelFile& file, bool all_layers) {
  const ModelFacts facts = DescribeModel(file);
  std::string text = Row("model", path);
  for (const auto& [name, value] : FileFacts(file, facts)) text += Row(name, value);
  text += "\nblocks\n";
  for (const Block& block : file.description().blocks) text += "  " + BlockLine(block) + "\n";
  text += TensorTable(file, facts, all_layers) + "\nbytes by part\n";
  const auto part_row = [](const std::string& part, uint64_t bytes) {
    return "  " + FittedText(part, 12) + RightAligned(Grouped(bytes), 14) + "\n";
  };
  for (const auto& [part, bytes] : facts.bytes_by_part) text += part_row(part, bytes);
  text += part_row("total", file.ledger().Total()) + part_row("file size", file.file_size());
  return text;
}

Status Inspect(const InspectOptions& options, Console& console) {
#if !defined(KINGLET_RUN_COMMAND)
  if (options.skeleton || IsCheckpointPath(options.path)) {
    const CheckpointView view = options.skeleton ? CheckpointView::kRecipeSkeleton
                                : options.json   ? CheckpointView::kJson
                                                 : CheckpointView::kText;
    KINGLET_ASSIGN_OR_RETURN(const std::string report, ReportCheckpoint(options.path, view));
    const bool escapes = options.skeleton && console.out_is_terminal;
    console.out.Write(escapes ? TerminalJson(report) : report);
    return Status();
  }
#endif
  KINGLET_ASSIGN_OR_RETURN(const auto file, ModelFile::Open(options.path));
  console.out.Write(options.json ? InspectJson(*file)
                                 : TextReport(options.path, *file, options.all_layers));
  return Status();
}

}  // namespace

Command AddInspect(Arguments& program) {
  const auto options = std::make_shared<InspectOptions>();
  Arguments inspect = program.AddSubcommand(
      "inspect",
      "Show the blocks and tensors of a model, or the tensors and families of a "
      "checkpoint");
  inspect.Add("FILE", options->path, "model file, or checkpoint file or folder")
      .Required()
      .Placeholder("");
  inspect.AddFlag("--json", options->json, "print JSON Lines");
  inspect.AddFlag("--all", options->all_layers, "list equal layers one by one");
#if !defined(KINGLET_RUN_COMMAND)
  inspect.AddFlag("--recipe-skeleton", options->skeleton,
                  "print a recipe for the checkpoint, to be completed (docs/RECIPES.md)");
#endif
  inspect.Footer("Example:\n  kinglet inspect model.kgl\n  kinglet inspect model.pt");
  return {inspect, [] { return Status(); },
          [options](Console& console) { return Inspect(*options, console); }};
}

}  // namespace kinglet
