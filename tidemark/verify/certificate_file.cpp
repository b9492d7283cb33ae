#include "tidemark/verify/certificate_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tidemark/base/byte_source.h"
#include "tidemark/base/error.h"
#include "tidemark/base/strict_json.h"
#include "tidemark/plan/plan_file.h"
#include "tidemark/verify/sides.h"
#include "tidemark/verify/time_lines.h"

namespace tidemark::verify {

namespace {

using Json = nlohmann::ordered_json;
using ReadJson = nlohmann::json;

constexpr const char* kFormat = "tidemark-certificate";
constexpr std::int64_t kMajor = 1;
// Since these, parts may be proved on other sides, and with prices on the other side; others are written as before.
constexpr std::int64_t kSidesMinor = 1;
constexpr std::int64_t kOtherPricesMinor = 2;
constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;
constexpr JsonLimits kLimits = {.max_bytes = kMaxFileBytes, .max_depth = 6};
constexpr const char* kRemedy = "`tidemark plan STEP --device D --budget B -o FILE` writes one beside the plan";
constexpr std::array<std::string_view, 3> kAgainst = {"exact", "rounded", "reserved"};

Json hash_json(const std::optional<Hash128>& hash) { return hash ? Json(hash->hex()) : Json(nullptr); }

bool has_other_prices(const PartProof& part) {
  return std::any_of(part.sides.begin(), part.sides.end(),
                     [](const SideHints& side) { return !side.other_prices.empty(); });
}

bool has_other_sides(const PartProof& part) {
  return part.sides.size() != 1 || part.sides[0].forward_share != 0 || has_other_prices(part);
}

std::int64_t minor_of(const std::vector<PartProof>& parts) {
  if (std::any_of(parts.begin(), parts.end(), has_other_prices)) return kOtherPricesMinor;
  return std::any_of(parts.begin(), parts.end(), has_other_sides) ? kSidesMinor : 0;
}

void add_side(const SideHints& side, Json& json) {
  json["unit_bytes"] = side.unit_bytes;
  json["prices"] = side.prices;
  if (side.ring.unit_bytes > 0)
    json["ring"] = Json{{"unit_bytes", side.ring.unit_bytes},
                        {"modulus", side.ring.modulus},
                        {"unit_cost", side.ring.unit_cost},
                        {"parts", side.ring.parts}};
}

Json side_json(const SideHints& side) {
  Json json{{"forward_share", side.forward_share}};
  add_side(side, json);
  if (side.other_prices.empty()) return json;
  Json states = Json::array();
  Json prices = Json::array();
  for (const PriceFrom& one : side.other_prices) {
    states.push_back(one.state);
    prices.push_back(one.price);
  }
  json["other_states"] = std::move(states);
  json["other_prices"] = std::move(prices);
  return json;
}

Json part_json(const PartProof& part) {
  Json json{{"bound_ps", part.bound_ps}, {"entries", part.entries}};
  if (!has_other_sides(part)) {
    add_side(part.sides[0], json);
    return json;
  }
  json["sides"] = Json::array();
  for (const SideHints& side : part.sides) json["sides"].push_back(side_json(side));
  return json;
}

Json body_of(const Certificate& c) {
  Json parts = Json::array();
  for (const PartProof& part : c.parts) parts.push_back(part_json(part));
  Json body{{"format", kFormat},
            {"version", kMajor},
            {"minor", minor_of(c.parts)},
            {"claim", name_of(c.claim)},
            {"step", c.step.hex()},
            {"plan", hash_json(c.plan)},
            {"device", c.device},
            {"times", c.times.hex()},
            {"workspace", hash_json(c.workspace)},
            {"room_bytes", c.room_bytes},
            {"against", c.against},
            {"rounding_bytes", c.rounding_bytes.value_or(0)},
            {"space",
             {{"early_stop", c.space.early_stop},
              {"rng", planner::kRngNames[static_cast<std::size_t>(c.space.rng)]},
              {"units", c.space.units},
              {"not_units", c.space.not_units},
              {"always_save", c.space.always_save},
              {"never_save", c.space.never_save}}},
            {"bound_ps", c.bound_ps},
            {"least_peak_bytes", c.least_peak_bytes},
            {"parts", std::move(parts)}};
  if (!c.rounding_bytes) body.erase("rounding_bytes");
  return body;
}

std::string hash_of_body(const Json& body) {
  Hasher hasher;
  hasher.add(std::string_view(body.dump()));
  return hasher.digest().hex();
}

class Reader {
 public:
  explicit Reader(std::string name) : name_(std::move(name)) {}

