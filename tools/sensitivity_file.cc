#include "tools/sensitivity_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "converters/checkpoints/text_input.h"
#include "converters/recipe/recipe_node.h"
#include "format/overloaded.h"
#include "tools/console.h"
#include "tools/json_lines.h"

namespace kinglet {
namespace {

Status RefuseIo(const std::string& path, const char* what) {
  return Status::Refusal(KINGLET_IO_ERROR, path, what, "a file that can be written",
                         std::strerror(errno));
}

void AddTexts(std::string_view key, const std::vector<std::string>& texts, JsonLine& line) {
  line.Key(key).BeginArray();
  for (const std::string& text : texts) line.Text(text);
  line.EndArray();
}

void AddOperations(const OperationCounts& counts, JsonLine& line) {
  const auto add = [&line](const char* key, const std::optional<double>& count) {
    line.Key(key);
    if (count) {
      line.Number(*count);
    } else {
      line.Null();
    }
  };
  line.Key("operations").BeginObject();
  add("executed", counts.executed);
  add("micronet-2019", counts.micronet);
  line.EndObject();
}

// Appends the options that are set.
void AddOptions(const ConvertOptions& convert, JsonLine& line) {
  line.Key("options").BeginObject();
  const auto add = [&line](const char* key, const std::string& value) {
    if (!value.empty()) line.Key(key).Text(value);
  };
  if (!convert.averaged.empty()) AddTexts("average", convert.averaged, line);
  add("family", convert.family);
  add("config", convert.config);
  add("vocab", convert.vocabulary);
  if (!convert.vocabulary_texts.empty()) AddTexts("vocab-from", convert.vocabulary_texts, line);
  add("tokenizer", convert.tokenizer);
  add("unknown", convert.unknown_word);
  if (convert.lower_case) line.Key("lowercase").Boolean(true);
  add("recipe", convert.recipe);
  if (convert.trust_recipe_paths) line.Key("trust-recipe-paths").Boolean(true);
  add("calibrate", convert.calibration_text);
  // Appends a choice that is not the default.
  const auto add_name = [&](const char* key, const auto& names, auto value) {
    if (static_cast<size_t>(value) != 0) {
      line.Key(key).Text(std::string(names[static_cast<size_t>(value)]));
    }
  };
  add_name("scale-by", kScaleByNames, convert.scale_by);
  add_name("round-by", kRoundByNames, convert.round_by);
  add_name("calibrate-by", kRangeRuleNames, convert.calibrate_by);
  if (convert.percentile) line.Key("percentile").Number(*convert.percentile);
  if (convert.define_cache_rows) line.Key("keep-define").Integer(*convert.define_cache_rows);
  if (convert.character_cache_rows) {
    line.Key("keep-characters").Integer(*convert.character_cache_rows);
  }
  if (convert.memory_length) line.Key("mem-len").Integer(*convert.memory_length);
  if (!convert.ignored_options.empty()) {
    AddTexts("ignore-option", convert.ignored_options, line);
  }
  if (convert.cache_capacity) line.Key("cache").Integer(*convert.cache_capacity);
  if (convert.cache_theta) line.Key("cache-theta").Number(*convert.cache_theta);
  if (convert.cache_lambda) line.Key("cache-lambda").Number(*convert.cache_lambda);
  line.EndObject();
}

Result<std::string> TextOr(const RecipeNode& node, std::string_view key) {
  const auto member = node.Find(key);
  return member ? member->Text() : Result<std::string>(std::string());
}
Result<std::vector<std::string>> TextsOr(const RecipeNode& node, std::string_view key) {
  const auto member = node.Find(key);
  return member ? member->Texts() : Result<std::vector<std::string>>(std::vector<std::string>());
}
Result<std::optional<uint32_t>> CountIf(const RecipeNode& node, std::string_view key) {
  const auto member = node.Find(key);
  if (!member) return std::optional<uint32_t>();
  KINGLET_ASSIGN_OR_RETURN(const uint64_t count, member->Count());
  if (count > std::numeric_limits<uint32_t>::max()) {
    return member->Refuse("a smaller number", member->Outline());
  }
  return std::optional(static_cast<uint32_t>(count));
}
// A number; nullopt for null or a missing member.
Result<std::optional<double>> NumberIf(const RecipeNode& node, std::string_view key) {
  const auto member = node.Find(key);
  if (!member || member->Outline() == "null") return std::optional<double>();
  KINGLET_ASSIGN_OR_RETURN(const double number, member->Number());
  return std::optional(number);
}
// A loss; null means infinity.
Result<double> LossAt(const RecipeNode& node, std::string_view key) {
  KINGLET_RETURN_IF_ERROR(node.Get(key).status());
  KINGLET_ASSIGN_OR_RETURN(const std::optional<double> loss, NumberIf(node, key));
  return loss.value_or(std::numeric_limits<double>::infinity());
}

Result<OperationCounts> ReadOperations(const RecipeNode& line) {
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode node, line.Get("operations"));
  OperationCounts counts;
  KINGLET_ASSIGN_OR_RETURN(counts.executed, NumberIf(node, "executed"));
  KINGLET_ASSIGN_OR_RETURN(counts.micronet, NumberIf(node, "micronet-2019"));
  return counts;
}

Status ReadOptions(const RecipeNode& line, ConvertOptions& convert) {
  KINGLET_ASSIGN_OR_RETURN(convert.checkpoint, line.TextAt("checkpoint"));
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode node, line.Get("options"));
  KINGLET_ASSIGN_OR_RETURN(convert.averaged, TextsOr(node, "average"));
  KINGLET_ASSIGN_OR_RETURN(convert.family, TextOr(node, "family"));
  KINGLET_ASSIGN_OR_RETURN(convert.config, TextOr(node, "config"));
  KINGLET_ASSIGN_OR_RETURN(convert.vocabulary, TextOr(node, "vocab"));
  KINGLET_ASSIGN_OR_RETURN(convert.vocabulary_texts, TextsOr(node, "vocab-from"));
  KINGLET_ASSIGN_OR_RETURN(convert.tokenizer, TextOr(node, "tokenizer"));
  KINGLET_ASSIGN_OR_RETURN(convert.unknown_word, TextOr(node, "unknown"));
  KINGLET_ASSIGN_OR_RETURN(convert.lower_case, node.TruthOr("lowercase", false));
  KINGLET_ASSIGN_OR_RETURN(convert.recipe, TextOr(node, "recipe"));
  KINGLET_ASSIGN_OR_RETURN(convert.trust_recipe_paths, node.TruthOr("trust-recipe-paths", false));
  KINGLET_ASSIGN_OR_RETURN(convert.calibration_text, TextOr(node, "calibrate"));
  KINGLET_RETURN_IF_ERROR(ReadEnum(node, "scale-by", kScaleByNames, convert.scale_by));
  KINGLET_RETURN_IF_ERROR(ReadEnum(node, "round-by", kRoundByNames, convert.round_by));
  KINGLET_RETURN_IF_ERROR(ReadEnum(node, "calibrate-by", kRangeRuleNames, convert.calibrate_by));
  KINGLET_ASSIGN_OR_RETURN(convert.percentile, NumberIf(node, "percentile"));
  KINGLET_ASSIGN_OR_RETURN(convert.define_cache_rows, CountIf(node, "keep-define"));
  KINGLET_ASSIGN_OR_RETURN(convert.character_cache_rows, CountIf(node, "keep-characters"));
  KINGLET_ASSIGN_OR_RETURN(convert.memory_length, CountIf(node, "mem-len"));
  KINGLET_ASSIGN_OR_RETURN(convert.ignored_options, TextsOr(node, "ignore-option"));
  KINGLET_ASSIGN_OR_RETURN(convert.cache_capacity, CountIf(node, "cache"));
  KINGLET_ASSIGN_OR_RETURN(convert.cache_theta, NumberIf(node, "cache-theta"));
  KINGLET_ASSIGN_OR_RETURN(convert.cache_lambda, NumberIf(node, "cache-lambda"));
  return {};
}

