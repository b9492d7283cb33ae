#include "tidemark/plan/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tidemark/base/byte_source.h"
#include "tidemark/base/error.h"
#include "tidemark/base/strict_json.h"
#include "tidemark/plan/event_index.h"
#include "tidemark/step/fingerprint.h"

namespace tidemark::plan {

namespace {

using namespace step;
using Json = nlohmann::ordered_json;
using ReadJson = nlohmann::json;

constexpr const char* kFormat = "tidemark-plan";
constexpr std::int64_t kMajor = 1;
constexpr std::int64_t kMinor = 0;
constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;
constexpr JsonLimits kLimits = {.max_bytes = kMaxFileBytes, .max_depth = 8};
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

// The ops of a call and of the calls inside it, in the order in which they run.
std::vector<OpId> ops_of(const Step& step, const EventIndex& index, CallId call) {
  std::vector<OpId> ops;
  const EventRange region = index.regions[call.index()];
  for (std::uint32_t at = region.begin; at < region.end; ++at)
    if (step.tables().events[at].kind == EventKind::kBegin) ops.emplace_back(step.tables().events[at].id);
  return ops;
}

Json units_json(const Step& step, const Plan& plan) {
  const EventIndex index = index_events(step);
  Json units = Json::array();
  for (const Unit& unit : plan.units) {
    const Call& call = step[unit.call];
    std::map<std::string_view, std::int64_t> counts;
    std::map<std::string_view, std::vector<std::int64_t>> saved;
    for (const OpId op : ops_of(step, index, unit.call)) {
      const std::string_view name = step.text(step[op].name);
      const std::int64_t occurrence = counts[name]++;
      if (unit.decision(op) == Decision::kSave) saved[name].push_back(occurrence);
    }
    Json ops = Json::object();
    for (const auto& [name, occurrences] : saved) ops[std::string(name)] = occurrences;
    units.push_back(Json{{"module", step.fqn(call.module)},
                         {"call", call.index},
                         {"micro_batch", step[call.pass].micro_batch},
                         {"pass", std::string(step::name_of(step[call.pass].kind))},
                         {"preserve_rng", unit.preserve_rng},
                         {"early_stop", unit.early_stop},
                         {"saved", std::move(ops)}});
  }
  return units;
}

std::string hash_of(const Json& body) {
  Hasher hasher;
  hasher.add(std::string_view(body.dump()));
  return hasher.digest().hex();
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

class Reader {
 public:
  Reader(const Step& step, std::string name) : step_(step), name_(std::move(name)), index_(index_events(step)) {
    for (std::uint32_t i = 0; i < step.tables().calls.size(); ++i) {
      const Call& call = step.tables().calls[i];
      const Pass& pass = step[call.pass];
      calls_.emplace(Key{step.fqn(call.module), call.index, pass.micro_batch, std::string(step::name_of(pass.kind))},
                     CallId(i));
    }
  }

  PlanFile read(const ReadJson& json) {
    check_head(json);
    PlanFile file;
    file.fingerprint = fingerprint(step_);
    const std::string of_file = text_at(json, "step", name_);
    if (of_file != file.fingerprint.hex())
      refuse(name_ + ": step", "the plan is of another step", "the fingerprint " + file.fingerprint.hex(), of_file,
             "plan this step, or check the plan against the step it was made for");
    read_facts(json, file.facts);
    const ReadJson& units = member(json, "units", name_);
    if (!units.is_array()) refuse(name_ + ": units", "this is no list", "a list of units", shown_in_error(units));
    for (std::size_t i = 0; i < units.size(); ++i)
      file.plan.units.push_back(read_unit(units[i], fmt::format("{}: units[{}]", name_, i)));
    check_hash(json, file);
    return file;
  }

 private:
  struct Key {
    std::string module;
    std::uint32_t call = 0;
    std::uint32_t micro_batch = 0;
    std::string pass;

    friend auto operator<=>(const Key&, const Key&) = default;
  };

  void check_head(const ReadJson& json) const {
    if (text_at(json, "format", name_) != kFormat)
      refuse(name_ + ": format", "this is no plan file", kFormat, shown_in_error(json.at("format")));
    const std::int64_t major = integer(json, "version", name_);
    if (major != kMajor)
      refuse(name_ + ": version", "the file is of another version of the format", std::to_string(kMajor),
             std::to_string(major), "a version of tidemark that writes it");
  }

  void read_facts(const ReadJson& json, PlanFacts& facts) const {
    facts.device = text_at(json, "device", name_);
    facts.budget_bytes = integer(json, "budget_bytes", name_);
    facts.reserve_bytes = integer(json, "reserve_bytes", name_);
    facts.against = text_at(json, "against", name_);
    facts.termination = text_at(json, "termination", name_);
    const ReadJson& predicted = member(json, "predicted", name_);
    const std::string place = name_ + ": predicted";
    facts.peak_bytes = integer(predicted, "peak_bytes", place);
    facts.recompute_ps = integer(predicted, "recompute_ps", place);
    facts.bound_ps = integer(predicted, "bound_ps", place);
    facts.smallest_peak_bytes = integer(predicted, "smallest_peak_bytes", place);
  }

  Unit read_unit(const ReadJson& json, const std::string& place) const {
    const Key key{text_at(json, "module", place), static_cast<std::uint32_t>(integer(json, "call", place)),
                  static_cast<std::uint32_t>(integer(json, "micro_batch", place)), text_at(json, "pass", place)};
    const auto found = calls_.find(key);
    if (found == calls_.end())
      refuse(place,
             fmt::format("the step has no call {} of module '{}' in its {} pass", key.call, key.module, key.pass),
             "a call of the step");
    Unit unit{.call = found->second,
              .saved_ops = {},
              .preserve_rng = flag(json, "preserve_rng", place),
              .early_stop = flag(json, "early_stop", place)};
    std::map<std::string, std::vector<OpId>> ops;
    for (const OpId op : ops_of(step_, index_, unit.call)) ops[std::string(step_.text(step_[op].name))].push_back(op);
    const ReadJson& saved = member(json, "saved", place);
    if (!saved.is_object()) refuse(place + ": saved", "this is no object", "occurrences by op", shown_in_error(saved));
    for (const auto& [name, occurrences] : saved.items()) {
      const std::string at = fmt::format("{}: saved['{}']", place, name);
      if (!occurrences.is_array()) refuse(at, "this is no list", "a list of counts", shown_in_error(occurrences));
      for (const ReadJson& occurrence : occurrences) {
        const bool is_count = occurrence.is_number_unsigned();
        const std::vector<OpId>& of_name = ops[name];
        if (!is_count || occurrence.get<std::uint64_t>() >= of_name.size())
          refuse(at, fmt::format("the call runs {} ops of that name", of_name.size()), "counts from 0, below that",
                 shown_in_error(occurrence));
        unit.saved_ops.push_back(of_name[occurrence.get<std::size_t>()]);
      }
    }
    std::sort(unit.saved_ops.begin(), unit.saved_ops.end());
    if (std::adjacent_find(unit.saved_ops.begin(), unit.saved_ops.end()) != unit.saved_ops.end())
      refuse(place + ": saved", "an op stands twice", "every op once");
    return unit;
  }

  void check_hash(const ReadJson& json, const PlanFile& file) const {
    const std::string of_file = text_at(json, "hash", name_);
    const std::string text = write_plan(step_, file.plan, file.facts);
    const std::string expected = ReadJson::parse(text).at("hash").get<std::string>();
    if (of_file != expected)
      refuse(name_ + ": hash", "the file was changed after it was written", expected, of_file,
             "`tidemark plan` to make a new one; docs/plan_format.md says how to edit a plan");
  }

  const Step& step_;
  std::string name_;
  EventIndex index_;
  std::map<Key, CallId> calls_;
};

}  // namespace

std::string write_plan(const Step& step, const Plan& plan, const PlanFacts& facts) {
  Json body{{"format", kFormat},
            {"version", kMajor},
            {"minor", kMinor},
            {"step", fingerprint(step).hex()},
            {"device", facts.device},
            {"budget_bytes", facts.budget_bytes},
            {"reserve_bytes", facts.reserve_bytes},
            {"against", facts.against},
            {"objective", "recompute_ps"},
            {"termination", facts.termination},
            {"predicted",
             {{"peak_bytes", facts.peak_bytes},
              {"recompute_ps", facts.recompute_ps},
              {"bound_ps", facts.bound_ps},
              {"smallest_peak_bytes", facts.smallest_peak_bytes}}},
            {"units", units_json(step, plan)}};
  body["hash"] = hash_of(body);
  return body.dump(1) + "\n";
}

PlanFile read_plan_text(std::string_view text, const std::string& name, const Step& step) {
  return Reader(step, name).read(parse_strict_json(text, name, kKind, kRemedy, kLimits));
}

PlanFile read_plan(const std::string& path, const Step& step) {
  return read_plan_text(read_small_file(path, kMaxFileBytes), path, step);
}

}  // namespace tidemark::plan