  Certificate read(const ReadJson& json) const {
    if (word(json, "format", name_) != kFormat)
      refuse(name_ + ": format", "this is no certificate", kFormat, shown_in_error(json.at("format")));
    if (const std::int64_t major = count(json, "version", name_); major != kMajor)
      refuse(name_ + ": version", "the file is of another version of the format", std::to_string(kMajor),
             std::to_string(major));
    Certificate c;
    c.claim = static_cast<Claim>(one_of(json, "claim", name_, kClaimNames));
    c.step = hash(member(json, "step", name_), name_ + ": step");
    c.plan = maybe_hash(json, "plan");
    c.device = word(json, "device", name_);
    c.times = hash(member(json, "times", name_), name_ + ": times");
    c.workspace = maybe_hash(json, "workspace");
    c.room_bytes = count(json, "room_bytes", name_);
    c.against = kAgainst[one_of(json, "against", name_, kAgainst)];
    if (json.contains("rounding_bytes")) {
      c.rounding_bytes = count(json, "rounding_bytes", name_);
      if (!plan::may_round_to(c.against, *c.rounding_bytes))
        refuse(name_ + ": rounding_bytes", "sizes cannot be rounded up to that", std::string(plan::kRoundingRule),
               std::to_string(*c.rounding_bytes));
    }
    read_space(member(json, "space", name_), c.space);
    c.bound_ps = count(json, "bound_ps", name_);
    c.least_peak_bytes = count(json, "least_peak_bytes", name_);
    const ReadJson& parts = list(json, "parts", name_);
    for (std::size_t i = 0; i < parts.size(); ++i)
      c.parts.push_back(read_part(parts[i], fmt::format("{}: parts[{}]", name_, i)));
    const std::string of_file = word(json, "hash", name_);
    const std::string expected = hash_of_body(body_of(c));
    if (of_file != expected)
      refuse(name_ + ": hash", "the file was changed after it was written", expected,
             shown_in_error(ReadJson(of_file)));
    return c;
  }

 private:
  [[noreturn]] static void refuse(std::string place, std::string problem, std::string expected, std::string got = {}) {
    throw Error({.kind = ErrorKind::kInput,
                 .place = std::move(place),
                 .problem = std::move(problem),
                 .expected = std::move(expected),
                 .got = std::move(got),
                 .remedy = kRemedy});
  }

  static const ReadJson& member(const ReadJson& object, const char* key, const std::string& place) {
    if (!object.is_object()) refuse(place, "this is no object", "a JSON object", shown_in_error(object));
    const auto found = object.find(key);
    if (found == object.end()) refuse(fmt::format("{}: {}", place, key), "the key is missing", "docs/certificate.md");
    return *found;
  }

  static std::int64_t count_of(const ReadJson& value, const std::string& place) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMost)
      refuse(place, "this is no count", "a whole number from 0 to 2^62", shown_in_error(value));
    return value.get<std::int64_t>();
  }

  static std::int64_t count(const ReadJson& object, const char* key, const std::string& place) {
    return count_of(member(object, key, place), fmt::format("{}: {}", place, key));
  }

  static std::string text_of(const ReadJson& value, const std::string& place) {
    if (!value.is_string()) refuse(place, "this is no text", "a string", shown_in_error(value));
    return value.get<std::string>();
  }

  static std::string word(const ReadJson& object, const char* key, const std::string& place) {
    return text_of(member(object, key, place), fmt::format("{}: {}", place, key));
  }

  static const ReadJson& list(const ReadJson& object, const char* key, const std::string& place) {
    const ReadJson& value = member(object, key, place);
    if (!value.is_array())
      refuse(fmt::format("{}: {}", place, key), "this is no list", "a list", shown_in_error(value));
    return value;
  }

  template <std::size_t Count>
  static std::size_t one_of(const ReadJson& object, const char* key, const std::string& place,
                            const std::array<std::string_view, Count>& words) {
    const std::string text = word(object, key, place);
    for (std::size_t i = 0; i < Count; ++i)
      if (words[i] == text) return i;
    refuse(fmt::format("{}: {}", place, key), "this word is not known", fmt::format("{}", fmt::join(words, ", ")),
           shown_in_error(ReadJson(text)));
  }