Status ReadGroup(const RecipeNode& node, SensitivityRecord& record) {
  MeasuredGroup group;
  KINGLET_ASSIGN_OR_RETURN(group.name, node.TextAt("tensor"));
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode tensors, node.Get("tensors"));
  KINGLET_ASSIGN_OR_RETURN(group.tensors, tensors.Texts());
  KINGLET_ASSIGN_OR_RETURN(group.entries, node.CountAt("entries"));
  KINGLET_ASSIGN_OR_RETURN(group.nonzeros, node.CountAt("nonzeros"));
  KINGLET_ASSIGN_OR_RETURN(group.bytes, node.CountAt("bytes"));
  if (group.entries == 0) return node.Refuse("entries", "none");
  record.groups.push_back(std::move(group));
  return {};
}

Status ReadFirst(const RecipeNode& node, SensitivityFile& file) {
  KINGLET_RETURN_IF_ERROR(ReadOptions(node, file.convert));
  KINGLET_ASSIGN_OR_RETURN(file.digest, node.TextAt("digest"));
  KINGLET_ASSIGN_OR_RETURN(file.text, node.TextAt("text"));
  KINGLET_ASSIGN_OR_RETURN(file.protocol, node.TextAt("protocol"));
  KINGLET_ASSIGN_OR_RETURN(file.tokens, node.CountAt("tokens"));
  KINGLET_ASSIGN_OR_RETURN(file.scored, node.CountAt("scored"));
  SensitivityRecord& record = file.record;
  KINGLET_ASSIGN_OR_RETURN(record.nll, node.NumberAt("nll"));
  KINGLET_ASSIGN_OR_RETURN(record.bytes, node.CountAt("bytes"));
  KINGLET_ASSIGN_OR_RETURN(record.operations, ReadOperations(node));
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode rest, node.Get("rest"));
  KINGLET_ASSIGN_OR_RETURN(const uint64_t bits, rest.CountAt("bits"));
  if (bits < kMinBits || bits > kMaxBits) return rest.Refuse(BitsText() + " bits", "others");
  record.rest_bits = static_cast<int>(bits);
  KINGLET_ASSIGN_OR_RETURN(record.rest_bytes, rest.CountAt("bytes"));
  KINGLET_ASSIGN_OR_RETURN(record.rest_nll, rest.NumberAt("nll"));
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode names, rest.Get("tensors"));
  KINGLET_ASSIGN_OR_RETURN(record.rest, names.Texts());
  KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> groups, node.ItemsAt("groups"));
  for (const RecipeNode& group : groups) KINGLET_RETURN_IF_ERROR(ReadGroup(group, record));
  return {};
}

