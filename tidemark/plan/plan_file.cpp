#include "tidemark/plan/plan_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tidemark/base/byte_source.h"
#include "tidemark/base/error.h"
#include "tidemark/base/strict_json.h"

namespace tidemark::plan {

namespace {

using step::Step;
using Json = nlohmann::ordered_json;
using ReadJson = nlohmann::json;

constexpr const char* kFormat = "tidemark-plan";
constexpr const char* kObjective = "recompute_ps";
constexpr std::int64_t kMajor = 2;
constexpr std::int64_t kMinor = 0;
constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;
constexpr JsonLimits kLimits = {.max_bytes = kMaxFileBytes, .max_depth = 8};
constexpr std::array<std::string_view, 3> kAgainstWords = {"exact", "rounded", "reserved"};
// How a search ends that has a plan; "given": nobody searched.
constexpr std::array<std::string_view, 4> kTerminationWords = {"fits", "optimal", "feasible", "given"};
constexpr const char* kKind = "a plan file";
constexpr const char* kRemedy = "`tidemark plan STEP --device D --budget B -o FILE` writes one";

[[noreturn]] void refuse(std::string place, std::string problem, std::string expected, std::string got = {},
                         std::string remedy = kRemedy) {
  throw Error({.kind = ErrorKind::kInput,
               .place = std::move(place),
               .problem = std::move(problem),
               .expected = std::move(expected),
               .got = std::move(got),
               .remedy = std::move(remedy)});
}

Json shape_json(const Shape& shape) { return Json::array({shape.dtype, shape.sizes}); }

Json model_json(const PortablePlan& plan) {
  Json modules = Json::array();
  for (const ModuleName& module : plan.modules) modules.push_back(Json::array({module.name, module.type}));
  Json parameters = Json::array();
  for (const ParameterShape& parameter : plan.parameters)
    parameters.push_back(
        Json::array({parameter.name, parameter.shape.dtype, parameter.shape.sizes, parameter.trainable}));
  Json model{{"modules", std::move(modules)}, {"parameters", std::move(parameters)}};
  if (!plan.inputs.empty()) {
    Json inputs = Json::array();
    for (const Shape& input : plan.inputs) inputs.push_back(shape_json(input));
    model["inputs"] = std::move(inputs);
  }
  if (!plan.checkpointed.empty()) model["checkpointed"] = plan.checkpointed;
  return model;
}

Json bodies_json(const PortablePlan& plan) {
  Json bodies = Json::array();
  for (const Body& body : plan.bodies) {
    Json inputs = Json::array();
    for (const Shape& input : body.inputs) inputs.push_back(shape_json(input));
    bodies.push_back(Json{{"inputs", std::move(inputs)}, {"ops", body.ops}});
  }
  return bodies;
}

Json calls_json(const PortablePlan& plan) {
  Json calls = Json::object();
  for (const CallCounts& counts : plan.calls) calls[counts.module] = counts.by_micro_batch;
  return calls;
}

Json units_json(const PortablePlan& plan) {
  Json units = Json::array();
  for (const PortableUnit& unit : plan.units) {
    const std::vector<std::string>& ops = plan.bodies[unit.body].ops;
    std::map<std::string_view, std::int64_t> counts;
    std::map<std::string_view, std::vector<std::int64_t>> saved;
    std::size_t next = 0;
    for (std::uint32_t i = 0; i < ops.size(); ++i) {
      const std::int64_t occurrence = counts[ops[i]]++;
      if (next < unit.saved.size() && unit.saved[next] == i) {
        saved[ops[i]].push_back(occurrence);
        ++next;
      }
    }
    Json by_name = Json::object();
    for (const auto& [name, occurrences] : saved) by_name[std::string(name)] = occurrences;
    units.push_back(Json{{"module", unit.module},
                         {"call", unit.call},
                         {"micro_batch", unit.micro_batch},
                         {"pass", unit.pass},
                         {"preserve_rng", unit.preserve_rng},
                         {"early_stop", unit.early_stop},
                         {"body", unit.body},
                         {"saved", std::move(by_name)},
                         {"reach", unit.reach},
                         {"buffers", unit.buffers}});
  }
  return units;
}

Json body_of(const PortablePlan& plan) {
  const PlanFacts& facts = plan.facts;
  Json body{{"format", kFormat},
            {"version", kMajor},
            {"minor", kMinor},
            {"step", plan.fingerprint.hex()},
            {"device", facts.device},
            {"budget_bytes", facts.budget_bytes},
            {"reserve_bytes", facts.reserve_bytes},
            {"against", facts.against},
            {"rounding_bytes", facts.rounding_bytes.value_or(0)},
            {"objective", kObjective},
            {"termination", facts.termination},
            {"predicted",
             {{"start_bytes", facts.start_bytes},
              {"peak_bytes", facts.peak_bytes},
              {"recompute_ps", facts.recompute_ps},
              {"bound_ps", facts.bound_ps},
              {"smallest_peak_bytes", facts.smallest_peak_bytes}}},
            {"units", units_json(plan)},
            {"calls", calls_json(plan)},
            {"bodies", bodies_json(plan)},
            {"model", model_json(plan)}};
  if (!facts.rounding_bytes) body.erase("rounding_bytes");
  for (const UnpricedOps& ops : facts.unpriced) body["unpriced"].push_back(Json::array({ops.op, ops.count, ops.bytes}));
  if (!plan.early_steps.empty()) body["early_steps"] = plan.early_steps;
  return body;
}

Hash128 hash_of_body(const Json& body) {
  Hasher hasher;
  hasher.add(std::string_view(body.dump()));
  return hasher.digest();
}

const ReadJson& member(const ReadJson& object, const char* key, const std::string& place) {
  if (!object.is_object()) refuse(place, "this is no object", "a JSON object", shown_in_error(object));
  const auto found = object.find(key);
  if (found == object.end()) refuse(fmt::format("{}: {}", place, key), "the key is missing", "docs/plan_format.md");
  return *found;
}

std::int64_t integer(const ReadJson& object, const char* key, const std::string& place) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  const ReadJson& value = member(object, key, place);
  const bool is_fine = value.is_number_unsigned() && value.get<std::uint64_t>() <= std::uint64_t{kMost};
  if (!is_fine)
    refuse(fmt::format("{}: {}", place, key), "this is no count", "a whole number from 0 to 2^62",
           shown_in_error(value));
  return value.get<std::int64_t>();
}

std::string text_at(const ReadJson& object, const char* key, const std::string& place) {
  const ReadJson& value = member(object, key, place);
  if (!value.is_string())
    refuse(fmt::format("{}: {}", place, key), "this is no text", "a string", shown_in_error(value));
  return value.get<std::string>();
}

bool flag(const ReadJson& object, const char* key, const std::string& place) {
  const ReadJson& value = member(object, key, place);
  if (!value.is_boolean())
    refuse(fmt::format("{}: {}", place, key), "this is no truth value", "true or false", shown_in_error(value));
  return value.get<bool>();
}

const ReadJson& list_at(const ReadJson& object, const char* key, const std::string& place) {
  const ReadJson& value = member(object, key, place);
  if (!value.is_array()) refuse(fmt::format("{}: {}", place, key), "this is no list", "a list", shown_in_error(value));
  return value;
}

std::uint32_t small(const ReadJson& object, const char* key, const std::string& place) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const std::int64_t value = integer(object, key, place);
  if (value > kMost)
    refuse(fmt::format("{}: {}", place, key), "this is too large", "a count below 2^31", std::to_string(value));
  return static_cast<std::uint32_t>(value);
}

