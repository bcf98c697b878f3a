#include "runtime/compress/block_team.h"

#include <exception>
#include <new>
#include <string>
#include <thread>
#include <utility>

namespace kinglet::compress {
namespace {

Status NoMemory() {
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, "compress", "memory", "enough for each block",
                         "none left (use fewer threads or smaller blocks)");
}

// Whether the model predicts the next token of a text, whose bytes have the same bits everywhere.
Status CheckModel(const Model& model) {
  const auto refusal = [](const char* where, const char* expected, const std::string& found) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "compress", where, expected, found);
  };
  if (model.vocabulary() == nullptr) {
    return refusal("model", "one with the texts of words, by which the network reads a text",
                   "ids alone (convert the checkpoint with --vocab)");
  }
  if (model.plan().encoder || model.plan().reading) {
    return refusal("model", "a language model, which predicts the next token",
                   model.plan().reading ? "a masked model" : "a translation model");
  }
  const std::string backend(model.backend().name);
  if (backend == "cpu" || backend == "ref") return Status();
  return refusal("backend", "cpu or ref, which have the same bits on every machine", backend);
}

}  // namespace

Result<BlockTeam> BlockTeam::Create(std::shared_ptr<const Model> model, uint32_t threads,
                                    StopAsked stop) {
  constexpr uint32_t kMostThreads = 1024;
  if (threads == 0 || threads > kMostThreads) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "compress", "threads",
                           "from 1 to " + std::to_string(kMostThreads), std::to_string(threads));
  }
  KINGLET_RETURN_IF_ERROR(CheckModel(*model));
  try {
    BlockTeam team;
    team.stop_ = std::move(stop);
    team.words_ = std::make_unique<const SharedWords>(*model);
    for (uint32_t i = 0; i < threads; ++i) {
      KINGLET_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(model));
      team.sessions_.push_back(std::move(session));
    }
    team.model_ = std::move(model);
    return team;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

// Calls Result<BlockCoder> code(i) for each block, whose text has lengths[i] bytes, runs the coders
// in threads and returns what they give; empty bytes where `code` refuses.
template <class Code>
Result<std::vector<std::vector<std::byte>>> BlockTeam::RunEach(std::span<const size_t> lengths,
                                                               const Code& code) {
  const size_t count = lengths.size();
  std::vector<std::vector<std::byte>> results(count);
  std::vector<Status> statuses(count, NoMemory());
  const auto run = [&](size_t i) {
    try {
      const uint64_t bytes = BlockCoder::MemoryOf(*model_, lengths[i]);
      if (!model_->budget()->Claim(bytes)) return;
      const MemoryClaim claim(model_->budget(), bytes);
      Result<BlockCoder> coder = code(i);
      statuses[i] = coder.ok() ? RunCoders(*sessions_[i], {&*coder, 1}, stop_) : Status();
      if (coder.ok() && statuses[i].ok()) results[i] = coder->Take();
    } catch (const std::bad_alloc&) {  // the status is of no memory
    }
  };
  std::vector<std::thread> threads;
  size_t begun = 1;
  try {
    for (; begun < count; ++begun) threads.emplace_back(run, begun);
  } catch (const std::exception&) {  // no more threads or memory: the others run here
  }
  if (count > 0) run(0);
  for (; begun < count; ++begun) run(begun);
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses) KINGLET_RETURN_IF_ERROR(status);
  return results;
}

Result<std::vector<std::vector<std::byte>>> BlockTeam::Compress(
    std::span<const std::vector<std::byte>> texts, bool fast) {
  std::vector<size_t> lengths;
  for (const std::vector<std::byte>& text : texts) lengths.push_back(text.size());
  return RunEach(lengths, [&](size_t i) -> Result<BlockCoder> {
    return BlockCoder::Compress(*words_, texts[i], fast);
  });
}

Result<std::vector<std::vector<std::byte>>> BlockTeam::Restore(std::span<const Coded> blocks) {
  std::vector<size_t> lengths;
  for (const Coded& block : blocks) lengths.push_back(block.length);
  return RunEach(lengths, [&](size_t i) {
    return BlockCoder::Restore(*words_, blocks[i].bytes, blocks[i].length);
  });
}

}  // namespace kinglet::compress
