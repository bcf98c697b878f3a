// Times sessions of many lanes and encoders on the backends `cpu` and `onednn`, interleaved: steps
// of all lanes, steps with full distributions, steps of a few lanes, and sources. KINGLET_CPU=avx2
// and ONEDNN_MAX_CPU_ISA=AVX2 hold both to AVX2.
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/median.h"
#include "converters/splitmix.h"
#include "format/write_file.h"
#include "format/writer.h"
#include "kinglet/status.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/translation_builder.h"
#include "tools/arguments.h"

namespace kinglet {
namespace {

constexpr std::array<const char*, 2> kBackends = {"cpu", "onednn"};

struct Options {
  std::vector<std::string> models;
  std::string save;
  uint32_t lanes = 64, threads = 1;
  uint32_t source = 100;
  int rounds = 7;
};

// --- what is measured without a model: random weights in published shapes ---

// The large network of Zaremba et al. 2014.
ModelDraft LargeLstm() {
  return TinyRecurrent({.inputs = 1500,
                        .units = 1500,
                        .more_units = 0,
                        .vocabulary_size = 10000,
                        .tails = 0,
                        .vocabulary = false});
}

// OpenNMT's Transformer, which is the base model of Vaswani et al. 2017.
ModelDraft Translation() {
  TinyTranslationOptions options;
  options.vocabulary = false;
  options.source_words = options.target_words = 32000;
  options.encoder_layers = options.decoder_layers = 6;
  options.encoder_width = options.decoder_width = 512;
  options.encoder_heads = options.decoder_heads = 8;
  options.key_size = options.value_size = 64;
  options.inner = 2048;
  options.source_window = options.target_window = 256;
  return TinyTranslation(options);
}

struct Bytes {
  std::string name;
  std::vector<std::byte> bytes;
};

Result<std::vector<Bytes>> Synthesised(const Options& options) {
  std::vector<Bytes> made;
  const auto add = [&](const std::string& name, const ModelDraft& draft) -> Status {
    KINGLET_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, SerialiseModel(draft));
    if (!options.save.empty()) {
      const auto path = std::filesystem::path(options.save) / (name + ".kgl");
      KINGLET_RETURN_IF_ERROR(WriteFileAtomically(bytes, path.string()));
    }
    made.push_back({name, std::move(bytes)});
    return Status();
  };
  KINGLET_RETURN_IF_ERROR(add("lstm-2x1500", LargeLstm()));
  KINGLET_RETURN_IF_ERROR(add("opennmt-6x512", Translation()));
  return made;
}

// --- times ---

// Microseconds: processor time of the calling thread, so that other work on the machine disturbs
// less; with several threads, time on the wall clock.
double Now(const Options& options) {
  timespec now = {};
  clock_gettime(options.threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// Runs `run` on both backends, interleaved, and prints the medians of the times and their ratios.
Status Compare(const std::string& what, const Options& options,
               const std::function<Status(size_t backend)>& run) {
  std::array<std::vector<double>, 2> times;
  std::vector<double> ratios;
  for (int round = -1; round < options.rounds; ++round) {
    std::array<double, 2> taken;
    for (size_t backend = 0; backend < kBackends.size(); ++backend) {
      const double start = Now(options);
      KINGLET_RETURN_IF_ERROR(run(backend));
      taken[backend] = Now(options) - start;
    }
    if (round < 0) continue;  // the caches were empty
    for (size_t backend = 0; backend < kBackends.size(); ++backend) {
      times[backend].push_back(taken[backend]);
    }
    ratios.push_back(taken[0] / taken[1]);
  }
  std::printf("  %-32s %12.1f %12.1f %7.2f\n", what.c_str(), Median(times[0]), Median(times[1]),
              Median(ratios));
  return Status();
}

std::vector<uint32_t> RandomIds(SplitMix64& random, size_t count, uint32_t size) {
  std::vector<uint32_t> ids(count);
  for (uint32_t& id : ids) id = random.Below(size);
  return ids;
}

using Models = std::array<std::shared_ptr<const Model>, 2>;
using Sessions = std::array<std::unique_ptr<Session>, 2>;

Result<Sessions> Start(const Models& models, const SessionOptions& options) {
  Sessions sessions;
  for (size_t i = 0; i < models.size(); ++i) {
    KINGLET_ASSIGN_OR_RETURN(sessions[i], Session::Create(models[i], options));
  }
  return sessions;
}

Status MeasureLanes(const Options& options, const Models& models) {
  KINGLET_ASSIGN_OR_RETURN(Sessions sessions,
                           Start(models, {.lanes = options.lanes, .threads = options.threads}));
  const uint32_t words = models[0]->vocabulary_size();
  std::vector<uint32_t> lanes(options.lanes);
  std::iota(lanes.begin(), lanes.end(), 0U);
  std::array<SplitMix64, 2> random = {SplitMix64(1), SplitMix64(1)};  // the same ids on both
  const auto step = [&](size_t backend, size_t count) {
    const std::vector<uint32_t> ids = RandomIds(random[backend], count, words);
    return sessions[backend]->StepLanes(std::span(lanes).first(count), ids);
  };
  std::vector<float> out(words);
  const size_t together = Session::LanesRemembered(*models[0], options.lanes);
  const auto step_and_ask = [&](size_t backend) -> Status {
    KINGLET_RETURN_IF_ERROR(step(backend, lanes.size()));
    for (size_t first = 0; first < lanes.size(); first += together) {
      const auto part = std::span(lanes).subspan(first, std::min(together, lanes.size() - first));
      KINGLET_RETURN_IF_ERROR(sessions[backend]->ComputeAllLanes(part));
      for (const uint32_t lane : part) {
        KINGLET_RETURN_IF_ERROR(sessions[backend]->LogProbabilities(std::span<float>(out), lane));
      }
    }
    return Status();
  };
  KINGLET_RETURN_IF_ERROR(Compare("step and full distributions", options, step_and_ask));
  for (size_t count = lanes.size(); count > 0; count /= 4) {
    KINGLET_RETURN_IF_ERROR(Compare("step of " + std::to_string(count) + " lanes", options,
                                    [&](size_t backend) { return step(backend, count); }));
  }
  return Status();
}

Status MeasureSource(const Options& options, const Models& models) {
  KINGLET_ASSIGN_OR_RETURN(Sessions sessions, Start(models, {.threads = options.threads}));
  const EncoderPlan& encoder = *models[0]->plan().encoder;
  SplitMix64 random(1);
  for (const uint32_t tokens : {options.source, options.source / 4, 1U}) {
    const std::vector<uint32_t> source =
        RandomIds(random, std::clamp(tokens, 1U, encoder.window), encoder.vocabulary_size);
    KINGLET_RETURN_IF_ERROR(
        Compare("source of " + std::to_string(source.size()) + " tokens", options,
                [&](size_t backend) { return sessions[backend]->Encode(source); }));
  }
  return Status();
}

Status MeasureModel(
    const Options& options, const std::string& name,
    const std::function<Result<std::shared_ptr<const Model>>(const ModelOptions& options)>& open) {
  Models models;
  for (size_t i = 0; i < models.size(); ++i) {
    ModelOptions model_options;
    model_options.backend = kBackends[i];
    KINGLET_ASSIGN_OR_RETURN(models[i], open(model_options));
  }
  std::printf("%s, %u lanes, %u threads\n  %-32s %12s %12s %7s\n", name.c_str(), options.lanes,
              options.threads, "", "cpu us", "onednn us", "times");
  return models[0]->plan().encoder ? MeasureSource(options, models) : MeasureLanes(options, models);
}

Status Measure(const Options& options) {
  if (!options.models.empty()) {
    for (const std::string& path : options.models) {
      KINGLET_RETURN_IF_ERROR(MeasureModel(options, path, [&](const ModelOptions& model_options) {
        return Model::Open(path, model_options);
      }));
    }
    return Status();
  }
  KINGLET_ASSIGN_OR_RETURN(const std::vector<Bytes> made, Synthesised(options));
  for (const Bytes& model : made) {
    KINGLET_RETURN_IF_ERROR(
        MeasureModel(options, model.name, [&](const ModelOptions& model_options) {
          return Model::FromBytes(model.bytes, model_options);
        }));
  }
  return Status();
}

int Main(int argc, char** argv) {
  Options options;
  ArgumentParser program("Time sessions of many lanes and encoders on the backends cpu and onednn",
                         "many_vectors");
  program
      .Add(
          "M.kgl", options.models,
          "models; without any, an LSTM of 2 x 1500 and a translation model of 6 x 512 with random "
          "weights")
      .Placeholder("");
  program.Add("--save", options.save, "folder to which the models with random weights are written");
  program.Add("--lanes", options.lanes, "lanes of a session").Between(1U, 4096U).ShowDefault();
  program.Add("--threads", options.threads, "threads of a session")
      .Between(1U, 1024U)
      .ShowDefault();
  program.Add("--source", options.source, "tokens of a source").Between(1U, 65536U).ShowDefault();
  program.Add("--rounds", options.rounds, "number of rounds").Between(1, 1000).ShowDefault();
  if (const std::optional<int> exit = program.ParseAndPrint(argc, argv)) return *exit;
  const Status status = Measure(options);
  if (!status.ok()) std::fprintf(stderr, "many_vectors: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) { return kinglet::Main(argc, argv); }
