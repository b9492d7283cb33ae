#include "cost_text.h"

#include <fmt/format.h>

#include "tidemark/base/bytes.h"
#include "tidemark/base/duration.h"
#include "tidemark/step/dump.h"

namespace tidemark::cli {

std::string total_text(const cost::Total& total) {
  std::string text = fmt::format("{} ({} to {}); {} measured, {} modelled", format_duration(total.time_ps),
                                 format_duration(total.low_ps), format_duration(total.high_ps),
                                 percent(total.measured_ps, total.time_ps), percent(total.modelled_ps, total.time_ps));
  if (total.unpriced_ops > 0) text += fmt::format("; {} without a price", count_of(total.unpriced_ops, "op"));
  return text;
}

Json total_json(const cost::Total& total) {
  return {{"ms", ms(total.time_ps)},
          {"low_ms", ms(total.low_ps)},
          {"high_ms", ms(total.high_ps)},
          {"measured_ms", ms(total.measured_ps)},
          {"modelled_ms", ms(total.modelled_ps)},
          {"unpriced_ops", total.unpriced_ops},
          {"unpriced_bytes", total.unpriced_bytes}};
}

std::string unpriced_text(const step::Step& step, const std::vector<cost::UnpricedOp>& ops) {
  Table table(">><");
  for (const cost::UnpricedOp& op : ops)
    table.row({format_count(op.count), format_bytes(op.bytes), step::printable(step.text(op.name))});
  return table.text(2);
}

Json unpriced_json(const step::Step& step, const std::vector<cost::UnpricedOp>& ops) {
  Json rows = Json::array();
  for (const cost::UnpricedOp& op : ops)
    rows.push_back({{"op", step.text(op.name)}, {"count", op.count}, {"bytes", op.bytes}});
  return rows;
}

}  // namespace tidemark::cli
