#include "tools/inspect_checkpoint.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/checkpoints/checkpoint_path.h"
#include "converters/checkpoints/derived_weights.h"
#include "converters/families/name_match.h"
#include "converters/recipe/recipe_skeleton.h"
#include "format/encoding.h"
#include "format/input_file.h"
#include "tools/console.h"
#include "tools/json_lines.h"
#include "tools/network_recipe.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

constexpr std::string_view kModelExtension = ".kgl";
constexpr std::string_view kModelMark = "KGL1";

std::string TypeName(const CheckpointTensor& tensor) {
  return tensor.type ? std::string(ElementName(*tensor.type)) : "unknown";
}

// Families and frameworks whose names match the checkpoint's.
struct Readers {
  std::vector<NameMatch> families;    // NearestFamilies
  std::optional<PrefixMatch> prefix;  // FittingPrefix
};

void AppendNames(const char* key, const std::vector<std::string>& names, JsonLine& line) {
  line.Key(key).BeginArray();
  for (const std::string& name : names) line.Text(DisplayText(name));
  line.EndArray();
}

std::string CheckpointJson(const CheckpointFile& file, const Readers& readers) {
  JsonLine line;
  line.Key("checkpoint").Text(DisplayText(file.path)).Key("file_size").Integer(file.bytes);
  line.Key("digest").Text(file.digest).Key("tensors").BeginArray();
  for (const CheckpointTensor& tensor : file.tensors) {
    line.BeginObject().Key("name").Text(DisplayText(tensor.name)).Key("shape").BeginArray();
    for (const uint64_t size : tensor.shape) line.Integer(size);
    line.EndArray().Key("type").Text(TypeName(tensor)).EndObject();
  }
  line.EndArray().Key("families").BeginArray();
  for (const NameMatch& match : readers.families) {
    line.BeginObject().Key("name").Text(match.family->name);
    line.Key("supported").Boolean(match.is_read()).Key("fit").Number(match.fit);
    AppendNames("missing", match.missing, line);
    AppendNames("unused", match.unused, line);
    if (!match.refusal.empty()) line.Key("refusal").Text(DisplayText(match.refusal));
    line.EndObject();
  }
  line.EndArray();
  if (readers.prefix) {
    line.Key("prefix").BeginObject().Key("prefix").Text(DisplayText(readers.prefix->prefix));
    line.Key("family").Text(readers.prefix->family->name).EndObject();
  }
  AppendNames("notes", file.notes, line);
  return line.Finish();
}

// One line of names; only the first few of many.
std::string NameRow(const char* what, const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  if (names.empty()) return "";
  std::string text = std::string("    ") + what;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) {
    text += (i == 0 ? "" : ", ") + DisplayText(names[i]);
  }
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text + "\n";
}

std::string FamilyRows(const Readers& readers) {
  std::string text = "\nfamilies\n";
  if (readers.prefix) {
    text += "  " + std::string(readers.prefix->family->name) +
            ": all names fit, with a recipe {\"prefix\": \"" + DisplayText(readers.prefix->prefix) +
            "\"}\n";
  }
  for (const NameMatch& match : readers.families) {
    text += "  " + std::string(match.family->name) + ": ";
    if (!match.is_read()) {
      text += UnreadText(*match.family);
    } else if (!match.refusal.empty()) {
      text += "recognised, and refused: " + DisplayText(match.refusal);
    } else {
      text += match.fit == 1 ? "all names fit" : "nearly fits";
    }
    text += "\n" + NameRow("misses ", match.missing) + NameRow("does not read ", match.unused);
  }
  if (!readers.prefix && readers.families.empty()) text += "  none\n";
  return text;
}

std::string NextRow(const std::string& path, const CheckpointFile& file, const Readers& readers) {
  const bool is_readable = !readers.families.empty() && readers.families.front().fits() &&
                           readers.families.front().is_read();
  if (is_readable) return "next: kinglet convert " + DisplayText(path) + " -o model.kgl\n";
  if (!file.unread.empty()) return "next: " + DisplayText(file.unread) + "\n";
  if (readers.prefix) {
    return "next: kinglet convert " + DisplayText(path) +
           " --recipe FILE -o model.kgl, with {\"prefix\": \"" +
           DisplayText(readers.prefix->prefix) + "\"} in FILE\n";
  }
  return "next: kinglet inspect " + DisplayText(path) +
         " --recipe-skeleton > recipe.json, and complete it (docs/RECIPES.md)\n";
}

std::string TensorRows(const CheckpointFile& file) {
  constexpr size_t kWidest = 64;
  size_t name_columns = 4, shape_columns = 5;
  for (const CheckpointTensor& tensor : file.tensors) {
    name_columns = std::max(name_columns, DisplayText(tensor.name).size());
    shape_columns = std::max(shape_columns, ShapeText(tensor.shape).size());
  }
  name_columns = std::min(name_columns, kWidest);
  const auto row = [&](const std::string& name, const std::string& shape, const std::string& type) {
    return "  " + FittedText(name, name_columns) + "  " + FittedText(shape, shape_columns) + "  " +
           type + "\n";
  };
  std::string text = "\ntensors\n" + row("name", "shape", "type");
  for (const CheckpointTensor& tensor : file.tensors) {
    text += row(tensor.name, ShapeText(tensor.shape), TypeName(tensor));
  }
  return text;
}

std::string CheckpointText(const std::string& path, const CheckpointFile& file,
                           const Readers& readers) {
  uint64_t entries = 0;
  for (const CheckpointTensor& tensor : file.tensors) entries += CountEntries(tensor.shape);
  std::string text = FactLine("checkpoint", file.path);
  text += FactLine("bytes", Grouped(file.bytes)) + FactLine("digest", file.digest);
  text +=
      FactLine("tensors", Grouped(file.tensors.size()) + " of " + Grouped(entries) + " entries");
  for (const std::string& note : file.notes) text += FactLine("note", note);
  return text + FamilyRows(readers) + TensorRows(file) + "\n" + NextRow(path, file, readers);
}

}  // namespace

bool IsCheckpointPath(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return true;
  if (path.ends_with(kModelExtension)) return false;
  const Result<InputFile> file = InputFile::Open(path);
  std::array<char, kModelMark.size()> head{};
  // A file that cannot be opened is refused alike as checkpoint and as model.
  if (!file.ok()) return true;
  if (file->size() < head.size() || !file->ReadAt(0, std::as_writable_bytes(std::span(head))).ok())
    return true;
  return std::string_view(head.data(), head.size()) != kModelMark;
}

Result<std::string> ReportCheckpoint(const std::string& path, CheckpointView view) {
  KINGLET_ASSIGN_OR_RETURN(const std::string found, FindCheckpoint(path));
  KINGLET_ASSIGN_OR_RETURN(CheckpointFile file, OpenCheckpointFile(found));
  for (std::string& note : ComputeWeights(file.tensors)) file.notes.push_back(std::move(note));
  const FamilyInput input = InputOf(file, file.tensors);
  if (view == CheckpointView::kRecipeSkeleton) {
    std::optional<std::string> network = NetworkRecipe(input);
    return network ? *std::move(network) : RecipeSkeleton(input);
  }
  const Readers readers = {NearestFamilies(input), FittingPrefix(input)};
  return view == CheckpointView::kJson ? CheckpointJson(file, readers)
                                       : CheckpointText(path, file, readers);
}

}  // namespace kinglet
