// Lanes of one session that are fed the same tokens and must give the same answers, bit for bit.
#ifndef KINGLET_TOOLS_REPLICAS_H_
#define KINGLET_TOOLS_REPLICAS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/session.h"

namespace kinglet {

inline bool SameBits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

class Replicas {
 public:
  // `lanes` >= 1 lanes of a session that uses up to `threads` >= 1 threads. Errors: those of
  // Session::Create.
  static Result<Replicas> Create(const std::shared_ptr<const Model>& model, SessionOptions options,
                                 size_t lanes, size_t threads);

  const Model& model() const { return session_->model(); }
  uint64_t position() const { return session_->position(); }

  // The session's functions of these names, on all lanes. Errors: those of the session.
  Status Step(uint32_t id);
  Status Reset();
  // Feeds the ids and writes log p of each one after those before it, as Session::StepMany.
  // `position` is that of the first id; errors as LogProbability.
  Status Score(std::span<const uint32_t> ids, uint64_t position, std::span<double> out,
               uint64_t& processed);
  // log p(id), computed on all lanes together. `position` is that of the answer, which
  // KINGLET_MISMATCH names where a lane's differs from lane 0's.
  Result<double> LogProbability(uint32_t id, uint64_t position);

  // Calls Result<Answer> ask(Session&, uint32_t lane) for each lane, compares the answers with
  // SameBits(Answer, Answer) and returns that of lane 0. Errors: those of `ask`; KINGLET_MISMATCH
  // as LogProbability.
  template <class Answer, class Ask>
  Result<Answer> AskEach(uint64_t position, const Ask& ask);

 private:
  explicit Replicas(std::unique_ptr<Session> session);
  static Status Mismatch(uint64_t position, size_t lane);

  std::unique_ptr<Session> session_;
  std::vector<uint32_t> lanes_, ids_;  // of all lanes
  std::vector<double> answers_;
};

template <class Answer, class Ask>
Result<Answer> Replicas::AskEach(uint64_t position, const Ask& ask) {
  KINGLET_ASSIGN_OR_RETURN(Answer first, ask(*session_, 0));
  for (uint32_t lane = 1; lane < lanes_.size(); ++lane) {
    KINGLET_ASSIGN_OR_RETURN(const Answer other, ask(*session_, lane));
    if (!SameBits(first, other)) return Mismatch(position, lane);
  }
  return first;
}

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REPLICAS_H_
