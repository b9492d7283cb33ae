#pragma once

#include "tidemark/step/step_builder.h"

namespace tidemark::test {

// A builder that holds the smallest step with every part: one module, one forward call, one op that reads an input
// and makes a 16-byte tensor, which autograd saves and a backward op uses. Tests change one thing and look what the
// validator says. Ids are listed so that a test reads plainly.
struct SmallStep {
  step::StepBuilder b;
  step::ModuleId root;
  step::PassId forward, backward;
  step::CallId call;
  step::StorageId input_storage, made_storage, gradient_storage;
  step::TensorId input, made, gradient;
  step::LayoutId layout;
  step::NodeId node;
  step::SaveId save;
  step::OpId op, backward_op;

  // Fills the tables; add_events() adds the events, so that a test may add others instead.
  SmallStep();
  void add_events();
};

}  // namespace tidemark::test