std::string text_of(const ReadJson& value, const std::string& place) {
  if (!value.is_string()) refuse(place, "this is no text", "a string", shown_in_error(value));
  return value.get<std::string>();
}

template <class Number>
std::vector<Number> counts_of(const ReadJson& value, const std::string& place) {
  constexpr std::uint64_t kMost = sizeof(Number) == 4 ? std::uint64_t{1} << 31 : std::uint64_t{1} << 62;
  if (!value.is_array()) refuse(place, "this is no list", "a list of counts", shown_in_error(value));
  std::vector<Number> counts;
  for (const ReadJson& item : value) {
    if (!item.is_number_unsigned() || item.get<std::uint64_t>() > kMost)
      refuse(place, "this is no count", "a whole number from 0 on", shown_in_error(item));
    counts.push_back(item.get<Number>());
  }
  return counts;
}

class Reader {
 public:
  explicit Reader(std::string name) : name_(std::move(name)) {}

  PortablePlan read(const ReadJson& json) const {
    check_head(json);
    PortablePlan plan;
    plan.fingerprint = read_hash(json, "step");
    read_facts(json, plan.facts);
    read_model(member(json, "model", name_), plan);
    read_bodies(json, plan);
    read_calls(json, plan);
    if (json.contains("early_steps"))
      plan.early_steps = counts_of<std::uint32_t>(json["early_steps"], name_ + ": early_steps");
    const ReadJson& units = list_at(json, "units", name_);
    for (std::size_t i = 0; i < units.size(); ++i)
      plan.units.push_back(read_unit(units[i], plan.bodies, fmt::format("{}: units[{}]", name_, i)));
    const std::string of_file = text_at(json, "hash", name_);
    const std::string expected = hash_of(plan).hex();
    if (of_file != expected)
      refuse(name_ + ": hash", "the file was changed after it was written", expected, shown_in_error(ReadJson(of_file)),
             "`tidemark plan` to make a new one; docs/plan_format.md says how to edit a plan");
    return plan;
  }

