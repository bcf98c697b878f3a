#include "converters/sources/checkpoint_path.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/converters/synthetic.h"

namespace kinglet::checkpoint_path_test {
namespace {

TEST(StepOf, ReadsTheName) {
  EXPECT_EQ(StepOf("models/model-3000.pth"), 3000);
  EXPECT_EQ(StepOf("model-1-processed.pth"), 1);
  EXPECT_EQ(StepOf("/model-7/model-0.pth"), 0);
  for (const char* name : {"", "model-.pth", "model-x.pth", "model--1.pth", "model-5", "model-5x",
                           "my-model-5.pth", "model-99999999999999999999.pth", "model-5.pth/x"}) {
    EXPECT_FALSE(StepOf(name).has_value()) << name;
  }
}

TEST(FindCheckpoint, AFileIsItself) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("anything", "");
  EXPECT_EQ(FindCheckpoint(path).value(), path);
  EXPECT_EQ(FindCheckpoint(folder.Path("none")).value(), folder.Path("none"));
}

TEST(FindCheckpoint, TheLargestStepOfAFolder) {
  const TemporaryFolder folder;
  folder.Write("model-9.pth", "");
  folder.Write("model-10.pth", "");
  folder.Write("model-0100.pth", "");
  folder.Write("model-200.pth.tmp", "");
  folder.Write("model-300-processed.pth", "");
  std::filesystem::create_directory(folder.Path("model-400.pth"));
  EXPECT_EQ(FindCheckpoint(folder.path()).value(), folder.Path("model-10.pth"));
  const std::string inner = folder.Write("models/model-1.pth", "");
  EXPECT_EQ(FindCheckpoint(folder.path()).value(), inner);
}

TEST(FindCheckpoint, AWholeModelOfAFolderWithoutSteps) {
  const TemporaryFolder folder;
  const std::string whole = folder.Write("model.pt", "");
  EXPECT_EQ(FindCheckpoint(folder.path()).value(), whole);
  const std::string step = folder.Write("model-3.pth", "");
  EXPECT_EQ(FindCheckpoint(folder.path()).value(), step);
}

TEST(FindCheckpoint, AFolderWithoutOne) {
  const TemporaryFolder folder;
  const Status status = FindCheckpoint(folder.path()).status();
  EXPECT_EQ(status.code(), KINGLET_NOT_FOUND);
  EXPECT_NE(status.message().find("expected a file named model-<step>.pth"), std::string::npos);
}

TEST(FindCheckpoint, AFolderOfHuggingFace) {
  const TemporaryFolder folder;
  for (const char* name : {"model.safetensors.index.json", "pytorch_model.bin.index.json",
                           "model.safetensors", "pytorch_model.bin", "model.pt"}) {
    const std::string path = folder.Write(name, "");
    EXPECT_EQ(FindCheckpoint(folder.path()).value(), path);
  }
}

TEST(FindCheckpoint, AFolderOfTensorFlow) {
  const TemporaryFolder folder;
  folder.Write("model-20.index", "");
  const std::string largest = folder.Write("model-100.index", "");
  folder.Write("model-100.data-00000-of-00001", "");
  folder.Write("checkpoint", "");
  EXPECT_EQ(FindCheckpoint(folder.path()).value(), largest);
  const std::string exported = folder.Write("model.npz", "");
  EXPECT_EQ(FindCheckpoint(folder.path()).value(), exported);
}

TEST(FindConfig, BesideOrOneFolderUp) {
  const TemporaryFolder folder;
  const std::string checkpoint = folder.Write("run/models/model-1.pth", "");
  folder.Write("config.yaml", "");  // two folders up
  EXPECT_EQ(FindConfig(checkpoint, "config.yaml").status().code(), KINGLET_NOT_FOUND);
  const std::string up = folder.Write("run/config.yaml", "");
  EXPECT_EQ(FindConfig(checkpoint, "config.yaml").value(), up);
  const std::string beside = folder.Write("run/models/config.yaml", "");
  EXPECT_EQ(FindConfig(checkpoint, "config.yaml").value(), beside);
  EXPECT_EQ(FindConfig(checkpoint, "config.json").status().message(),
            "configuration: " + folder.Path("run/models") +
                ": expected config.json there or one folder up, or one named by --config, found "
                "none");
}

}  // namespace
}  // namespace kinglet::checkpoint_path_test
