// Statistics of modules, and the times of PyTorch's own estimators.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "tidemark/base/error.h"
#include "tidemark/cost/reference_roofline.h"
#include "tidemark/sac/module_info_file.h"
#include "words.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tidemark::python {

namespace {

std::vector<double> reference_times(const step::Step& step, const std::string& model, const std::string& device) {
  const auto line = from_word<cost::ReferenceLine>(model, cost::kReferenceLineNames, "cost");
  return cost::reference_times_ms(step, cost::find_reference_hardware(line, device));
}

std::string module_info_text(const step::Step& step, const std::vector<double>& op_ms, const std::string& rules,
                             const std::string& device, bool counts_stale) {
  if (op_ms.size() != step.tables().ops.size()) {
    throw Error({.kind = ErrorKind::kInput,
                 .place = "op_ms",
                 .problem = "there is not one time for every op",
                 .expected = fmt::format("{} times", step.tables().ops.size()),
                 .got = fmt::format("{}", op_ms.size()),
                 .remedy = {}});
  }
  const sac::ModuleInfoOptions options = {
      .rules = from_word<sac::Rules>(rules, sac::kRulesNames, "rules"), .device = device, .counts_stale = counts_stale};
  return sac::module_info_json(sac::module_info(step, op_ms, options));
}

}  // namespace

void bind_sac(nb::module_& m) {
  m.def("reference_times", &reference_times, "step"_a, "model"_a, "device"_a,
        "Milliseconds of every op as one of PyTorch's own estimators has them.");
  m.def("module_info_json", &module_info_text, "step"_a, "op_ms"_a, "rules"_a, "device"_a, "counts_stale"_a,
        "The statistics of all modules as JSON with the keys of torch.distributed._tools.ilp_utils.");
}

}  // namespace tidemark::python
