#include "converters/checkpoints/config_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <exception>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "converters/checkpoints/parse_number.h"
#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "format/input_file.h"

namespace kinglet {
namespace {

// Configurations have a few hundred bytes, or a list of all tokens; the parser's tree is many times
// larger than its text.
constexpr uint64_t kMaxConfigBytes = uint64_t{1} << 22;
// Aliases can turn a small text into an endless tree.
constexpr size_t kMaxConfigValues = size_t{1} << 20;
constexpr int kMaxConfigLevels = 16;
constexpr int kMaxReferences = 16;  // one after the other

template <class Number>
std::optional<Number> ParseScalar(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  return ParseNumber<Number>(text);
}

// YAML 1.1, but for its "y" and "n", which PyYAML does not read either.
std::optional<bool> ParseBoolean(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kTrue = {"true", "True", "TRUE", "yes", "Yes",
                                                            "YES",  "on",   "On",   "ON"};
  static constexpr std::array<std::string_view, 9> kFalse = {"false", "False", "FALSE", "no", "No",
                                                             "NO",    "off",   "Off",   "OFF"};
  if (std::find(kTrue.begin(), kTrue.end(), text) != kTrue.end()) return true;
  if (std::find(kFalse.begin(), kFalse.end(), text) != kFalse.end()) return false;
  return std::nullopt;
}

int LineOf(const YAML::Mark& mark) { return mark.line + 1; }

std::string KindName(YAML::NodeType::value type) {
  switch (type) {
    case YAML::NodeType::Null:
      return "nothing";
    case YAML::NodeType::Scalar:
      return "a scalar";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Map:
      return "a mapping";
    case YAML::NodeType::Undefined:
      break;
  }
  return "something undefined";
}

}  // namespace

// Turns the YAML library's tree into plain values.
struct ConfigFileReader {
  const std::string& path;
  size_t values_left = kMaxConfigValues;

  // A tag as it is written; empty for the tags that the library adds: "?" to a plain value, "!" to
  // a quoted one.
  static std::string TagOf(const YAML::Node& node) {
    return node.Tag().size() > 1 ? node.Tag() : std::string();
  }
  static ConfigFile::Scalar ScalarOf(const YAML::Node& node) {
    return {node.IsScalar() ? node.Scalar() : std::string(), node.Tag() == "!",
            LineOf(node.Mark())};
  }

  Status Refuse(int line, const std::string& expected, const std::string& found) const {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path, "line " + std::to_string(line),
                           expected, found);
  }
  Status Count(const YAML::Node& node) {
    if (values_left-- > 0) return {};
    return Refuse(LineOf(node.Mark()), "at most " + std::to_string(kMaxConfigValues) + " values",
                  "more");
  }

  Result<ConfigFile::Value> ValueOf(const YAML::Node& node, int level) {
    KINGLET_RETURN_IF_ERROR(Count(node));
    ConfigFile::Value value;
    value.scalar = ScalarOf(node);
    value.tag = TagOf(node);
    if (node.IsNull()) {
      value.kind = ConfigFile::Kind::kNull;
    } else if (node.IsScalar()) {
      value.kind = ConfigFile::Kind::kScalar;
    } else if (node.IsSequence()) {
      value.kind = ConfigFile::Kind::kList;
      for (const YAML::Node& item : node) {
        KINGLET_RETURN_IF_ERROR(Count(item));
        if (!item.IsScalar()) value.kind = ConfigFile::Kind::kOther;
        value.items.push_back(ScalarOf(item));
      }
    } else if (level < kMaxConfigLevels) {
      value.kind = ConfigFile::Kind::kSection;
      KINGLET_ASSIGN_OR_RETURN(value.section, SectionOf(node, level + 1));
    }
    return value;
  }

  // REQUIRES: the node is a mapping.
  Result<std::shared_ptr<const ConfigFile::Values>> SectionOf(const YAML::Node& node, int level) {
    auto values = std::make_shared<ConfigFile::Values>();
    for (const auto& entry : node) {
      const int line = LineOf(entry.first.Mark());
      if (!entry.first.IsScalar()) return Refuse(line, "a name", KindName(entry.first.Type()));
      const std::string& name = entry.first.Scalar();
      KINGLET_ASSIGN_OR_RETURN(ConfigFile::Value value, ValueOf(entry.second, level));
      if (!values->emplace(name, std::move(value)).second) {
        return Refuse(line, "each name once", QuotedName(name) + " again");
      }
    }
    return std::shared_ptr<const ConfigFile::Values>(std::move(values));
  }

