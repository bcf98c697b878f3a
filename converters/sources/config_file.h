// A training code's configuration: a YAML or JSON file that maps names to numbers, texts, bools,
// and lists of integers or bools. YAML 1.1, whose scalars Python's library (PyYAML) reads.
// Immutable.
#ifndef KINGLET_CONVERTERS_SOURCES_CONFIG_FILE_H_
#define KINGLET_CONVERTERS_SOURCES_CONFIG_FILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

class ConfigFile {
 public:
  // An empty file has no keys. Values of other kinds (nested mappings, lists of texts) are allowed;
  // only asking for one is an error. Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR,
  // KINGLET_INVALID_CHECKPOINT naming the line.
  static Result<ConfigFile> Read(const std::string& path);

  const std::string& path() const { return path_; }
  // False also for a key whose value is null.
  bool Has(const std::string& key) const;

  // The value of a key. Errors: KINGLET_INVALID_CHECKPOINT for a missing key or a value of another
  // kind, naming file, key and line. An integer is a number too; a quoted number is a text.
  Result<int64_t> Integer(const std::string& key) const;
  Result<double> Number(const std::string& key) const;  // finite; also 1e-05 as Python prints it
  Result<std::string> Text(const std::string& key) const;
  Result<bool> Boolean(const std::string& key) const;
  Result<std::vector<int64_t>> Integers(const std::string& key) const;
  Result<std::vector<bool>> Booleans(const std::string& key) const;

 private:
  enum class Kind { kNull, kScalar, kList, kOther };
  struct Scalar {
    std::string text;
    bool quoted = false;
    int line = 0;  // 1-based
  };
  struct Value {
    Kind kind = Kind::kOther;
    Scalar scalar;              // of kScalar; its line is the value's, whatever the kind
    std::vector<Scalar> items;  // kList
  };

  ConfigFile() = default;
  Result<const Value*> Find(const std::string& key, const std::string& expected) const;
  // The value, of kind kList.
  Result<const Value*> FindList(const std::string& key, const std::string& expected) const;
  Result<const Scalar*> FindScalar(const std::string& key, const std::string& expected) const;
  Status Refuse(const std::string& key, const Scalar& scalar, const std::string& expected,
                const std::string& found) const;

  friend struct ConfigFileReader;
  std::string path_;
  std::map<std::string, Value> values_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_CONFIG_FILE_H_
