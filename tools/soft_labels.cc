#include "tools/soft_labels.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/thread_shares.h"
#include "format/digest.h"
#include "format/encoding.h"
#include "format/input_file.h"
#include "format/write_file.h"
#include "runtime/session.h"
#include "tools/interrupt.h"
#include "tools/json_lines.h"
#include "tools/npz_file.h"

namespace kinglet {
namespace {

constexpr uint32_t kMostNarrow = 65536;  // words that two bytes can number

Status RefuseFiles(const std::string& path, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "predict", path,
                         "this run's file, to continue it, or none",
                         found + " (remove it, or name another --out)");
}

// Numbers of two or four bytes each.
class IdArray {
 public:
  explicit IdArray(bool narrow) : bytes_each_(narrow ? 2 : 4) {}
  void Resize(size_t count) { bytes_.resize(count * bytes_each_); }
  void Set(size_t index, uint32_t word) {
    std::memcpy(&bytes_[index * bytes_each_], &word, bytes_each_);  // little-endian
  }
  std::string type() const { return bytes_each_ == 2 ? "<u2" : "<u4"; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  size_t bytes_each_;
  std::vector<std::byte> bytes_;
};

// A file's arrays: rows stream by stream, each in the order of the text.
struct Rows {
  explicit Rows(bool narrow) : tokens(narrow), best(narrow) {}
  void Resize(size_t count, uint32_t top) {
    positions.resize(count);
    tokens.Resize(count);
    best.Resize(count * top);
    logs.resize(count * top);
    rests.resize(count);
  }

  std::vector<int64_t> positions;
  IdArray tokens, best;
  std::vector<uint16_t> logs, rests;  // float16
};

class LabelRun {
 public:
  LabelRun(const SoftLabelOptions& options, std::shared_ptr<const Model> model,
           std::span<const uint32_t> ids)
      : options_(options),
        model_(std::move(model)),
        ids_(ids),
        top_(std::min(options.top, model_->vocabulary_size())),
        lanes_(std::clamp<uint64_t>(ids.size(), 1, options.lanes)),
        steps_((ids.size() + lanes_ - 1) / lanes_),
        steps_each_(std::max<uint64_t>(1, options.shard_tokens / lanes_)),
        shards_(std::max<uint64_t>(1, (steps_ + steps_each_ - 1) / steps_each_)),
        text_(RunText()) {}

  Result<SoftLabelTotals> Run(Progress& progress) {
    uint64_t shard = 0;
    KINGLET_ASSIGN_OR_RETURN(const bool complete, IsComplete());
    if (complete) {
      shard = shards_;
    } else {
      KINGLET_RETURN_IF_ERROR(CreateSessions());
      KINGLET_ASSIGN_OR_RETURN(shard, Resume());
    }
    SoftLabelTotals totals;
    const auto start = std::chrono::steady_clock::now();
    for (; shard < shards_; ++shard) {
      KINGLET_ASSIGN_OR_RETURN(const uint64_t rows, WriteShard(shard, totals.computed, progress));
      totals.computed += rows;
      KINGLET_RETURN_IF_ERROR(shard + 1 < shards_ ? SaveStates(shard + 1) : End());
    }
    totals.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    totals.tokens = ids_.size();
    totals.shards = shards_;
    for (uint64_t i = 0; i < shards_; ++i) {
      KINGLET_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(PathOf(i)));
      totals.bytes += file.size();
    }
    return totals;
  }

 private:
  // A session and the streams that it has, `first` and those after it.
  struct Part {
    std::unique_ptr<Session> session;
    uint64_t first = 0;
    Status status;
  };

  // What the files follow from.
  std::string RunText() const {
    JsonLine line;
    line.Key("model").Text(model_->file().digest()).Key("backend").Text(options_.backend);
    line.Key("text")
        .Text(HexText(DigestOf(std::as_bytes(ids_))))
        .Key("tokens")
        .Integer(ids_.size());
    line.Key("top").Integer(top_).Key("lanes").Integer(lanes_).Key("steps").Integer(steps_each_);
    return line.Key("shards").Integer(shards_).Finish();
  }

  std::string PathOf(uint64_t shard) const {
    if (shard == 0) return options_.path;
    const std::filesystem::path path(options_.path);
    char number[24];
    std::snprintf(number, sizeof number, ".%05llu", static_cast<unsigned long long>(shard));
    const std::string name = path.stem().string() + number + path.extension().string();
    return (path.parent_path() / name).string();
  }
  std::string StatesPath() const { return options_.path + ".unfinished"; }

  NpzArray RunArray() const {
    return {"run", "|u1", {text_.size()}, std::as_bytes(std::span(text_))};
  }

