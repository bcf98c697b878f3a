#include "kernels/cuda/program.h"

#include <span>
#include <string>
#include <variant>

#include "kernels/cuda/bind.h"
#include "kernels/cuda/bind_stack.h"
#include "kernels/cuda/bind_text.h"
#include "kernels/cuda/demand.h"
#include "kernels/cuda/weights.h"

namespace kinglet::cuda {
namespace {

// Lets an integer product quantise its own result if the next plan node would quantise it; that
// plan node then has no device nodes. Each merged node saves a barrier of all thread blocks.
void JoinQuantisers(const Plan& plan, std::vector<std::vector<Node>>& bound) {
  for (size_t i = 1; i < plan.nodes.size(); ++i) {
    const auto* product = std::get_if<MatVec>(&plan.nodes[i - 1].op);
    const auto* quantise = std::get_if<Quantise>(&plan.nodes[i].op);
    if (product == nullptr || quantise == nullptr || product->y != quantise->x) continue;
    Node& last = bound[i - 1].back();
    if (!IsKind<IntegerProduct>(last)) continue;
    auto joined = ArgumentsOf<IntegerProduct>(last);
    const auto codes = ArgumentsOf<QuantiseVector>(bound[i].back());
    if (joined.matrix.rows != codes.count) continue;
    joined.quantises = true;
    joined.codes = codes.codes;
    joined.rounding = codes.rounding;
    last = MakeNode(joined);
    bound[i].clear();
  }
}

// Refuses a node that needs more shared memory than a thread block of the device can have.
Status CheckSharedBytes(const std::string& name, const std::vector<Node>& nodes,
                        const Device& device) {
  const uint64_t most = device.SharedBytesOfBlock();
  for (const Node& node : nodes) {
    if (SharedBytesOf(node) <= most) continue;
    return Status::Refusal(
        KINGLET_UNSUPPORTED, "cuda", "node " + name,
        "at most " + std::to_string(most) + " bytes of a thread block's shared memory",
        std::to_string(SharedBytesOf(node)));
  }
  return Status();
}

}  // namespace

Result<std::shared_ptr<const Program>> Program::Bind(const Plan& plan, const BufferLayout& layout,
                                                     const std::shared_ptr<Device>& device,
                                                     const ReleaseBytes& release) {
  const std::shared_ptr<Program> program(new Program(device));
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Queue> queue, device->CreateQueue());
  WeightStore weights(plan, device, *queue, program->memory_);
  Binder binder(plan, layout, weights);
  KINGLET_RETURN_IF_ERROR(program->BindNodes(binder));
  // Without memory for it, or with rings too long for the device, tokens go one by one.
  const Status text = program->BindText(plan, layout, weights);
  if (!text.ok() && text.code() != KINGLET_OUT_OF_MEMORY && text.code() != KINGLET_UNSUPPORTED) {
    return text;
  }
  program->weight_bytes_ = weights.bytes();
  KINGLET_RETURN_IF_ERROR(queue->Wait());
  weights.Release(release);
  return std::shared_ptr<const Program>(program);
}

Status Program::BindNodes(Binder& binder) {
  const Plan& plan = binder.plan;
  std::vector<std::vector<Node>> bound;  // by plan node
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    KINGLET_ASSIGN_OR_RETURN(std::vector<Node> nodes, binder.Bind(i));
    KINGLET_RETURN_IF_ERROR(CheckSharedBytes(plan.nodes[i].name, nodes, *device_));
    bound.push_back(std::move(nodes));
  }
  JoinQuantisers(plan, bound);
  if (plan.context.begin < plan.context.end && !binder.of_text) {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<Node> first, BindClearForFirstToken(binder));
    std::vector<Node>& nodes = bound[plan.context.begin];
    nodes.insert(nodes.begin(), first.begin(), first.end());
  }
  for (const std::vector<Node>& nodes : bound) {
    firsts_.push_back(static_cast<uint32_t>(nodes_.size()));
    nodes_.insert(nodes_.end(), nodes.begin(), nodes.end());
  }
  firsts_.push_back(static_cast<uint32_t>(nodes_.size()));
  KINGLET_ASSIGN_OR_RETURN(queries_, Queries::Bind(plan, bound, *device_, binder));
  KINGLET_ASSIGN_OR_RETURN(std::optional<BoundStack> stack, BindStack(bound, *device_, binder));
  WeightStore& weights = binder.weights;
  if (binder.of_text) {
    std::vector<Node> append;
    for (size_t i = plan.context.begin; i < plan.context.end; ++i) {
      if (std::holds_alternative<CacheAppend>(plan.nodes[i].op)) append = std::move(bound[i]);
    }
    KINGLET_ASSIGN_OR_RETURN(append_, ContextOf(std::move(append), weights));
    if (!stack || stack->many.empty()) stack = BoundStack{};
  }
  if (stack) {
    context_ = plan.context;
    if (stack->few) {
      KINGLET_ASSIGN_OR_RETURN(few_,
                               ContextWith({&*stack->few, 1}, stack->nodes, plan, bound, weights));
    }
    KINGLET_ASSIGN_OR_RETURN(many_, ContextWith(stack->many, stack->nodes, plan, bound, weights));
  }
  if (binder.of_text) {
    KINGLET_ASSIGN_OR_RETURN(
        many_, ContextOf(WithStores(many_.nodes, device_->SharedBytesOfBlock()), weights));
  }
  KINGLET_ASSIGN_OR_RETURN(on_device_, weights.Constants(std::span<const Node>(nodes_)));
  temporary_bytes_ = binder.temporary_bytes();
  return Status();
}