Result<TensorChange> ReadChange(const RecipeNode& node) {
  if (const auto sparsity = node.Find("sparsity")) {
    KINGLET_ASSIGN_OR_RETURN(const double fraction, sparsity->Number());
    if (!(fraction >= 0 && fraction < 1)) {
      return sparsity->Refuse("at least 0, below 1", sparsity->Outline());
    }
    return TensorChange(SparsityChange{fraction});
  }
  if (const auto bits = node.Find("bits")) {
    KINGLET_ASSIGN_OR_RETURN(const uint64_t count, bits->Count());
    if (count < kMinBits || count > kMaxBits) return bits->Refuse(BitsText(), bits->Outline());
    return TensorChange(BitsChange{static_cast<int>(count)});
  }
  if (const auto rank = node.Find("rank")) {
    KINGLET_ASSIGN_OR_RETURN(const uint64_t count, rank->Count());
    return TensorChange(RankChange{count});
  }
  CodesChange codes;
  KINGLET_ASSIGN_OR_RETURN(codes.positions, node.CountAt("positions"));
  KINGLET_ASSIGN_OR_RETURN(codes.sub_vectors, node.CountAt("sub_vectors"));
  KINGLET_RETURN_IF_ERROR(ReadEnum(node, "form", kCodeFormNames, codes.form));
  return TensorChange(codes);
}

