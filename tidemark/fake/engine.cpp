#include "tidemark/fake/engine.h"

#include <cstring>
#include <queue>
#include <utility>

#include "tidemark/ops/aten.h"

namespace tidemark::fake {

using ops::Edge;
using Grads = std::vector<Tensor>;

namespace {

struct Task {
  std::shared_ptr<GradNode> node;
  Grads grads;
};

struct Earlier {
  bool operator()(const Task& a, const Task& b) const { return a.node->sequence < b.node->sequence; }
};

class Engine {
 public:
  Engine(ops::Runner& runner, Recorder& recorder) : runner_(runner), recorder_(recorder) {}

  void run(const Edge& root, const Tensor& gradient) {
    count_dependencies(root.node.get());
    Grads grads(root.node->outputs.size());
    grads[root.input_nr] = gradient;
    ready_.push({root.node, std::move(grads)});
    while (!ready_.empty()) {
      // A priority queue gives no way to move its first element out.
      Task task = std::move(const_cast<Task&>(ready_.top()));
      ready_.pop();
      recorder_.current = task.node.get();
      evaluate(task);
      recorder_.current = nullptr;
    }
  }

 private:
  void count_dependencies(GradNode* root) {
    std::vector<GradNode*> open = {root};
    root->is_counted = true;
    while (!open.empty()) {
      GradNode* node = open.back();
      open.pop_back();
      for (const Edge& edge : node->next) {
        if (edge.node == nullptr) continue;
        ++edge.node->dependencies;
        if (edge.node->is_counted) continue;
        edge.node->is_counted = true;
        open.push_back(edge.node.get());
      }
    }
  }

  void evaluate(Task& task) {
    GradNode& node = *task.node;
    node.is_counted = false;  // for the next backward, which a leaf may be part of
    Grads outputs = call(node, std::move(task.grads));
    recorder_.release(node);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Edge& edge = node.next[i];
      if (edge.node == nullptr) continue;
      GradNode& next = *edge.node;
      if (next.waiting.empty()) next.waiting.resize(next.outputs.size());
      add(next.waiting[edge.input_nr], std::move(outputs[i]));
      if (--next.dependencies == 0) ready_.push({edge.node, std::exchange(next.waiting, {})});
    }
    // A node that has run needs nothing any more. Without its edges the graph dies node by node, not in one deep
    // descent.
    if (node.leaf != nullptr) return;
    node.next = {};
    node.inputs = {};
    node.args = {};
  }

  // As InputBuffer::add: the second gradient is added to the first one.
  void add(Tensor& old, Tensor&& grad) {
    if (!grad) return;
    if (!old) {
      old = std::move(grad);
      return;
    }
    const Tensor second = std::move(grad);
    old = ops::add(runner_, old, second);
  }

  Grads call(GradNode& node, Grads grads) {
    if (node.leaf != nullptr) {
      accumulate(node, grads[0]);
      return {};
    }
    Grads outputs = apply(node, grads);
    validate(node, outputs);
    while (!grads.empty()) grads.erase(grads.begin());
    return outputs;
  }

  Grads apply(GradNode& node, Grads& grads) {
    bool has_grad = false;
    for (const Tensor& grad : grads) has_grad = has_grad || grad;
    Grads saved;
    saved.reserve(node.saved.size());
    for (std::size_t i = 0; i < node.saved.size(); ++i) saved.push_back(recorder_.unpack(node, i));
    ops::Backward backward(runner_, node, grads, saved);
    if (has_grad) node.row->backward(backward);
    Grads outputs = backward.take();
    drop_saved(node, saved);
    return outputs;
  }

  // As the variables of PyTorch's generated code: the last first, but a list from its start.
  static void drop_saved(const GradNode& node, Grads& saved) {
    while (!saved.empty()) {
      std::size_t first = saved.size() - 1;
      while (first > 0 && std::strcmp(node.saved[first - 1].name, node.saved[first].name) == 0) --first;
      for (std::size_t i = first; i < saved.size(); ++i) saved[i].reset();
      saved.resize(first);
    }
  }

  // Gradients get the shape and type of what they are gradients of.
  void validate(GradNode& node, Grads& outputs) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Edge& edge = node.next[i];
      if (edge.node == nullptr || !outputs[i]) {
        if (edge.node == nullptr) outputs[i].reset();
        continue;
      }
      const ops::Meta& meta = edge.node->outputs[edge.input_nr];
      if (outputs[i].sizes() != meta.sizes) outputs[i] = ops::sum_to(runner_, std::move(outputs[i]), meta.sizes);
      if (outputs[i].dtype() != meta.dtype) outputs[i] = ops::to_dtype(runner_, outputs[i], meta.dtype);
    }
  }

  // As AccumulateGrad: the first gradient is taken over when nobody else holds it and its layout is the leaf's.
  void accumulate(GradNode& node, const Tensor& grad) {
    if (!grad) return;
    const ops::TensorData& leaf = *node.leaf;
    if (node.grad) {
      ops::add_(runner_, node.grad, grad);
      return;
    }
    if (grad->refs <= 1 && obeys_layout(*grad, leaf)) {
      node.grad = ops::detach(grad);
    } else {
      node.grad = ops::clone_as(runner_, grad, leaf.sizes, leaf.strides);
    }
  }

  static bool obeys_layout(const ops::TensorData& grad, const ops::TensorData& leaf) {
    if (!ops::is_dense(leaf.sizes, leaf.strides)) return ops::is_contiguous(grad.sizes, grad.strides);
    for (std::size_t i = 0; i < leaf.sizes.size(); ++i)
      if (leaf.sizes[i] != 1 && grad.strides[i] != leaf.strides[i]) return false;
    return true;
  }

  ops::Runner& runner_;
  Recorder& recorder_;
  std::priority_queue<Task, std::vector<Task>, Earlier> ready_;
};

}  // namespace

void run_backward(ops::Runner& runner, Recorder& recorder, const Edge& root, const Tensor& gradient) {
  recorder.backward_starts();
  Engine(runner, recorder).run(root, gradient);
  recorder.backward_ends();
}

}  // namespace tidemark::fake