Status Program::BindText(const Plan& plan, const BufferLayout& layout, WeightStore& weights) {
  std::optional<Plan> of_text = TextPlanOf(plan, device_->TextTokens());
  if (!of_text || !queries_.can_rank()) return Status();
  auto text = std::make_unique<Text>();
  text->plan = std::move(*of_text);
  KINGLET_ASSIGN_OR_RETURN(text->layout, LayOut(text->plan, sizeof(float)));
  const std::shared_ptr<Program> program(new Program(device_));
  Binder binder(text->plan, text->layout, weights, true);
  KINGLET_RETURN_IF_ERROR(program->BindNodes(binder));
  text->program = program;
  const std::vector<MovedState> moved = MovedStates(plan, layout, text->layout);
  MoveState move{};
  KINGLET_ASSIGN_OR_RETURN(move.moved, weights.Constants(std::span<const MovedState>(moved)));
  move.count = static_cast<uint32_t>(moved.size());
  move.to_text = true;
  std::vector<Node> moves = {MakeNode(move)};
  move.to_text = false;
  moves.push_back(MakeNode(move));
  KINGLET_ASSIGN_OR_RETURN(moves_, ContextOf(std::move(moves), weights));
  text->to_text = {moves_.nodes.data(), 1, moves_.on_device};
  text->to_stream = {moves_.nodes.data() + 1, 1, moves_.on_device + 1};
  text_ = std::move(text);
  return Status();
}

Result<Program::Context> Program::ContextOf(std::vector<Node> nodes, WeightStore& weights) {
  Context context;
  context.nodes = std::move(nodes);
  if (context.nodes.empty()) return context;
  KINGLET_ASSIGN_OR_RETURN(context.on_device,
                           weights.Constants(std::span<const Node>(context.nodes)));
  return context;
}

NodeList Program::List(NodeRange range) const {
  const uint32_t begin = firsts_[range.begin], end = firsts_[range.end];
  return {nodes_.data() + begin, end - begin, on_device_ + begin};
}

Result<Program::Context> Program::ContextWith(std::span<const Node> layers, NodeRange of,
                                              const Plan& plan,
                                              const std::vector<std::vector<Node>>& bound,
                                              WeightStore& weights) {
  if (layers.empty() && of.begin < of.end) return Context();
  std::vector<Node> nodes;
  for (size_t i = plan.context.begin; i < plan.context.end; ++i) {
    if (i == of.begin) nodes.insert(nodes.end(), layers.begin(), layers.end());
    if (i >= of.begin && i < of.end) continue;
    nodes.insert(nodes.end(), bound[i].begin(), bound[i].end());
  }
  return ContextOf(std::move(nodes), weights);
}

NodeList Program::List(NodeRange range, uint32_t lanes) const {
  const Context& context = lanes <= kFewLanes && !few_.nodes.empty() ? few_ : many_;
  const bool is_context = range.begin == context_.begin && range.end == context_.end;
  return is_context && !context.nodes.empty() ? ListOf(context) : List(range);
}

std::optional<DeviceDemand> Program::DemandOf(size_t node,
                                              std::span<const StreamFrame> lanes) const {
  const NodeList list = List({node, node + 1});
  if (list.count == 0) return std::nullopt;
  DeviceDemand demand;
  for (uint32_t i = 0; i < list.count; ++i) demand += cuda::DemandOf(list.nodes[i], lanes);
  return demand;
}

}  // namespace kinglet::cuda
