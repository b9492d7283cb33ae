// Statistics of modules, and the times of PyTorch's own estimators.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bindings.h"
#include "tidemark/base/error.h"
#include "tidemark/cost/reference_roofline.h"
#include "tidemark/sac/greedy_order.h"
#include "tidemark/sac/module_info_file.h"
#include "tidemark/sac/module_operators.h"
#include "tidemark/sac/trade_off.h"
#include "words.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tidemark::python {

namespace {

std::vector<double> reference_times(const step::Step& step, const std::string& model, const std::string& device) {
  const auto line = from_word<cost::ReferenceLine>(model, cost::kReferenceLineNames, "cost");
  return cost::reference_times_ms(step, line, device);
}

void check_device(const step::Step& step, const std::string& device) {
  if (device.empty()) return;
  std::vector<std::string> there;
  for (const step::Storage& storage : step.tables().storages) {
    const std::string name(step.text(storage.device));
    if (name == device) return;
    if (std::find(there.begin(), there.end(), name) == there.end()) there.push_back(name);
  }
  throw Error({.kind = ErrorKind::kInput,
               .place = "on",
               .problem = "nothing of the step is on this device",
               .expected = fmt::format("{}, or nothing for all", fmt::join(there, ", ")),
               .got = device,
               .remedy = {}});
}

std::string module_info_text(const step::Step& step, const std::vector<double>& op_ms, const std::string& rules,
                             const std::string& device, bool counts_stale, const std::vector<bool>& unpriced) {
  check_device(step, device);
  const std::vector<std::uint8_t> is_unpriced(unpriced.begin(), unpriced.end());
  const std::size_t count = step.tables().ops.size();
  if (op_ms.size() != count || (!unpriced.empty() && unpriced.size() != count)) {
    throw Error({.kind = ErrorKind::kInput,
                 .place = "op_ms",
                 .problem = "there is not one time for every op",
                 .expected = fmt::format("{} times", count),
                 .got = fmt::format("{}", op_ms.size() != count ? op_ms.size() : unpriced.size()),
                 .remedy = {}});
  }
  const sac::ModuleInfoOptions options = {.rules = from_word<sac::Rules>(rules, sac::kRulesNames, "rules"),
                                          .device = device,
                                          .counts_stale = counts_stale,
                                          .is_unpriced = is_unpriced};
  return sac::module_info_json(sac::module_info(step, op_ms, options));
}

double op_ms(const std::string& model, const std::string& device, const std::string& family,
             const std::vector<std::tuple<std::int64_t, double>>& tensors, double flops,
             const std::optional<std::string>& dtype) {
  const auto line = from_word<cost::ReferenceLine>(model, cost::kReferenceLineNames, "cost");
  std::vector<cost::ReferenceTensor> measured;
  measured.reserve(tensors.size());
  for (const auto& [storage, covered] : tensors) measured.push_back({storage, covered});
  cost::ReferenceWork work = {.family = family, .tensors = measured, .flops = flops, .dtype = {}};
  if (dtype) work.dtype = step::dtype_from_name(*dtype);
  return cost::reference_op_ms(work, line, device);
}

using OperatorRow = std::tuple<std::string, double, std::int64_t, bool, bool, bool, std::optional<std::uint32_t>>;

sac::ModuleOperators operators_of(const std::vector<OperatorRow>& rows, bool must_store_random) {
  sac::ModuleOperators all;
  all.must_store_random = must_store_random;
  for (const auto& [name, ms, bytes, is_view_like, is_random, is_saved, changes] : rows) {
    if (changes && *changes >= rows.size()) {
      throw Error({.kind = ErrorKind::kInput,
                   .place = fmt::format("operators[{}]", all.operators.size()),
                   .problem = "it changes the result of an operator that there is not",
                   .expected = fmt::format("a number below {}", rows.size()),
                   .got = fmt::format("{}", *changes),
                   .remedy = {}});
    }
    sac::Operator row;
    row.name = name;
    row.ms = ms;
    row.bytes = bytes;
    row.is_view_like = is_view_like;
    row.is_random = is_random;
    row.is_saved_by_autograd = is_saved;
    row.changes = changes;
    all.total_bytes += bytes;
    all.total_ms += ms;
    all.operators.push_back(std::move(row));
  }
  return all;
}

sac::Rules reference_rules(const std::string& rules) {
  constexpr Word<sac::Rules> words[] = {{"reference-m", sac::Rules::kReferenceM},
                                        {"reference-b", sac::Rules::kReferenceB}};
  return from_word(rules, words, "rules");
}

nb::tuple traits_of(const std::string& family, const std::string& rules) {
  const sac::ReferenceTraits traits = sac::reference_traits(family, reference_rules(rules));
  return nb::make_tuple(traits.is_view_like, traits.is_in_place, traits.is_skipped);
}

std::vector<std::int64_t> bytes_without_result(const std::vector<OperatorRow>& rows) {
  sac::ModuleOperators all = operators_of(rows, false);
  sac::free_the_last(all.operators);
  std::vector<std::int64_t> bytes;
  for (const sac::Operator& row : all.operators) bytes.push_back(row.bytes);
  return bytes;
}

nb::dict order_of(const std::vector<OperatorRow>& rows, bool must_store_random, const std::string& rules) {
  const auto order = sac::reference_greedy_order(operators_of(rows, must_store_random), reference_rules(rules));
  nb::list candidates;
  for (const sac::Candidate& candidate : order.candidates) {
    candidates.append(
        nb::make_tuple(candidate.head, nb::cast(candidate.members), candidate.bytes, candidate.ms, candidate.score));
  }
  nb::dict result;
  result["candidates"] = candidates;
  result["stored"] = nb::cast(order.stored);
  result["recomputed"] = nb::cast(order.recomputed);
  return result;
}

nb::dict trade_off_of(const std::vector<OperatorRow>& rows, bool must_store_random, const std::string& rules,
                      int pieces) {
  if (pieces < 1 || pieces > 2) fail_word("pieces", "1, 2", fmt::format("{}", pieces));
  const sac::ModuleOperators all = operators_of(rows, must_store_random);
  const sac::Rules whose = reference_rules(rules);
  const auto result = sac::trade_off(all, sac::reference_greedy_order(all, whose), whose, pieces);
  nb::list curve;
  for (const sac::CurvePoint& point : result.curve) curve.append(nb::make_tuple(point.x, point.y));
  nb::dict found;
  found["curve"] = curve;
  found["breaks"] = nb::cast(result.fit.breaks);
  found["slopes"] = nb::cast(result.fit.slopes);
  found["intercepts"] = nb::cast(result.fit.intercepts);
  return found;
}

}  // namespace