 private:
  void check_head(const ReadJson& json) const {
    if (text_at(json, "format", name_) != kFormat)
      refuse(name_ + ": format", "this is no plan file", kFormat, shown_in_error(json.at("format")));
    const std::int64_t major = integer(json, "version", name_);
    if (major != kMajor)
      refuse(name_ + ": version", "the file is of another version of the format", std::to_string(kMajor),
             std::to_string(major), "a version of tidemark that writes it");
  }

  Hash128 read_hash(const ReadJson& json, const char* key) const {
    const std::string text = text_at(json, key, name_);
    const bool is_hash = text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!is_hash)
      refuse(fmt::format("{}: {}", name_, key), "this is no fingerprint", "32 digits from 0 to f",
             shown_in_error(ReadJson(text)));
    return {.high = std::stoull(text.substr(0, 16), nullptr, 16), .low = std::stoull(text.substr(16), nullptr, 16)};
  }

  template <std::size_t n>
  std::string word_at(const ReadJson& json, const char* key, const std::array<std::string_view, n>& words) const {
    std::string word = text_at(json, key, name_);
    if (std::find(words.begin(), words.end(), word) == words.end())
      refuse(fmt::format("{}: {}", name_, key), "this word is not known",
             fmt::format("one of {}", fmt::join(words, ", ")), shown_in_error(ReadJson(word)));
    return word;
  }

  void read_facts(const ReadJson& json, PlanFacts& facts) const {
    facts.device = text_at(json, "device", name_);
    facts.budget_bytes = integer(json, "budget_bytes", name_);
    facts.reserve_bytes = integer(json, "reserve_bytes", name_);
    facts.against = word_at(json, "against", kAgainstWords);
    if (json.contains("rounding_bytes")) {
      facts.rounding_bytes = integer(json, "rounding_bytes", name_);
      if (!may_round_to(facts.against, *facts.rounding_bytes))
        refuse(name_ + ": rounding_bytes", "sizes cannot be rounded up to that", std::string(kRoundingRule),
               std::to_string(*facts.rounding_bytes));
    }
    if (json.contains("objective") && text_at(json, "objective", name_) != kObjective)
      refuse(name_ + ": objective", "plans are for another one", kObjective, shown_in_error(json.at("objective")));
    facts.termination = word_at(json, "termination", kTerminationWords);
    const ReadJson& predicted = member(json, "predicted", name_);
    const std::string place = name_ + ": predicted";
    facts.start_bytes = integer(predicted, "start_bytes", place);
    facts.peak_bytes = integer(predicted, "peak_bytes", place);
    facts.recompute_ps = integer(predicted, "recompute_ps", place);
    facts.bound_ps = integer(predicted, "bound_ps", place);
    facts.smallest_peak_bytes = integer(predicted, "smallest_peak_bytes", place);
    if (!json.contains("unpriced")) return;
    for (const ReadJson& row : list_at(json, "unpriced", name_)) {
      if (!row.is_array() || row.size() != 3)
        refuse(name_ + ": unpriced", "this is no op without a price", "[op, count, bytes]", shown_in_error(row));
      const auto amounts = counts_of<std::int64_t>(ReadJson::array({row[1], row[2]}), name_ + ": unpriced");
      facts.unpriced.push_back({text_of(row[0], name_ + ": unpriced"), amounts[0], amounts[1]});
    }
  }

  void read_model(const ReadJson& json, PortablePlan& plan) const {
    const std::string place = name_ + ": model";
    for (const ReadJson& row : list_at(json, "modules", place)) {
      if (!row.is_array() || row.size() != 2)
        refuse(place + ": modules", "this is no module", "[name, class]", shown_in_error(row));
      plan.modules.push_back({text_of(row[0], place), text_of(row[1], place)});
    }
    for (const ReadJson& row : list_at(json, "parameters", place)) {
      if (!row.is_array() || row.size() != 4 || !row[3].is_boolean())
        refuse(place + ": parameters", "this is no parameter", "[name, dtype, sizes, trainable]", shown_in_error(row));
      plan.parameters.push_back({.name = text_of(row[0], place),
                                 .shape = {text_of(row[1], place), counts_of<std::int64_t>(row[2], place)},
                                 .trainable = row[3].get<bool>()});
    }
    if (json.contains("checkpointed"))
      for (const ReadJson& row : list_at(json, "checkpointed", place))
        plan.checkpointed.push_back(text_of(row, place + ": checkpointed"));
    if (!json.contains("inputs")) return;
    for (const ReadJson& row : list_at(json, "inputs", place)) plan.inputs.push_back(shape_of(row, place));
  }

  static Shape shape_of(const ReadJson& row, const std::string& place) {
    if (!row.is_array() || row.size() != 2)
      refuse(place + ": inputs", "this is no input", "[dtype, sizes]", shown_in_error(row));
    return {text_of(row[0], place), counts_of<std::int64_t>(row[1], place)};
  }

  void read_bodies(const ReadJson& json, PortablePlan& plan) const {
    const std::string place = name_ + ": bodies";
    for (const ReadJson& row : list_at(json, "bodies", name_)) {
      Body body;
      for (const ReadJson& op : list_at(row, "ops", place)) body.ops.push_back(text_of(op, place + ": ops"));
      for (const ReadJson& input : list_at(row, "inputs", place)) body.inputs.push_back(shape_of(input, place));
      plan.bodies.push_back(std::move(body));
    }
  }

  void read_calls(const ReadJson& json, PortablePlan& plan) const {
    const ReadJson& calls = member(json, "calls", name_);
    if (!calls.is_object()) refuse(name_ + ": calls", "this is no object", "counts by module", shown_in_error(calls));
    for (const auto& [module, counts] : calls.items())
      plan.calls.push_back({module, counts_of<std::uint32_t>(counts, name_ + ": calls")});
  }

  static PortableUnit read_unit(const ReadJson& json, const std::vector<Body>& bodies, const std::string& place) {
    PortableUnit unit{.module = text_at(json, "module", place),
                      .call = small(json, "call", place),
                      .micro_batch = small(json, "micro_batch", place),
                      .pass = text_at(json, "pass", place),
                      .preserve_rng = flag(json, "preserve_rng", place),
                      .early_stop = flag(json, "early_stop", place),
                      .body = small(json, "body", place),
                      .saved = {},
                      .reach = small(json, "reach", place),
                      .buffers = {}};
    if (unit.body >= bodies.size())
      refuse(place + ": body", fmt::format("the file has {} bodies", bodies.size()), "a number below that",
             std::to_string(unit.body));
    std::map<std::string_view, std::vector<std::uint32_t>> positions;
    const std::vector<std::string>& ops = bodies[unit.body].ops;
    for (std::uint32_t i = 0; i < ops.size(); ++i) positions[ops[i]].push_back(i);
    const ReadJson& saved = member(json, "saved", place);
    if (!saved.is_object()) refuse(place + ": saved", "this is no object", "occurrences by op", shown_in_error(saved));
    for (const auto& [name, occurrences] : saved.items()) {
      const std::string at = fmt::format("{}: saved[{}]", place, shown_in_error(ReadJson(name)));
      const std::vector<std::uint32_t>& of_name = positions[name];
      for (const auto occurrence : counts_of<std::uint32_t>(occurrences, at)) {
        if (occurrence >= of_name.size())
          refuse(at, fmt::format("the call runs {} ops of that name", of_name.size()), "counts from 0, below that",
                 std::to_string(occurrence));
        unit.saved.push_back(of_name[occurrence]);
      }
    }
    std::sort(unit.saved.begin(), unit.saved.end());
    if (std::adjacent_find(unit.saved.begin(), unit.saved.end()) != unit.saved.end())
      refuse(place + ": saved", "an op stands twice", "every op once");
    for (const ReadJson& buffer : list_at(json, "buffers", place))
      unit.buffers.push_back(text_of(buffer, place + ": buffers"));
    return unit;
  }

  std::string name_;
};

}  // namespace

Hash128 hash_of(const PortablePlan& plan) { return hash_of_body(body_of(plan)); }

std::string write_plan(const PortablePlan& plan) {
  Json body = body_of(plan);
  body["hash"] = hash_of_body(body).hex();
  return body.dump(1) + "\n";
}

std::string write_plan(const Step& step, const Plan& plan, const PlanFacts& facts) {
  return write_plan(describe(step, plan, facts));
}

PortablePlan read_portable_plan_text(std::string_view text, const std::string& name) {
  return Reader(name).read(parse_strict_json(text, name, kKind, kRemedy, kLimits));
}

PortablePlan read_portable_plan(const std::string& path) {
  return read_portable_plan_text(read_small_file(path, kMaxFileBytes), path);
}

PlanFile read_plan_text(std::string_view text, const std::string& name, const Step& step) {
  const PortablePlan portable = read_portable_plan_text(text, name);
  return {.plan = find_in(step, portable, name), .facts = portable.facts, .fingerprint = portable.fingerprint};
}

PlanFile read_plan(const std::string& path, const Step& step) {
  return read_plan_text(read_small_file(path, kMaxFileBytes), path, step);
}

}  // namespace tidemark::plan
