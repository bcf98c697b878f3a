#include "converters/checkpoints/checkpoint_path.h"

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
  const Status none = FindCheckpoint(folder.Path("none")).status();
  EXPECT_NE(none.message().find("no such file (its folder has anything)"), std::string::npos)
      << none.message();
}

void ExpectNamed(const std::string& folder, const std::string& names) {
  const Status status = FindCheckpoint(folder).status();
  EXPECT_EQ(status.code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(status.message(), "checkpoint: " + folder +
                                  ": expected one checkpoint (name the file instead of its "
                                  "folder), found " +
                                  names);
}

TEST(FindCheckpoint, StepsAreNotChosenBetween) {
  const TemporaryFolder folder;
  const std::string only = folder.Write("model-10.pth", "");
  folder.Write("model-200.pth.tmp", "");
  std::filesystem::create_directory(folder.Path("model-400.pth"));
  EXPECT_EQ(FindCheckpoint(folder.path()).value(), only);
  folder.Write("model-9.pth", "");
  ExpectNamed(folder.path(), "model-10.pth, model-9.pth");
  folder.Write("model.pt", "");
  ExpectNamed(folder.path(), "model.pt, model-10.pth, model-9.pth");
  const std::string inner = folder.Write("models/model-1.pth", "");
  EXPECT_EQ(FindCheckpoint(folder.path()).value(), inner);
}

TEST(FindCheckpoint, NamedStepsAreNotChosenBetween) {
  const TemporaryFolder folder;
  const std::string only = folder.Write("lm_step_20.pt", "");
  EXPECT_EQ(FindCheckpoint(folder.path()).value(), only);
  folder.Write("lm_step_7.pt", "");
  ExpectNamed(folder.path(), "lm_step_20.pt, lm_step_7.pt");
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
  const std::string index = folder.Write("model-100.index", "");
  folder.Write("model-100.data-00000-of-00001", "");
  folder.Write("checkpoint", "");
  EXPECT_EQ(FindCheckpoint(folder.path()).value(), index);
  for (const char* other : {"model-100.meta", "model-100.data-00000-of-00001"}) {
    EXPECT_EQ(FindCheckpoint(folder.Path(other)).value(), index);
  }
  folder.Write("model-20.index", "");
  ExpectNamed(folder.path(), "model-100.index, model-20.index");
  // TensorFlow's own record of the latest one, whatever folder it was written in.
  for (const char* latest : {"model-100", "/other/place/model-100"}) {
    const std::string record =
        folder.Write("checkpoint", "model_checkpoint_path: \"" + std::string(latest) +
                                       "\"\nall_model_checkpoint_paths: \"model-20\"\n");
    EXPECT_EQ(FindCheckpoint(record).value(), index);
    EXPECT_EQ(FindCheckpoint(folder.path()).value(), index);
  }
  const std::string exported = folder.Write("model.npz", "");
  EXPECT_EQ(FindCheckpoint(folder.path()).value(), exported);
}

TEST(FindCheckpoint, OtherNamesOfTensorFlow) {
  const TemporaryFolder estimator;
  const std::string index = estimator.Write("model.ckpt-7.index", "");
  EXPECT_EQ(FindCheckpoint(estimator.path()).value(), index);
  const TemporaryFolder exported;
  const std::string graph = exported.Write("saved_model.pb", "");
  const std::string variables = exported.Write("variables/variables.index", "");
  EXPECT_EQ(FindCheckpoint(exported.path()).value(), variables);
  EXPECT_EQ(FindCheckpoint(graph).value(), variables);
  // A name like one of TensorFlow's, without its index, is a file like others.
  const std::string other = exported.Write("words.meta", "");
  EXPECT_EQ(FindCheckpoint(other).value(), other);
}

TEST(FindCheckpoint, PartsOfADistributedCheckpoint) {
  const TemporaryFolder folder;
  const std::string part = folder.Write("__0_0.distcp", "PK\3\4");
  folder.Write(".metadata", "");
  for (const std::string& path : {folder.path(), part}) {
    const Status status = FindCheckpoint(path).status();
    EXPECT_EQ(status.code(), KINGLET_UNSUPPORTED);
    EXPECT_NE(status.message().find("torch.distributed.checkpoint.format_utils dcp_to_torch " +
                                    folder.path() + " model.pt` makes one file"),
              std::string::npos)
        << status.message();
  }
}

TEST(FindCheckpoint, NamesOfFrameworks) {
  for (const char* name :
       {"epoch-7.pt", "checkpoint-90.pt", "best-valid-loss.pt", "pretrained.pt", "3epoch.pth",
        "valid.loss.ave_3best.pth", "lm.ckpt", "model.ckpt", "model.npz", "demo_step_7.pt"}) {
    const TemporaryFolder folder;
    folder.Write("optimizer.ckpt", "PK\3\4");
    folder.Write("tokens.txt", "1 2\n");
    const std::string path = folder.Write(name, "");
    EXPECT_EQ(FindCheckpoint(folder.path()).value(), path);
  }
}

TEST(FindCheckpoint, SeveralAreNamed) {
  const TemporaryFolder folder;
  folder.Write("epoch-7.pt", "");
  folder.Write("epoch-8.pt", "");
  const Status status = FindCheckpoint(folder.path()).status();
  EXPECT_EQ(status.code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_NE(status.message().find("found epoch-7.pt, epoch-8.pt"), std::string::npos);
  folder.Write("model.pt", "");
  EXPECT_FALSE(FindCheckpoint(folder.path()).ok());
  // A link to a checkpoint is not a second checkpoint.
  const TemporaryFolder linked;
  const std::string file = linked.Write("3epoch.pth", "");
  std::filesystem::create_symlink(file, linked.Path("valid.loss.best.pth"));
  EXPECT_EQ(FindCheckpoint(linked.path()).value(), file);
}

TEST(FindCheckpoint, AnyFileOfTensorsIfItIsTheOnlyOne) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("mine.model", "PK\3\4");
  folder.Write("optimizer.ckpt", "PK\3\4");
  folder.Write("cpu_jit.pt", "PK\3\4");
  folder.Write("notes.txt", "PK");
  EXPECT_EQ(FindCheckpoint(folder.path()).value(), path);
  folder.Write("other.model", "PK\3\4");
  EXPECT_EQ(FindCheckpoint(folder.path()).status().code(), KINGLET_INVALID_ARGUMENT);
}

TEST(FindConfig, TwoFoldersUpIfTheFamilyAllowsIt) {
  const TemporaryFolder folder;
  const std::string checkpoint = folder.Write("save/CKPT+1/model.ckpt", "");
  const std::string config = folder.Write("hyperparams.yaml", "");
  EXPECT_EQ(FindConfig(checkpoint, "hyperparams.yaml", 2).value(), config);
  EXPECT_FALSE(FindConfig(checkpoint, "hyperparams.yaml").ok());
}

TEST(FindConfig, NextToTheCheckpointOrOneFolderUp) {
  const TemporaryFolder folder;
  const std::string checkpoint = folder.Write("run/models/model-1.pth", "");
  folder.Write("config.yaml", "");  // two folders up
  EXPECT_EQ(FindConfig(checkpoint, "config.yaml").status().code(), KINGLET_NOT_FOUND);
  const std::string up = folder.Write("run/config.yaml", "");
  EXPECT_EQ(FindConfig(checkpoint, "config.yaml").value(), up);
  const std::string nearest = folder.Write("run/models/config.yaml", "");
  EXPECT_EQ(FindConfig(checkpoint, "config.yaml").value(), nearest);
  EXPECT_EQ(FindConfig(checkpoint, "config.json").status().message(),
            "configuration: " + folder.Path("run/models") +
                ": expected config.json there or one folder up, or one named by --config, found "
                "none");
}

}  // namespace
}  // namespace kinglet::checkpoint_path_test
