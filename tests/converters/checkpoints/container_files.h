// For tests of containers: opens files and reads all of their tensors.
#ifndef KINGLET_TESTS_CONVERTERS_CHECKPOINTS_CONTAINER_FILES_H_
#define KINGLET_TESTS_CONVERTERS_CHECKPOINTS_CONTAINER_FILES_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/checkpoints/elements.h"
#include "format/input_file.h"
#include "tests/converters/files.h"

namespace kinglet {

inline std::shared_ptr<const InputFile> OpenInput(const std::string& path) {
  Result<InputFile> file = InputFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return std::make_shared<const InputFile>(std::move(file).value());
}

// The error text of a container's reader for a file of these bytes, or "accepted".
template <class Reader>
std::string RefusalOf(Reader reader, const std::string& content) {
  const TemporaryFile file(content);
  const Result<CheckpointTensors> weights = reader(OpenInput(file.path()));
  if (weights.ok()) return "accepted";
  EXPECT_EQ(weights.status().code(), KINGLET_INVALID_CHECKPOINT) << weights.status().message();
  return weights.status().message();
}

inline const CheckpointTensor& Named(const CheckpointTensors& weights, const std::string& name) {
  static const CheckpointTensor kNone;
  for (const CheckpointTensor& tensor : weights) {
    if (tensor.name == name) return tensor;
  }
  ADD_FAILURE() << "no tensor " << name;
  return kNone;
}

inline std::vector<float> FloatsOf(const CheckpointTensors& weights, const std::string& name) {
  const Result<std::vector<float>> values = Named(weights, name).values();
  EXPECT_TRUE(values.ok()) << values.status().message();
  return values.ok() ? *values : std::vector<float>();
}

inline std::vector<int64_t> IntegersOf(const CheckpointTensors& weights, const std::string& name) {
  const Result<std::vector<int64_t>> values = ReadIntegers(Named(weights, name));
  EXPECT_TRUE(values.ok()) << values.status().message();
  return values.ok() ? *values : std::vector<int64_t>();
}

// Expects of each tensor either an error or as many values as its shape says, at most `most`.
inline void ReadEverything(const CheckpointTensors& weights, uint64_t most) {
  for (const CheckpointTensor& tensor : weights) {
    const Result<std::vector<float>> values = tensor.values();
    if (values.ok()) {
      EXPECT_EQ(values->size(), CountEntries(tensor.shape)) << tensor.name;
      EXPECT_LE(values->size(), most) << tensor.name;
    } else {
      EXPECT_NE(values.status().message().find("expected "), std::string::npos);
    }
    const Result<std::vector<int64_t>> integers = tensor.integers();
    if (integers.ok()) {
      EXPECT_EQ(integers->size(), CountEntries(tensor.shape)) << tensor.name;
    }
  }
}

// Expects the arrays of named_arrays() in make_fixtures.py.
inline void ExpectNamedArrays(const CheckpointTensors& weights) {
  using Shape = std::vector<uint64_t>;
  using Floats = std::vector<float>;
  using Integers = std::vector<int64_t>;
  EXPECT_EQ(Named(weights, "F64").shape, (Shape{2, 3}));
  EXPECT_EQ(FloatsOf(weights, "F64"), (Floats{-0.5F, -0.25F, 0, 0.25F, 0.5F, 0.75F}));
  EXPECT_EQ(Named(weights, "F32").shape, (Shape{6}));
  EXPECT_EQ(FloatsOf(weights, "F32"), (Floats{-1, -0.5F, 0, 0.5F, 1, 1.5F}));
  EXPECT_EQ(FloatsOf(weights, "F16"), (Floats{0, 0.125F, 0.25F, 0.375F, 0.5F, 0.625F}));
  EXPECT_EQ(IntegersOf(weights, "I64"), (Integers{2147483647, 2147483648, -1099511627777}));
  EXPECT_EQ(FloatsOf(weights, "I64"), (Floats{2147483648.0F, 2147483648.0F, -1099511627776.0F}));
  EXPECT_EQ(Named(weights, "I32").shape, (Shape{2, 1}));
  EXPECT_EQ(IntegersOf(weights, "I32"), (Integers{-2147483648, 16777217}));
  EXPECT_EQ(IntegersOf(weights, "I16"), (Integers{-32768, 32767}));
  EXPECT_EQ(IntegersOf(weights, "I8"), (Integers{-128, 127}));
  EXPECT_EQ(IntegersOf(weights, "U32"), (Integers{4294967295, 0}));
  EXPECT_EQ(IntegersOf(weights, "U16"), (Integers{65535, 1}));
  EXPECT_EQ(IntegersOf(weights, "U8"), (Integers{255, 2}));
  EXPECT_EQ(IntegersOf(weights, "BOOL"), (Integers{1, 0, 1}));
  EXPECT_EQ(Named(weights, "empty").shape, (Shape{0, 5}));
  EXPECT_EQ(FloatsOf(weights, "empty"), Floats());
  EXPECT_EQ(Named(weights, "scalar").shape, Shape());
  EXPECT_EQ(FloatsOf(weights, "scalar"), Floats{0.25F});
  EXPECT_EQ(Named(weights, "deep/name.0").shape, (Shape{1, 2, 1, 2}));
  EXPECT_EQ(FloatsOf(weights, "deep/name.0"), (Floats{1, 1, 1, 1}));
  for (const char* name : {"F64", "F32", "F16", "scalar"}) {
    EXPECT_FALSE(ReadIntegers(Named(weights, name)).ok()) << name;
  }
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_CHECKPOINTS_CONTAINER_FILES_H_
