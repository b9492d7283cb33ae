#include "tidemark/report/cost_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tidemark/base/bytes.h"
#include "tidemark/base/duration.h"
#include "tidemark/step/dump.h"

namespace tidemark::report {

std::string interval_text(std::int64_t time_ps, const cost::Interval& interval) {
  return fmt::format("{} ({} to {})", format_duration(time_ps), format_duration(interval.low_ps),
                     format_duration(interval.high_ps));
}

std::string interval_text(const cost::Total& total) {
  return interval_text(total.time_ps, {total.low_ps, total.high_ps});
}

std::string sources_text(const cost::Total& total) {
  std::string text = fmt::format("{} measured, {} modelled", percent(total.measured_ps, total.time_ps),
                                 percent(total.modelled_ps, total.time_ps));
  if (total.unpriced_ops > 0)
    text += fmt::format("; {} of {} without a price", count_of(total.unpriced_ops, "op"),
                        format_bytes(total.unpriced_bytes));
  return text;
}

std::string total_text(const cost::Total& total) {
  return fmt::format("{}; {}", interval_text(total), sources_text(total));
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

std::string unpriced_text(const step::Step& step, const std::vector<cost::UnpricedOp>& ops, const Style& style) {
  if (ops.empty()) return "";
  Table table(">><");
  for (const cost::UnpricedOp& op : ops)
    table.row({format_count(op.count), format_bytes(op.bytes), step::printable(step.text(op.name))});
  return style.heading("without a price, counted as nothing") + "\n" + table.text(2);
}

Json unpriced_json(const step::Step& step, const std::vector<cost::UnpricedOp>& ops) {
  Json rows = Json::array();
  for (const cost::UnpricedOp& op : ops)
    rows.push_back({{"op", step.text(op.name)}, {"count", op.count}, {"bytes", op.bytes}});
  return rows;
}

std::string notes_text(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += "  note: " + wrap(step::printable(note), 8);
  return text;
}

}  // namespace tidemark::report
