// Prints the tables of docs/TECHNIQUES.md: converts and measures every compression method with this
// build. bench/README.md shows its use.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "bench/technique_measure.h"
#include "bench/technique_rows.h"
#include "tools/arguments.h"
#include "tools/console.h"

namespace kinglet {
namespace {

struct Options {
  TechniqueFolders folders{KINGLET_EXAMPLES, "", ""};
  std::string text, only;
};

// A temporary folder, removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(std::filesystem::temp_directory_path() /
              ("kinglet-techniques-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string File(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

const char* TitleOf(TechniqueBase base) {
  switch (base) {
    case TechniqueBase::kDemo:
      return "The demo model, changed after training";
    case TechniqueBase::kFull:
      return "A small LSTM with full tables, changed after training";
    case TechniqueBase::kTrained:
      return "Small LSTMs trained with the technique";
    case TechniqueBase::kTransformer:
      return "Small Transformers trained with the technique";
  }
  return "";
}

uint64_t BytesOf(const TableBytes& bytes, TechniqueTables tables) {
  switch (tables) {
    case TechniqueTables::kInput:
      return bytes.input;
    case TechniqueTables::kOutput:
      return bytes.output;
    case TechniqueTables::kBoth:
      return bytes.both;
  }
  return 0;
}

const char* NameOf(TechniqueTables tables) {
  switch (tables) {
    case TechniqueTables::kInput:
      return "input";
    case TechniqueTables::kOutput:
      return "output";
    case TechniqueTables::kBoth:
      return "both";
  }
  return "";
}

std::string Fixed(double number) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.2f", number);
  return text;
}

std::string RatioText(uint64_t before, uint64_t after) {
  return Fixed(static_cast<double>(before) / static_cast<double>(after));
}

// The compression ratio of each coded table by the papers' formula.
std::string PublishedRatios(const TechniqueMeasurement& found) {
  std::string text;
  for (const CodedTableFacts& table : found.coded) {
    text += (text.empty() ? "" : ", ") + Fixed(table.ratios.plain);
  }
  return text.empty() ? "-" : text;
}

// `before` is null if there is nothing to compare with.
void PrintRow(const TechniqueRow& row, const TechniqueMeasurement* before,
              const TechniqueMeasurement& after) {
  const uint64_t table_after = BytesOf(after.tables, row.tables);
  std::string table_before = "-", table_ratio = "-", file_before = "-", file_ratio = "-";
  if (before != nullptr) {
    const uint64_t table = BytesOf(before->tables, row.tables);
    table_before = Grouped(table);
    table_ratio = RatioText(table, table_after);
    file_before = Grouped(before->file_bytes);
    file_ratio = RatioText(before->file_bytes, after.file_bytes);
  }
  std::printf("| %s | `%s` | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n",
              std::string(row.method).c_str(), CommandOf(row).c_str(), NameOf(row.tables),
              table_before.c_str(), Grouped(table_after).c_str(), table_ratio.c_str(),
              PublishedRatios(after).c_str(), file_before.c_str(),
              Grouped(after.file_bytes).c_str(), file_ratio.c_str(),
              Fixed(after.perplexity).c_str());
  std::fflush(stdout);
}

void PrintTitles(TechniqueBase base) {
  std::printf(
      "\n## %s\n\n"
      "| method | `kinglet` | tables | bytes before | after | ratio | by formula | file before | "
      "after | ratio | perplexity |\n"
      "|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
      TitleOf(base));
}

// Whether an option names the folder of the models of a base.
bool IsAtHand(const TechniqueFolders& folders, TechniqueBase base) {
  switch (base) {
    case TechniqueBase::kDemo:
      return true;
    case TechniqueBase::kFull:
    case TechniqueBase::kTrained:
      return !folders.models.empty();
    case TechniqueBase::kTransformer:
      return !folders.checkpoints.empty();
  }
  return false;
}

TechniqueText TextOf(const TechniqueRow& row, const Options& options) {
  if (row.base == TechniqueBase::kTransformer) {
    return {options.folders.checkpoints + "/" + std::string(row.checkpoint) + "/tokens.txt", true};
  }
  const std::string& examples = options.folders.examples;
  return {options.text.empty() ? examples + "/wikitext2/passage.txt" : options.text};
}

// Measures the rows whose models are present. Returns false if one failed.
bool PrintTables(const Options& options) {
  const TemporaryFolder folder;
  std::optional<TechniqueBase> base;
  std::string_view checkpoint;
  std::optional<TechniqueMeasurement> compared;
  bool fine = true;
  for (const TechniqueRow& row : TechniqueRows()) {
    if (!IsAtHand(options.folders, row.base)) continue;
    const bool fresh = base != row.base;
    const bool first = row.base == TechniqueBase::kTransformer
                           ? fresh || row.checkpoint != checkpoint
                           : fresh && row.base != TechniqueBase::kTrained;
    if (fresh) PrintTitles(row.base);
    base = row.base;
    checkpoint = row.checkpoint;
    if (!first && !options.only.empty() && row.method.find(options.only) == std::string::npos) {
      continue;
    }
    const auto found = MeasureTechnique(OptionsOf(row, options.folders, folder.File("model.kgl")),
                                        TextOf(row, options));
    if (!found.ok()) {
      std::fprintf(stderr, "techniques: %s: %s\n", CommandOf(row).c_str(),
                   found.status().message().c_str());
      fine = false;
      if (first) return false;  // without a reference there is nothing to compare
      continue;
    }
    if (first) compared = *found;
    const bool trained_so = first && !row.recipe.empty();
    PrintRow(row, trained_so ? nullptr : &*compared, *found);
  }
  return fine;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) {
  kinglet::ArgumentParser program("Converts and measures every technique, and prints Markdown.",
                                  "techniques");
  kinglet::Options options;
  program.Add("--models", options.folders.models,
              "folder that examples/torch/train_all.sh filled; without it no small LSTMs");
  program.Add("--checkpoints", options.folders.checkpoints,
              "folder with fairseq-char, reference-txl-define and reference-txl-dpq; without it no "
              "small Transformers");
  program.Add("--examples", options.folders.examples, "the examples folder of the source tree")
      .ShowDefault();
  program.Add("--text", options.text,
              "text to score (default: wikitext2/passage.txt); Transformers have their own");
  program.Add("--only", options.only, "measure only rows whose method contains this text");
  if (const std::optional<int> exit = program.ParseAndPrint(argc, argv)) return *exit;
  try {
    return kinglet::PrintTables(options) ? 0 : 1;
  } catch (const std::exception& error) {  // memory and temporary files
    std::fprintf(stderr, "techniques: %s\n", error.what());
    return 1;
  }
}