  Result<std::shared_ptr<const ConfigFile::Values>> Fill(const YAML::Node& root) {
    if (root.IsNull()) return std::make_shared<const ConfigFile::Values>();
    if (root.IsMap()) return SectionOf(root, 1);
    return Refuse(LineOf(root.Mark()), "a mapping of names to values", KindName(root.Type()));
  }
};

Result<ConfigFile> ConfigFile::Read(const std::string& path) {
  return WithNextStep(Parse(path), "correct the file, or give another one with --config");
}

Result<ConfigFile> ConfigFile::Parse(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  if (file.size() > kMaxConfigBytes) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path, "size",
                           "at most " + std::to_string(kMaxConfigBytes) + " bytes",
                           std::to_string(file.size()));
  }
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  try {
    KINGLET_ASSIGN_OR_RETURN(auto values, ConfigFileReader{path}.Fill(YAML::Load(text)));
    return ConfigFile(path, std::move(values));
  } catch (const YAML::Exception& error) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path,
                           "line " + std::to_string(LineOf(error.mark)), "YAML", error.msg);
  } catch (const std::bad_alloc&) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, path, "parsing", "memory for its values", "none");
  } catch (const std::exception& error) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path, "parsing", "YAML", error.what());
  }
}

Status ConfigFile::Refuse(const std::string& key, const Scalar& scalar, const std::string& expected,
                          const std::string& found) const {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path_,
                         QuotedName(key) + " at line " + std::to_string(scalar.line), expected,
                         found);
}

bool ConfigFile::Has(const std::string& key) const {
  const auto value = values_->find(key);
  return value != values_->end() && value->second.kind != Kind::kNull;
}

std::vector<std::string> ConfigFile::Keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : *values_) keys.push_back(key);
  return keys;
}

std::string ConfigFile::Tag(const std::string& key) const {
  const auto value = values_->find(key);
  return value == values_->end() ? std::string() : value->second.tag;
}

std::string ConfigFile::Scalar::PythonText() const {
  if (quoted) return QuotedName(text);
  if (const auto truth = ParseBoolean(text)) return *truth ? "True" : "False";
  if (const auto integer = ParseScalar<int64_t>(text)) return std::to_string(*integer);
  const auto number = ParseScalar<double>(text);
  if (!number) return QuotedName(text);
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), *number).ptr;
  return {digits.data(), end};
}

std::string ConfigFile::PythonText(const std::string& key) const {
  const Value& value = values_->at(key);
  if (!value.tag.empty()) return value.tag + " " + QuotedName(value.scalar.text);
  constexpr size_t kShown = 8;
  switch (value.kind) {
    case Kind::kNull:
      return "None";
    case Kind::kScalar:
      return value.scalar.PythonText();
    case Kind::kSection:
      return value.section->empty() ? "{}" : "a mapping";
    case Kind::kList:
      if (value.items.size() <= kShown) break;
      [[fallthrough]];
    case Kind::kOther:
      return "a list";
  }
  std::string text;
  for (const Scalar& item : value.items) text += (text.empty() ? "" : ", ") + item.PythonText();
  return "[" + text + "]";
}

Result<const ConfigFile::Value*> ConfigFile::Find(const std::string& key,
                                                  const std::string& expected) const {
  const auto value = values_->find(key);
  if (value == values_->end()) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path_, QuotedName(key), expected,
                           "no such key");
  }
  return &value->second;
}

Status ConfigFile::RefuseKind(const std::string& key, const Value& value,
                              const std::string& expected) const {
  switch (value.kind) {
    case Kind::kNull:
      return Refuse(key, value.scalar, expected, "no value");
    case Kind::kScalar:
      return Refuse(key, value.scalar, expected, QuotedName(value.scalar.text));
    case Kind::kList:
      return Refuse(key, value.scalar, expected, "a list");
    case Kind::kSection:
    case Kind::kOther:
      break;
  }
  return Refuse(key, value.scalar, expected, "a nested value");
}

Result<const ConfigFile::Scalar*> ConfigFile::FindScalar(const std::string& key,
                                                         const std::string& expected) const {
  KINGLET_ASSIGN_OR_RETURN(const Value* value, Find(key, expected));
  if (value->kind == Kind::kScalar) return &value->scalar;
  return RefuseKind(key, *value, expected);
}

Result<int64_t> ConfigFile::Integer(const std::string& key) const {
  const std::string expected = "an integer of 64 bits";
  KINGLET_ASSIGN_OR_RETURN(const Scalar* scalar, FindScalar(key, expected));
  const std::optional<int64_t> value = ParseScalar<int64_t>(scalar->text);
  if (!value || scalar->quoted) return Refuse(key, *scalar, expected, QuotedName(scalar->text));
  return *value;
}