void bind_sac(nb::module_& m) {
  m.def("reference_times", &reference_times, "step"_a, "model"_a, "device"_a,
        "Milliseconds of every op as one of PyTorch's own estimators has them.");
  m.def(
      "module_info_json", &module_info_text, "step"_a, "op_ms"_a, "rules"_a, "device"_a, "counts_stale"_a,
      "unpriced"_a = std::vector<bool>(),
      nb::sig("def module_info_json(step: Step, op_ms: typing.Sequence[float], rules: str, device: str, counts_stale: "
              "bool, unpriced: typing.Sequence[bool] = []) -> str"),
      "The statistics of all modules as JSON with the keys of torch.distributed._tools.ilp_utils. `unpriced`: of "
      "which\n"
      "ops nobody knows the time.");
  m.def("reference_op_ms", &op_ms, "model"_a, "device"_a, "family"_a, "tensors"_a, "flops"_a, "dtype"_a,
        "Milliseconds of one op; a tensor is (bytes of its storage, bytes that it covers).");
  m.def("sac_op_traits", &traits_of, "family"_a, "rules"_a,
        "What PyTorch's SAC estimator takes an op for: (returns a view, works in place, is not listed).");
  m.def("sac_bytes_without_result", &bytes_without_result, "operators"_a,
        "The bytes of a module's operators, none for the one that the estimator takes to make its result.");
  m.def("sac_greedy_order", &order_of, "operators"_a, "must_store_random"_a, "rules"_a,
        "In which order operators (name, ms, bytes, is view, is random, is saved, changes) are given up.");
  m.def("sac_trade_off", &trade_off_of, "operators"_a, "must_store_random"_a, "rules"_a, "pieces"_a,
        "The curve of time over bytes in that order, and its fit.");
}

}  // namespace tidemark::python
