#include "converters/families/config_options.h"

#include <gtest/gtest.h>

#include "tests/converters/files.h"

namespace kinglet::config_options_test {
namespace {

constexpr FixedOption kFixed[] = {{"norm", "True"}, {"heads", "0|2"}, {"list", "[1, 'a', True]"}};
constexpr OptionTable kOptions = {"a file", "width depth", kFixed, "lr data_*", {}, "depth norm"};

std::string Refusal(const std::string& text, IgnoredOptions* ignored = nullptr) {
  const TemporaryFile file(text, ".yaml");
  const auto config = ConfigFile::Read(file.path());
  EXPECT_TRUE(config.ok()) << config.status().message();
  const Status status = CheckConfig(kOptions, *config, ignored, "lm_conf, ");
  EXPECT_EQ(status.code(), status.ok() ? KINGLET_OK : KINGLET_UNSUPPORTED);
  const size_t at = status.message().find("lm_conf");
  return at == std::string::npos ? status.message() : status.message().substr(at);
}

TEST(ConfigOptions, ValuesAsPythonWritesThem) {
  EXPECT_EQ(Refusal("width: 3\ndepth: x\nnorm: yes\nheads: 2.0\nlr: 1e-3\ndata_path: ~\n"), "");
  EXPECT_EQ(Refusal("list: [1, a, yes]\nheads: +0\nwidth: null\nheads2: 1\n"),
            "lm_conf, heads2: expected an option that kinglet knows, found 'heads2' = 1 "
            "(--ignore-option 'heads2' if the network's output does not depend on it)");
  EXPECT_EQ(Refusal("norm: False\n"), "lm_conf, norm: expected True, found False");
  EXPECT_EQ(Refusal("norm: 'True'\n"), "lm_conf, norm: expected True, found 'True'");
  EXPECT_EQ(Refusal("heads: 0.5\n"), "lm_conf, heads: expected 0 or 2, found 0.5");
  EXPECT_EQ(Refusal("list: {}\n"), "lm_conf, list: expected [1, 'a', True], found {}");
  EXPECT_EQ(Refusal("list: {a: 1}\n"), "lm_conf, list: expected [1, 'a', True], found a mapping");
  EXPECT_EQ(Refusal("list: [[1]]\n"), "lm_conf, list: expected [1, 'a', True], found a list");
  EXPECT_EQ(Refusal("list: !ref <x>\n"),
            "lm_conf, list: expected [1, 'a', True], found !ref '<x>'");
}

// A framework does not take None for its default.
TEST(ConfigOptions, NoneWhereItIsNotNone) {
  for (const char* name : {"depth", "norm"}) {
    EXPECT_EQ(Refusal(std::string(name) + ": null\n"),
              "lm_conf, " + std::string(name) +
                  ": expected a value, found None (write the value that the network was trained "
                  "with)");
  }
}

TEST(ConfigOptions, WhatTheUserIgnores) {
  IgnoredOptions ignored{{"residual"}};
  EXPECT_EQ(Refusal("residual: 1\n", &ignored), "");
  EXPECT_EQ(ignored.met, std::vector<std::string>{"residual"});
}

}  // namespace
}  // namespace kinglet::config_options_test