Status ReadChanged(const RecipeNode& node, const std::map<std::string, size_t>& groups,
                   SensitivityRecord& record) {
  MeasuredChange change;
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode tensor, node.Get("tensor"));
  KINGLET_ASSIGN_OR_RETURN(const std::string name, tensor.Text());
  const auto group = groups.find(name);
  if (group == groups.end()) return tensor.Refuse("a tensor of the first line", "'" + name + "'");
  change.group = group->second;
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode what, node.Get("change"));
  KINGLET_ASSIGN_OR_RETURN(change.change, ReadChange(what));
  Measurement& found = change.found;
  KINGLET_ASSIGN_OR_RETURN(found.entries, node.CountAt("entries"));
  KINGLET_ASSIGN_OR_RETURN(found.nonzeros, node.CountAt("nonzeros"));
  KINGLET_ASSIGN_OR_RETURN(found.nll, LossAt(node, "nll"));
  KINGLET_ASSIGN_OR_RETURN(const auto error, NumberIf(node, "standard_error"));
  found.standard_error = error.value_or(0);
  KINGLET_ASSIGN_OR_RETURN(const auto relative, NumberIf(node, "relative_error"));
  found.relative_error = relative.value_or(0);
  KINGLET_ASSIGN_OR_RETURN(found.bytes, node.CountAt("bytes"));
  KINGLET_ASSIGN_OR_RETURN(found.operations, ReadOperations(node));
  record.changes.push_back(change);
  return {};
}

// A line's error, with the number of the file's line instead of the JSON reader's.
Status InLine(const std::string& path, size_t number, const Status& status) {
  static constexpr std::string_view kBegin = "recipe: line, line 1, ";
  std::string_view text = status.message();
  if (text.starts_with(kBegin)) text.remove_prefix(kBegin.size());
  return Status(status.code(), "sensitivity file: " + path + ", line " + std::to_string(number) +
                                   ", " + std::string(text));
}

// All bytes of the descriptor's file.
Result<std::string> ReadAll(const std::string& path, int descriptor) {
  std::string text;
  char piece[1 << 16];
  for (;;) {
    const ssize_t got = ::read(descriptor, piece, sizeof piece);
    if (got == 0) return text;
    if (got > 0) {
      text.append(piece, static_cast<size_t>(got));
    } else if (errno != EINTR) {
      return Status::Refusal(KINGLET_IO_ERROR, path, "read", "a readable file",
                             std::strerror(errno));
    }
  }
}

std::vector<std::string> WholeLines(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

}  // namespace

std::string FirstLine(const SensitivityFile& file) {
  const SensitivityRecord& record = file.record;
  JsonLine line;
  line.Key("checkpoint").Text(file.convert.checkpoint);
  AddOptions(file.convert, line);
  line.Key("digest").Text(file.digest).Key("text").Text(file.text);
  line.Key("digests").BeginObject();
  for (const auto& [of, digest] : file.digests) line.Key(of).Text(digest);
  line.EndObject();
  line.Key("protocol").Text(file.protocol).Key("tokens").Integer(file.tokens);
  line.Key("scored").Integer(file.scored).Key("bin_counts").BeginArray();
  for (const uint64_t count : file.bin_counts) line.Integer(count);
  line.EndArray().Key("nll").Number(record.nll).Key("ppl").Number(std::exp(record.nll));
  line.Key("bytes").Integer(record.bytes);
  AddOperations(record.operations, line);
  line.Key("rest").BeginObject().Key("bits").Integer(static_cast<uint64_t>(record.rest_bits));
  line.Key("bytes").Integer(record.rest_bytes).Key("nll").Number(record.rest_nll);
  AddTexts("tensors", record.rest, line);
  line.EndObject().Key("groups").BeginArray();
  for (const MeasuredGroup& group : record.groups) {
    line.BeginObject().Key("tensor").Text(group.name);
    AddTexts("tensors", group.tensors, line);
    line.Key("entries").Integer(group.entries).Key("nonzeros").Integer(group.nonzeros);
    line.Key("bytes").Integer(group.bytes).EndObject();
  }
  line.EndArray();
  return line.Finish();
}