  // Whether all files are there. Refuses those of another run.
  Result<bool> IsComplete() const {
    std::error_code error;
    if (std::filesystem::exists(StatesPath(), error)) return false;
    const std::string expected = NpzBeginning(RunArray());
    for (uint64_t shard = 0; shard < shards_; ++shard) {
      if (!std::filesystem::exists(PathOf(shard), error)) {
        return shard == 0 ? Result<bool>(false)
                          : RefuseFiles(options_.path, "one without " + PathOf(shard));
      }
      KINGLET_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(PathOf(shard)));
      std::string found(std::min<uint64_t>(expected.size(), file.size()), '\0');
      KINGLET_RETURN_IF_ERROR(
          file.ReadAt(0, std::as_writable_bytes(std::span(found.data(), found.size()))));
      if (found != expected) return RefuseFiles(PathOf(shard), "another run's");
    }
    return true;
  }

  uint64_t FirstOf(uint64_t lane) const { return ids_.size() * lane / lanes_; }
  uint64_t LengthOf(uint64_t lane) const { return FirstOf(lane + 1) - FirstOf(lane); }

  Status CreateSessions() {
    const uint64_t parts = std::min<uint64_t>(options_.threads, lanes_);
    for (uint64_t i = 0; i < parts; ++i) {
      Part part;
      part.first = lanes_ * i / parts;
      SessionOptions options;
      options.lanes = static_cast<uint32_t>(lanes_ * (i + 1) / parts - part.first);
      KINGLET_ASSIGN_OR_RETURN(part.session, Session::Create(model_, options));
      parts_.push_back(std::move(part));
    }
    return {};
  }

  // Brings the streams to where an earlier run left them. Returns the next file's number.
  Result<uint64_t> Resume() {
    std::error_code error;
    if (std::filesystem::exists(StatesPath(), error)) return ReadStates();
    const std::optional<uint32_t> start = model_->file().description().start_token;
    for (Part& part : parts_) {
      for (uint32_t lane = 0; start && lane < part.session->lanes(); ++lane) {
        KINGLET_RETURN_IF_ERROR(part.session->StepToken(*start, lane));
      }
    }
    KINGLET_RETURN_IF_ERROR(SaveStates(0));
    return uint64_t{0};
  }

  Result<uint64_t> ReadStates() {
    KINGLET_ASSIGN_OR_RETURN(const std::string kept, ReadWholeFile(StatesPath()));
    if (!kept.starts_with(text_)) return RefuseFiles(StatesPath(), "another run's");
    size_t at = text_.size();
    const auto number = [&]() -> Result<uint64_t> {
      uint64_t value = 0;
      if (kept.size() - at < sizeof value) return RefuseFiles(StatesPath(), "one that ends early");
      std::memcpy(&value, &kept[at], sizeof value);
      at += sizeof value;
      return value;
    };
    KINGLET_ASSIGN_OR_RETURN(const uint64_t shard, number());
    for (Part& part : parts_) {
      for (uint32_t lane = 0; lane < part.session->lanes(); ++lane) {
        KINGLET_ASSIGN_OR_RETURN(const uint64_t size, number());
        if (kept.size() - at < size) return RefuseFiles(StatesPath(), "one that ends early");
        KINGLET_ASSIGN_OR_RETURN(
            const State state,
            State::ReadBlob(model_, std::as_bytes(std::span(kept.data() + at, size))));
        KINGLET_RETURN_IF_ERROR(part.session->Restore(state, lane));
        at += size;
      }
    }
    return shard;
  }

