#include "converters/sources/config_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "converters/sources/input_file.h"
#include "converters/sources/parse_number.h"
#include "converters/sources/quoted.h"

namespace kinglet {
namespace {

// Configurations have a few hundred bytes, and the parser's tree is many times larger than its
// text.
constexpr uint64_t kMaxConfigBytes = uint64_t{1} << 20;

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
  static ConfigFile::Scalar ScalarOf(const YAML::Node& node) {
    // The library tags a quoted scalar "!" and a plain one "?".
    return {node.IsScalar() ? node.Scalar() : std::string(), node.Tag() == "!",
            LineOf(node.Mark())};
  }

  static ConfigFile::Value ValueOf(const YAML::Node& node) {
    ConfigFile::Value value;
    value.scalar = ScalarOf(node);
    if (node.IsNull()) {
      value.kind = ConfigFile::Kind::kNull;
    } else if (node.IsScalar()) {
      value.kind = ConfigFile::Kind::kScalar;
    } else if (node.IsSequence()) {
      value.kind = ConfigFile::Kind::kList;
      for (const YAML::Node& item : node) {
        if (!item.IsScalar()) value.kind = ConfigFile::Kind::kOther;
        value.items.push_back(ScalarOf(item));
      }
    }
    return value;
  }

  static Status Fill(const YAML::Node& root, ConfigFile* config) {
    const auto refuse = [config](int line, const std::string& expected, const std::string& found) {
      return Status::Refusal(KINGLET_INVALID_CHECKPOINT, config->path_,
                             "line " + std::to_string(line), expected, found);
    };
    if (root.IsNull()) return Status();
    if (!root.IsMap()) {
      return refuse(LineOf(root.Mark()), "a mapping of names to values", KindName(root.Type()));
    }
    for (const auto& entry : root) {
      const int line = LineOf(entry.first.Mark());
      if (!entry.first.IsScalar()) return refuse(line, "a name", KindName(entry.first.Type()));
      const std::string& name = entry.first.Scalar();
      if (!config->values_.emplace(name, ValueOf(entry.second)).second) {
        return refuse(line, "each name once", QuotedName(name) + " again");
      }
    }
    return Status();
  }
};

Result<ConfigFile> ConfigFile::Read(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  if (file.size() > kMaxConfigBytes) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path, "size",
                           "at most " + std::to_string(kMaxConfigBytes) + " bytes",
                           std::to_string(file.size()));
  }
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  ConfigFile config;
  config.path_ = path;
  try {
    KINGLET_RETURN_IF_ERROR(ConfigFileReader::Fill(YAML::Load(text), &config));
  } catch (const YAML::Exception& error) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path,
                           "line " + std::to_string(LineOf(error.mark)), "YAML", error.msg);
  } catch (const std::exception& error) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path, "parsing", "YAML", error.what());
  }
  return config;
}

Status ConfigFile::Refuse(const std::string& key, const Scalar& scalar, const std::string& expected,
                          const std::string& found) const {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path_,
                         QuotedName(key) + " at line " + std::to_string(scalar.line), expected,
                         found);
}

bool ConfigFile::Has(const std::string& key) const {
  const auto value = values_.find(key);
  return value != values_.end() && value->second.kind != Kind::kNull;
}

Result<const ConfigFile::Value*> ConfigFile::Find(const std::string& key,
                                                  const std::string& expected) const {
  const auto value = values_.find(key);
  if (value == values_.end()) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path_, QuotedName(key), expected,
                           "no such key");
  }
  return &value->second;
}

Result<const ConfigFile::Scalar*> ConfigFile::FindScalar(const std::string& key,
                                                         const std::string& expected) const {
  KINGLET_ASSIGN_OR_RETURN(const Value* value, Find(key, expected));
  switch (value->kind) {
    case Kind::kScalar:
      return &value->scalar;
    case Kind::kNull:
      return Refuse(key, value->scalar, expected, "no value");
    case Kind::kList:
      return Refuse(key, value->scalar, expected, "a list");
    case Kind::kOther:
      break;
  }
  return Refuse(key, value->scalar, expected, "a nested value");
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
  switch (value->kind) {
    case Kind::kList:
      return value;
    case Kind::kNull:
      return Refuse(key, value->scalar, expected, "no value");
    case Kind::kScalar:
      return Refuse(key, value->scalar, expected, QuotedName(value->scalar.text));
    case Kind::kOther:
      break;
  }
  return Refuse(key, value->scalar, expected, "a nested value");
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