void AddForm(const CodesChange& codes, JsonLine& line) {
  if (codes.form == CodeForm::kProduct) return;
  line.Key("form").Text(std::string(kCodeFormNames[static_cast<size_t>(codes.form)]));
}

std::string ChangeLine(const MeasuredGroup& group, const MeasuredChange& change) {
  JsonLine line;
  line.Key("tensor").Text(group.name).Key("entries").Integer(change.found.entries);
  line.Key("change").BeginObject();
  std::visit(Overloaded{[&](const SparsityChange& pruned) {
                          line.Key("sparsity").Number(pruned.fraction);
                        },
                        [&](const BitsChange& quantised) {
                          line.Key("bits").Integer(static_cast<uint64_t>(quantised.bits));
                        },
                        [&](const CodesChange& coded) {
                          line.Key("positions").Integer(coded.positions);
                          line.Key("sub_vectors").Integer(coded.sub_vectors);
                          AddForm(coded, line);
                        },
                        [&](const RankChange& low) { line.Key("rank").Integer(low.rank); }},
             change.change);
  line.EndObject().Key("nll").Number(change.found.nll);
  line.Key("standard_error").Number(change.found.standard_error);
  line.Key("relative_error").Number(change.found.relative_error);
  line.Key("nonzeros").Integer(change.found.nonzeros).Key("bytes").Integer(change.found.bytes);
  AddOperations(change.found.operations, line);
  return line.Finish();
}

Result<SensitivityFile> ReadSensitivityFile(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path));
  const std::vector<std::string> lines = WholeLines(text);
  SensitivityFile file;
  std::map<std::string, size_t> groups;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Result<RecipeNode> node = RecipeNode::Parse("line", lines[i]);
    Status status = node.ok() ? Status() : node.status();
    if (status.ok()) {
      status = i == 0 ? ReadFirst(*node, file) : ReadChanged(*node, groups, file.record);
    }
    if (!status.ok()) return InLine(path, i + 1, status);
    for (size_t g = 0; i == 0 && g < file.record.groups.size(); ++g) {
      groups[file.record.groups[g].name] = g;
    }
  }
  if (!lines.empty()) return file;
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "sensitivity file", path,
                         "lines of `kinglet sensitivity`", "none");
}

void NoteUnused(const SensitivityRecord& record) {
  const std::vector<size_t> unused = UnusedGroups(record);
  if (unused.empty()) return;
  constexpr size_t kShown = 3;
  std::string names;
  for (size_t i = 0; i < std::min(unused.size(), kShown); ++i) {
    names += (i > 0 ? ", '" : "'") + record.groups[unused[i]].name + "'";
  }
  if (unused.size() > kShown) names += " and " + std::to_string(unused.size() - kShown) + " more";
  PrintNote(
      "no word of the text uses " + names +
      ", so changing them costs nothing there. A plan leaves them unchanged, or takes the most "
      "bits that were measured; measure on a longer text");
}

Result<LineWriter> LineWriter::Open(const std::string& path, std::string_view begin,
                                    std::vector<std::string>& lines) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) return RefuseIo(path, "open");
  LineWriter writer(path, descriptor);
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadAll(path, descriptor));
  lines = WholeLines(text);
  const size_t last = text.rfind('\n');
  const size_t complete_size = last == std::string::npos ? 0 : last + 1;
  // The bytes of a file that no such run began are not truncated.
  if (complete_size == 0 && !text.starts_with(begin) && !begin.starts_with(text)) {
    lines.push_back(text);
    return writer;
  }
  if (::ftruncate(descriptor, static_cast<off_t>(complete_size)) != 0 ||
      ::lseek(descriptor, 0, SEEK_END) < 0) {
    return RefuseIo(path, "write");
  }
  return writer;
}

LineWriter::LineWriter(LineWriter&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

LineWriter::~LineWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status LineWriter::Append(const std::string& line) {
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t wrote = ::write(descriptor_, rest.data(), rest.size());
    if (wrote > 0) {
      rest.remove_prefix(static_cast<size_t>(wrote));
    } else if (wrote == 0 || errno != EINTR) {
      return RefuseIo(path_, "write");
    }
  }
  return {};
}

}  // namespace kinglet
