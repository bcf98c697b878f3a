// Opens a draft as a model that computes in floats.
#ifndef KINGLET_TESTS_CONVERTERS_OPENED_H_
#define KINGLET_TESTS_CONVERTERS_OPENED_H_

#include <gtest/gtest.h>

#include <memory>

#include "format/writer.h"
#include "runtime/model.h"

namespace kinglet {

inline std::shared_ptr<const Model> Opened(const ModelDraft& draft) {
  const auto bytes = SerialiseModel(draft);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  auto model = Model::FromBytes(*bytes, {});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *model;
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_OPENED_H_
