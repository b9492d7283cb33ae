#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "console.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/device/device.h"
#include "tidemark/step/step.h"

namespace tidemark::cli {

enum class TimeView { kKind, kOp, kModule };

// All that `tidemark time` has to say, before it is words.
struct TimeReport {
  std::string file;
  TimeView view = TimeView::kKind;
  std::size_t depth = 0;
  step::Step step;
  device::Device device;
  cost::StepCost cost;
};

std::string time_text(const TimeReport& report, const Console& console);
Json time_json(const TimeReport& report);

}  // namespace tidemark::cli