Result<double> ConfigFile::Number(const std::string& key) const {
  const std::string expected = "a finite number";
  KINGLET_ASSIGN_OR_RETURN(const Scalar* scalar, FindScalar(key, expected));
  const std::optional<double> value = ParseScalar<double>(scalar->text);
  if (!value || scalar->quoted || !std::isfinite(*value)) {
    return Refuse(key, *scalar, expected, QuotedName(scalar->text));
  }
  return *value;
}

Result<std::string> ConfigFile::Text(const std::string& key) const {
  KINGLET_ASSIGN_OR_RETURN(const Scalar* scalar, FindScalar(key, "a text"));
  return scalar->text;
}

Result<bool> ConfigFile::Boolean(const std::string& key) const {
  const std::string expected = "true or false";
  KINGLET_ASSIGN_OR_RETURN(const Scalar* scalar, FindScalar(key, expected));
  const std::optional<bool> value = ParseBoolean(scalar->text);
  if (!value || scalar->quoted) return Refuse(key, *scalar, expected, QuotedName(scalar->text));
  return *value;
}

Result<const ConfigFile::Value*> ConfigFile::FindList(const std::string& key,
                                                      const std::string& expected) const {
  KINGLET_ASSIGN_OR_RETURN(const Value* value, Find(key, expected));
  if (value->kind == Kind::kList) return value;
  return RefuseKind(key, *value, expected);
}

Result<std::vector<std::string>> ConfigFile::Texts(const std::string& key) const {
  KINGLET_ASSIGN_OR_RETURN(const Value* value, FindList(key, "a list of texts"));
  std::vector<std::string> texts;
  for (const Scalar& item : value->items) texts.push_back(item.text);
  return texts;
}

Result<ConfigFile> ConfigFile::Section(const std::string& key) const {
  const std::string expected = "a mapping of names to values";
  KINGLET_ASSIGN_OR_RETURN(const Value* value, Find(key, expected));
  if (value->kind == Kind::kSection) return ConfigFile(path_, value->section);
  return RefuseKind(key, *value, expected);
}

Result<ConfigFile> ConfigFile::WithReferences(const ConfigFile& root) const {
  auto values = std::make_shared<Values>();
  for (const auto& [key, value] : *values_) {
    KINGLET_ASSIGN_OR_RETURN(Value resolved, root.Resolved(key, value));
    values->emplace(key, std::move(resolved));
  }
  return ConfigFile(path_, std::move(values));
}

// The value of `key`, which may be a reference to one of this file's keys.
Result<ConfigFile::Value> ConfigFile::Resolved(const std::string& key, const Value& value) const {
  const std::string expected = "a reference to a key: !ref <key>";
  const Value* at = &value;
  for (int steps = 0; at->tag == "!ref" || at->tag == "!copy"; ++steps) {
    const std::string& text = at->scalar.text;
    const bool plain = text.size() > 2 && text.front() == '<' && text.back() == '>' &&
                       text.find_first_of("<>[].", 1) == text.size() - 1;
    if (!plain) return Refuse(key, at->scalar, expected, QuotedName(text));
    const auto found = values_->find(text.substr(1, text.size() - 2));
    if (found == values_->end()) {
      return Refuse(key, at->scalar, expected, QuotedName(text) + ", and no such key");
    }
    if (steps == kMaxReferences) {
      return Refuse(key, at->scalar, expected, "references without end");
    }
    at = &found->second;
  }
  return *at;
}

Result<std::vector<int64_t>> ConfigFile::Integers(const std::string& key) const {
  const std::string expected = "a list of integers of 64 bits";
  KINGLET_ASSIGN_OR_RETURN(const Value* value, FindList(key, expected));
  std::vector<int64_t> integers;
  for (const Scalar& item : value->items) {
    const std::optional<int64_t> integer = ParseScalar<int64_t>(item.text);
    if (!integer || item.quoted) return Refuse(key, item, expected, QuotedName(item.text));
    integers.push_back(*integer);
  }
  return integers;
}

Result<std::vector<bool>> ConfigFile::Booleans(const std::string& key) const {
  const std::string expected = "a list of true and false";
  KINGLET_ASSIGN_OR_RETURN(const Value* value, FindList(key, expected));
  std::vector<bool> booleans;
  for (const Scalar& item : value->items) {
    const std::optional<bool> boolean = ParseBoolean(item.text);
    if (!boolean || item.quoted) return Refuse(key, item, expected, QuotedName(item.text));
    booleans.push_back(*boolean);
  }
  return booleans;
}

}  // namespace kinglet
