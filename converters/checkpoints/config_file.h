// A framework's configuration: a YAML or JSON file that maps names to numbers, texts, bools,
// lists of these, and further such mappings (sections). YAML 1.1, whose scalars Python's library
// (PyYAML) reads. Immutable.
//
// HyperPyYAML (SpeechBrain) is YAML with tags: "!new:package.Class" on a section that has the
// arguments of an object, "!name:package.Class" on a class or function, "!ref <key>" on a text that
// stands for the value of another key.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_CONFIG_FILE_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_CONFIG_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

class ConfigFile {
 public:
  // An empty file has no keys. Values of other kinds (lists of lists or mappings) are allowed; only
  // asking for one is an error. Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR,
  // KINGLET_INVALID_CHECKPOINT naming the line.
  static Result<ConfigFile> Read(const std::string& path);

  const std::string& path() const { return path_; }
  // A section of this file without keys.
  ConfigFile Empty() const { return ConfigFile(path_, std::make_shared<const Values>()); }
  // Whether the key has a value that is not null.
  bool Has(const std::string& key) const;
  std::vector<std::string> Keys() const;
  // The tag of a key's value: "!new:package.Class"; empty if it has none.
  std::string Tag(const std::string& key) const;
  // The value of a key as Python would write it: None, True, 3, 0.1, 'text', [1, 2], {}; a float
  // without a fraction as an integer; longer values by their kind. REQUIRES: Keys() has the key.
  std::string PythonText(const std::string& key) const;

  // The value of a key. Errors: KINGLET_INVALID_CHECKPOINT for a missing key or a value of another
  // kind, naming file, key and line. An integer is a number too; a quoted number is a text.
  Result<int64_t> Integer(const std::string& key) const;
  Result<double> Number(const std::string& key) const;  // finite; also 1e-05 as Python prints it
  Result<double> NumberOr(const std::string& key, double otherwise) const {
    return Has(key) ? Number(key) : otherwise;
  }
  Result<std::string> Text(const std::string& key) const;
  Result<bool> Boolean(const std::string& key) const;
  Result<std::vector<int64_t>> Integers(const std::string& key) const;
  Result<std::vector<bool>> Booleans(const std::string& key) const;
  Result<std::vector<std::string>> Texts(const std::string& key) const;
  // The mapping that is the value of a key.
  Result<ConfigFile> Section(const std::string& key) const;

  // Returns the section with each reference "!ref <key>" replaced by the value of `root`'s key.
  // Errors: KINGLET_INVALID_CHECKPOINT for other references (to a part of a value, with
  // arithmetic), and for those that name no key or themselves.
  Result<ConfigFile> WithReferences(const ConfigFile& root) const;

 private:
  static Result<ConfigFile> Parse(const std::string& path);
  enum class Kind { kNull, kScalar, kList, kSection, kOther };
  struct Scalar {
    std::string text;
    bool quoted = false;
    int line = 0;  // 1-based

    std::string PythonText() const;
  };
  struct Value;
  using Values = std::map<std::string, Value>;
  struct Value {
    Kind kind = Kind::kOther;
    Scalar scalar;              // of kScalar; its line is the value's, whatever the kind
    std::vector<Scalar> items;  // kList
    std::string tag;
    std::shared_ptr<const Values> section;  // kSection
  };

  ConfigFile() = default;
  ConfigFile(std::string path, std::shared_ptr<const Values> values)
      : path_(std::move(path)), values_(std::move(values)) {}
  // The refusal of a value of another kind.
  Status RefuseKind(const std::string& key, const Value& value, const std::string& expected) const;
  Result<Value> Resolved(const std::string& key, const Value& value) const;
  Result<const Value*> Find(const std::string& key, const std::string& expected) const;
  // The value, of kind kList.
  Result<const Value*> FindList(const std::string& key, const std::string& expected) const;
  Result<const Scalar*> FindScalar(const std::string& key, const std::string& expected) const;
  Status Refuse(const std::string& key, const Scalar& scalar, const std::string& expected,
                const std::string& found) const;

  friend struct ConfigFileReader;
  std::string path_;
  std::shared_ptr<const Values> values_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_CONFIG_FILE_H_