  static Hash128 hash(const ReadJson& value, const std::string& place) {
    const std::string text = text_of(value, place);
    if (text.size() != 32 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
      refuse(place, "this is no hash", "32 digits from 0 to f", shown_in_error(value));
    return {.high = std::stoull(text.substr(0, 16), nullptr, 16), .low = std::stoull(text.substr(16), nullptr, 16)};
  }

  std::optional<Hash128> maybe_hash(const ReadJson& json, const char* key) const {
    const ReadJson& value = member(json, key, name_);
    if (value.is_null()) return std::nullopt;
    return hash(value, fmt::format("{}: {}", name_, key));
  }

  static std::vector<std::string> words(const ReadJson& object, const char* key, const std::string& place) {
    std::vector<std::string> result;
    for (const ReadJson& item : list(object, key, place))
      result.push_back(text_of(item, fmt::format("{}: {}", place, key)));
    return result;
  }

  void read_space(const ReadJson& json, planner::SpaceOptions& space) const {
    const std::string place = name_ + ": space";
    const ReadJson& early_stop = member(json, "early_stop", place);
    if (!early_stop.is_boolean())
      refuse(place + ": early_stop", "this is no truth value", "true or false", shown_in_error(early_stop));
    space.early_stop = early_stop.get<bool>();
    space.rng = static_cast<planner::RngRule>(one_of(json, "rng", place, planner::kRngNames));
    space.units = words(json, "units", place);
    space.not_units = words(json, "not_units", place);
    space.always_save = words(json, "always_save", place);
    space.never_save = words(json, "never_save", place);
  }

  static void read_ring(const ReadJson& json, const std::string& place, RingHint& ring) {
    ring.unit_bytes = count(json, "unit_bytes", place);
    ring.modulus = count(json, "modulus", place);
    ring.unit_cost = count(json, "unit_cost", place);
    ring.parts = count(json, "parts", place);
    if (ring.unit_bytes < 1 || ring.modulus < 1 || ring.modulus > kMostModulus || ring.parts < 1 ||
        ring.parts > kMostParts || ring.unit_cost > kMostPrice)
      refuse(place, "these cannot be",
             "unit_bytes from 1, modulus from 1 to 2^20, parts from 1 to 2^30, unit_cost up to 2^58",
             shown_in_error(json));
  }

  static PartProof read_part(const ReadJson& json, const std::string& place) {
    PartProof part;
    part.bound_ps = count(json, "bound_ps", place);
    part.entries = count(json, "entries", place);
    if (!json.contains("sides")) {
      read_side(json, place, part.sides[0]);
      return part;
    }
    const ReadJson& sides = list(json, "sides", place);
    if (sides.empty() || sides.size() > kMostSides)
      refuse(place + ": sides", "there are too few or too many", fmt::format("1 to {}", kMostSides),
             std::to_string(sides.size()));
    part.sides.resize(sides.size());
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const std::string at = fmt::format("{}: sides[{}]", place, i);
      part.sides[i].forward_share = count(sides[i], "forward_share", at);
      if (part.sides[i].forward_share > kShares)
        refuse(at + ": forward_share", "a share is at most the whole", fmt::format("0 to {}", kShares),
               std::to_string(part.sides[i].forward_share));
      read_side(sides[i], at, part.sides[i]);
      if (sides[i].contains("other_prices")) read_other_prices(sides[i], at, part.sides[i]);
    }
    return part;
  }

  static void read_other_prices(const ReadJson& json, const std::string& place, SideHints& side) {
    const ReadJson& states = list(json, "other_states", place);
    const ReadJson& prices = list(json, "other_prices", place);
    const std::string at = place + ": other_prices";
    if (side.forward_share != 0 && side.forward_share != kShares)
      refuse(at, "a mixture has no other side", fmt::format("a forward_share of 0 or {}", kShares),
             std::to_string(side.forward_share));
    if (prices.empty() || prices.size() > kMostOtherPrices || states.size() != prices.size())
      refuse(at, "there are too few or too many, or not as many as states", fmt::format("1 to {}", kMostOtherPrices),
             std::to_string(prices.size()));
    std::int64_t next_state = 0;
    for (std::size_t i = 0; i < prices.size(); ++i) {
      const std::int64_t state = count_of(states[i], place + ": other_states");
      if (state < next_state || state >= kMostStates)
        refuse(place + ": other_states", "the states do not ascend",
               fmt::format("a number from {}, below 2^32", next_state), std::to_string(state));
      next_state = state + 1;
      const std::int64_t price = count_of(prices[i], at);
      if (price > kMostPrice) refuse(at, "the price is too high", "up to 2^58", std::to_string(price));
      side.other_prices.push_back({state, price});
    }
  }

  static void read_side(const ReadJson& json, const std::string& place, SideHints& side) {
    side.unit_bytes = count(json, "unit_bytes", place);
    if (json.contains("ring")) read_ring(json.at("ring"), place + ": ring", side.ring);
    const std::string at = place + ": prices";
    for (const ReadJson& item : list(json, "prices", place)) {
      const std::int64_t price = count_of(item, at);
      const std::int64_t before = side.prices.empty() ? 0 : side.prices.back();
      if (price <= before || price > kMostPrice)
        refuse(at, "the prices do not ascend", fmt::format("a number above {}, up to 2^58", before),
               std::to_string(price));
      side.prices.push_back(price);
      if (side.prices.size() > kMostPrices) refuse(at, "there are too many", fmt::format("{} at most", kMostPrices));
    }
  }

  std::string name_;
};

}  // namespace

std::string write_certificate(const Certificate& certificate) {
  Json body = body_of(certificate);
  body["hash"] = hash_of_body(body);
  return body.dump(1) + "\n";
}

Certificate read_certificate_text(std::string_view text, const std::string& name) {
  return Reader(name).read(parse_strict_json(text, name, "a certificate", kRemedy, kLimits));
}

Certificate read_certificate(const std::string& path) {
  return read_certificate_text(read_small_file(path, kMaxFileBytes), path);
}

std::string certificate_path(const std::string& plan_path) {
  constexpr std::string_view kEnding = ".json";
  const bool has_ending = plan_path.ends_with(kEnding);
  return (has_ending ? plan_path.substr(0, plan_path.size() - kEnding.size()) : plan_path) + ".certificate.json";
}

}  // namespace tidemark::verify
