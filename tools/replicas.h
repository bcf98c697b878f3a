// Several sessions (one per lane) that are fed the same tokens and must give the same answers, bit
// for bit.
#ifndef KINGLET_TOOLS_REPLICAS_H_
#define KINGLET_TOOLS_REPLICAS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "runtime/session.h"

namespace kinglet {

inline bool SameBits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

class Replicas {
 public:
  // `lanes` >= 1 sessions on up to `threads` >= 1 threads: sessions run in parallel, and if there
  // are more threads than sessions, each session uses several. All sessions together must fit into
  // the memory limit of one.
  static Result<Replicas> Create(const std::shared_ptr<const Model>& model,
                                 const SessionOptions& options, size_t lanes, size_t threads);

  // Calls Status work(Session&, std::vector<Answer>&) once per lane. It appends the lane's answers;
  // the first one is for position `first`. Compares the lanes' answers with SameBits(Answer,
  // Answer) and returns those of lane 0. Errors: those of `work`; KINGLET_MISMATCH naming the first
  // position where a lane differs from lane 0.
  template <class Answer, class Work>
  Result<std::vector<Answer>> Run(uint64_t first, const Work& work);

  const Model& model() const { return sessions_.front()->model(); }

 private:
  Replicas() = default;
  // Calls work(lane) for every lane, in up to threads_ threads at once.
  void ForEachLane(const std::function<void(size_t)>& work) const;
  static Status Mismatch(uint64_t position, size_t lane);

  std::vector<std::unique_ptr<Session>> sessions_;
  size_t threads_ = 1;
};

template <class Answer, class Work>
Result<std::vector<Answer>> Replicas::Run(uint64_t first, const Work& work) {
  std::vector<std::vector<Answer>> answers(sessions_.size());
  std::vector<Status> statuses(sessions_.size());
  ForEachLane([&](size_t lane) {
    try {
      statuses[lane] = work(*sessions_[lane], answers[lane]);
    } catch (const std::bad_alloc&) {
      statuses[lane] = Status(KINGLET_OUT_OF_MEMORY, "lane " + std::to_string(lane) +
                                                         ": memory: expected room for its answers, "
                                                         "found none");
    }
  });
  for (const Status& status : statuses) KINGLET_RETURN_IF_ERROR(status);
  for (size_t lane = 1; lane < answers.size(); ++lane) {
    for (size_t i = 0; i < answers[0].size(); ++i) {
      if (i >= answers[lane].size() || !SameBits(answers[0][i], answers[lane][i])) {
        return Mismatch(first + i, lane);
      }
    }
  }
  return std::move(answers[0]);
}

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REPLICAS_H_