  Status SaveStates(uint64_t shard) {
    std::string kept = text_;
    const auto add = [&kept](uint64_t value) {
      kept.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    add(shard);
    for (Part& part : parts_) {
      for (uint32_t lane = 0; lane < part.session->lanes(); ++lane) {
        KINGLET_ASSIGN_OR_RETURN(const State state, part.session->Save(lane));
        const uint64_t size = state.BlobBytes();
        add(size);
        kept.resize(kept.size() + size);
        state.WriteBlob(std::as_writable_bytes(std::span(kept.data() + kept.size() - size, size)));
      }
    }
    return WriteFileAtomically(std::as_bytes(std::span(kept)), StatesPath());
  }

  Status End() const {
    std::error_code error;
    if (std::filesystem::remove(StatesPath(), error)) return {};
    return Status::Refusal(KINGLET_IO_ERROR, "predict", StatesPath(), "a file that can be removed",
                           error.message());
  }

  // Computes and writes a file. Returns its rows.
  Result<uint64_t> WriteShard(uint64_t shard, uint64_t done, Progress& progress) {
    const uint64_t begin = shard * steps_each_, end = std::min(begin + steps_each_, steps_);
    std::vector<uint64_t> row_of(lanes_ + 1);  // the first row of each stream
    for (uint64_t lane = 0; lane < lanes_; ++lane) {
      const uint64_t length = LengthOf(lane);
      row_of[lane + 1] = row_of[lane] + std::min(end, length) - std::min(begin, length);
    }
    const uint64_t count = row_of.back();
    Rows rows(model_->vocabulary_size() <= kMostNarrow);
    rows.Resize(count, top_);
    RunShares(parts_.size(), [&](size_t i) {
      parts_[i].status = FillRows(parts_[i], begin, end, row_of, rows, [&](uint64_t steps) {
        if (i == 0) progress.Report(done + std::min(count, steps * lanes_));
      });
    });
    for (const Part& part : parts_) KINGLET_RETURN_IF_ERROR(part.status);
    const std::vector<int64_t> which = {static_cast<int64_t>(shard), static_cast<int64_t>(shards_)};
    const std::vector<NpzArray> arrays = {
        RunArray(),
        {"shard", "<i8", {2}, std::as_bytes(std::span(which))},
        {"position", "<i8", {count}, std::as_bytes(std::span(rows.positions))},
        {"token", rows.tokens.type(), {count}, rows.tokens.bytes()},
        {"id", rows.best.type(), {count, top_}, rows.best.bytes()},
        {"logprob", "<f2", {count, top_}, std::as_bytes(std::span(rows.logs))},
        {"rest", "<f2", {count}, std::as_bytes(std::span(rows.rests))}};
    KINGLET_ASSIGN_OR_RETURN(NewFile file, WriteNpz(arrays, PathOf(shard)));
    KINGLET_RETURN_IF_ERROR(file.Commit());
    return count;
  }

  template <class Report>
  Status FillRows(Part& part, uint64_t begin, uint64_t end, const std::vector<uint64_t>& row_of,
                  Rows& rows, const Report& report) const {
    std::vector<uint32_t> lanes, tokens;
    for (uint64_t step = begin; step < end; ++step) {
      KINGLET_RETURN_IF_ERROR(CheckInterrupt());
      lanes.clear();
      tokens.clear();
      for (uint32_t lane = 0; lane < part.session->lanes(); ++lane) {
        if (step >= LengthOf(part.first + lane)) continue;
        lanes.push_back(lane);
        tokens.push_back(ids_[FirstOf(part.first + lane) + step]);
      }
      KINGLET_RETURN_IF_ERROR(part.session->StepLanes(lanes, tokens));
      KINGLET_ASSIGN_OR_RETURN(const auto best, part.session->TopKLanes(lanes, top_));
      for (size_t i = 0; i < lanes.size(); ++i) {
        const uint64_t lane = part.first + lanes[i];
        const uint64_t row = row_of[lane] + step - begin;
        rows.positions[row] = static_cast<int64_t>(FirstOf(lane) + step + 1);
        rows.tokens.Set(row, tokens[i]);
        SetBest(best[i], row, rows);
      }
      report(step + 1 - begin);
    }
    return {};
  }

  void SetBest(const std::vector<Candidate>& best, uint64_t row, Rows& rows) const {
    double sum = 0;
    for (size_t k = 0; k < top_; ++k) {
      rows.best.Set(row * top_ + k, best[k].id);
      rows.logs[row * top_ + k] = FloatToHalf(static_cast<float>(best[k].log_probability));
      sum += std::exp(best[k].log_probability);
    }
    const bool all = top_ == model_->vocabulary_size();
    rows.rests[row] = FloatToHalf(all || sum >= 1 ? -std::numeric_limits<float>::infinity()
                                                  : static_cast<float>(std::log1p(-sum)));
  }

  const SoftLabelOptions& options_;
  const std::shared_ptr<const Model> model_;
  const std::span<const uint32_t> ids_;
  const uint32_t top_;
  const uint64_t lanes_, steps_, steps_each_, shards_;
  const std::string text_;
  std::vector<Part> parts_;
};

}  // namespace

uint64_t SoftLabelBytes(uint32_t top, uint32_t vocabulary_size) {
  constexpr uint64_t kHalf = 2, kPosition = 8;
  const uint64_t word = vocabulary_size <= kMostNarrow ? 2 : 4;
  return top * (word + kHalf) + word + kHalf + kPosition;
}

Result<SoftLabelTotals> WriteSoftLabels(const SoftLabelOptions& options,
                                        const std::shared_ptr<const Model>& model,
                                        std::span<const uint32_t> ids, Progress& progress) {
  return LabelRun(options, model, ids).Run(progress);
}

}  // namespace kinglet
