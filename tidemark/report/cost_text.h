#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tidemark/cost/step_cost.h"
#include "tidemark/report/json.h"
#include "tidemark/report/text_layout.h"
#include "tidemark/step/step.h"

namespace tidemark::report {

// How every report shows times: with their interval, where they come from, and what has no price.

// "76.9 ms (69.1 ms to 84.8 ms)".
std::string interval_text(std::int64_t time_ps, const cost::Interval& interval);
std::string interval_text(const cost::Total& total);

// "0.0 % measured, 100.0 % modelled; 2 ops of 1.2 MiB without a price".
std::string sources_text(const cost::Total& total);

// Both: "76.9 ms (69.1 ms to 84.8 ms); 0.0 % measured, 100.0 % modelled".
std::string total_text(const cost::Total& total);
Json total_json(const cost::Total& total);

// A heading and a row for each op without a price; nothing where all have one.
std::string unpriced_text(const step::Step& step, const std::vector<cost::UnpricedOp>& ops, const Style& style);
Json unpriced_json(const step::Step& step, const std::vector<cost::UnpricedOp>& ops);

// "  note: " and what had to be assumed, one after the other; nothing where nothing had to be. As JSON: the `notes`.
std::string notes_text(const std::vector<std::string>& notes);

}  // namespace tidemark::report
