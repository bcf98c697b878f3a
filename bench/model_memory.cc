// Compares the memory of an open coded model with the size of its file. `make` writes a recurrent
// model with coded input and output tables and random weights; `open` opens one and measures.
//
//   model_memory make --preset dpq --bits 9 -o dpq.kgl
//   model_memory open dpq.kgl
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/write_file.h"
#include "format/writer.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "tests/support/recurrent_builder.h"
#include "tools/arguments.h"

namespace kinglet {
namespace {

// A line of /proc/self/status, in bytes.
uint64_t ProcessBytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    uint64_t kilobytes = 0;
    if (word == key + ":" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

// `total` sub-vectors, divided among the pools as evenly as possible.
std::vector<uint32_t> EqualPools(uint32_t total, uint32_t positions) {
  std::vector<uint32_t> pools;
  for (uint32_t j = 0; j < positions; ++j) {
    pools.push_back(total / positions + (j < total % positions ? 1 : 0));
  }
  return pools;
}

// DPQ's Penn Treebank LSTM (Chen et al. 2020: K = 32, D = 25) with a slim output layer, and slim
// embeddings' One Billion Word shapes (Li et al. 2018) with as many sub-vectors as words.
TinyRecurrentOptions Preset(const std::string& name) {
  TinyRecurrentOptions options;
  options.tails = 0;
  options.vocabulary = false;
  if (name == "dpq") {
    options.vocabulary_size = 10000;
    options.inputs = options.units = 650;
    options.input_coding = {25, std::vector<uint32_t>(25, 32)};
    // The second layer has one unit more than the first.
    options.units = 649;
    options.head_coding = {5, EqualPools(10000, 5)};
  } else {
    options.vocabulary_size = 793471;
    options.inputs = 512;
    options.units = 2047;
    options.input_coding = {8, {793471 / 8}};
    options.head_coding = {8, EqualPools(793471, 8)};
  }
  return options;
}

Status Make(const std::string& preset, int bits, const std::string& path) {
  TinyRecurrentOptions options = Preset(preset);
  options.bits = bits;
  options.quantised = bits != 0;
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                           SerialiseModel(TinyRecurrent(options)));
  return WriteFileAtomically(bytes, path);
}

Status Open(const std::string& path, const std::string& backend) {
  const uint64_t empty = ProcessBytes("VmRSS");
  KINGLET_ASSIGN_OR_RETURN(const auto model, Model::Open(path, {.backend = backend}));
  const auto file = static_cast<double>(model->file().file_size());
  const auto print = [&](const char* what, uint64_t bytes) {
    std::printf("%-34s %12llu %8.3f\n", what, static_cast<unsigned long long>(bytes),
                static_cast<double>(bytes) / file);
  };
  print("file", model->file().file_size());
  print("peak while opening", ProcessBytes("VmHWM") - empty);
  print("held while open", ProcessBytes("VmRSS") - empty);
  KINGLET_ASSIGN_OR_RETURN(const auto session, Session::Create(model));
  std::vector<double> distribution(model->vocabulary_size());
  for (const uint32_t word : {1u, 2u, 3u}) {
    KINGLET_RETURN_IF_ERROR(session->StepToken(word));
    KINGLET_RETURN_IF_ERROR(session->LogProbabilities(distribution));
  }
  print("peak with three tokens", ProcessBytes("VmHWM") - empty);
  return Status();
}

int Main(int argc, char** argv) {
  ArgumentParser program("Measure the memory of an open coded model", "model_memory");
  program.RequireSubcommand();
  std::string preset = "dpq", path, backend = "cpu";
  int bits = 0;
  Arguments make = program.AddSubcommand("make", "write a model");
  make.Add("--preset", preset).OneOf({"dpq", "slim"});
  make.Add("--bits", bits, "0 means float32").Between(0, 16);
  make.Add("-o,--output", path).Required();
  Arguments open = program.AddSubcommand("open", "open a model and measure its memory");
  open.Add("FILE", path).Required();
  open.Add("--backend", backend).ShowDefault();
  if (const std::optional<int> exit = program.ParseAndPrint(argc, argv)) return *exit;
  const Status status = make.parsed() ? Make(preset, bits, path) : Open(path, backend);
  if (!status.ok()) std::fprintf(stderr, "model_memory: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) { return kinglet::Main(argc, argv); }
