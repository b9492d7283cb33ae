#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "console.h"
#include "text_layout.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/step/step.h"

namespace tidemark::cli {

// How every report shows a sum of op times: with its interval, where it comes from, and what has no price.

inline constexpr const char* kUnpricedTitle = "without a price, counted as nothing";

// "76.9 ms (69.1 ms to 84.8 ms); 0.0 % measured, 100.0 % modelled".
std::string total_text(const cost::Total& total);
Json total_json(const cost::Total& total);

std::string unpriced_text(const step::Step& step, const std::vector<cost::UnpricedOp>& ops);
Json unpriced_json(const step::Step& step, const std::vector<cost::UnpricedOp>& ops);

}  // namespace tidemark::cli
