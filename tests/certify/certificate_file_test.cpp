#include "tidemark/verify/certificate_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tidemark/base/error.h"

namespace tidemark::verify {
namespace {

using Json = nlohmann::ordered_json;

Certificate some_certificate() {
  Certificate c;
  c.claim = Claim::kOptimal;
  c.step = {.high = 1, .low = 2};
  c.plan = Hash128{.high = 3, .low = 4};
  c.device = "h100-sxm";
  c.times = {.high = 5, .low = 6};
  c.workspace = Hash128{.high = 7, .low = 8};
  c.room_bytes = 1000;
  c.against = "rounded";
  c.space = {.early_stop = false,
             .rng = planner::RngRule::kAlways,
             .units = {"layers.*"},
             .not_units = {"head"},
             .always_save = {"aten.mm"},
             .never_save = {"aten.add"}};
  c.bound_ps = 70;
  c.least_peak_bytes = 9;
  c.parts = {{.bound_ps = 30, .entries = 12, .sides = {{0, {1, 5, 9}, 512, {64, 7, 21, 3}}}},
             {.bound_ps = 40, .entries = 1}};
  return c;
}

// The same with proofs on other sides than the first.
Certificate certificate_with_sides() {
  Certificate c = some_certificate();
  c.parts[0].sides = {{4096, {3}, 0, {}}};
  c.parts[1].sides = {{0, {1, 5}, 0, {}}, {1000, {}, 512, {64, 7, 21, 3}}, {4096, {2}, 0, {}}};
  return c;
}

// The same with prices on the other side.
Certificate certificate_with_other_prices() {
  Certificate c = certificate_with_sides();
  c.parts[0].sides[0].other_prices = {{0, 50}, {3, 0}, {4, 7}};
  c.parts[1].sides[0].other_prices = {{2, 9}};
  return c;
}

std::string error_of(const std::string& text) {
  try {
    read_certificate_text(text, "c.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(CertificateFile, IsReadAsItWasWritten) {
  const Certificate c = some_certificate();
  const std::string text = write_certificate(c);
  EXPECT_EQ(read_certificate_text(text, "c.json"), c);
  EXPECT_EQ(write_certificate(read_certificate_text(text, "c.json")), text);
  Certificate nothing;
  nothing.claim = Claim::kInfeasible;
  EXPECT_EQ(read_certificate_text(write_certificate(nothing), "c.json"), nothing);
  const Certificate sides = certificate_with_sides();
  EXPECT_EQ(read_certificate_text(write_certificate(sides), "c.json"), sides);
  const Certificate priced = certificate_with_other_prices();
  EXPECT_EQ(read_certificate_text(write_certificate(priced), "c.json"), priced);
}

// What needs nothing new is written as by the first version of the format, so that its readers take it.
TEST(CertificateFile, IsOfTheOldestMinorThatHasItAll) {
  const Json old = Json::parse(write_certificate(some_certificate()));
  EXPECT_EQ(old["minor"], 0);
  EXPECT_EQ(old["parts"][0], Json::parse(R"({"bound_ps": 30, "entries": 12, "unit_bytes": 512, "prices": [1, 5, 9],
      "ring": {"unit_bytes": 64, "modulus": 7, "unit_cost": 21, "parts": 3}})"));
  const Json sides = Json::parse(write_certificate(certificate_with_sides()));
  EXPECT_EQ(sides["minor"], 1);
  EXPECT_EQ(sides["parts"][0], Json::parse(R"({"bound_ps": 30, "entries": 12,
      "sides": [{"forward_share": 4096, "unit_bytes": 0, "prices": [3]}]})"));
  const Json priced = Json::parse(write_certificate(certificate_with_other_prices()));
  EXPECT_EQ(priced["minor"], 2);
  EXPECT_EQ(priced["parts"][0]["sides"][0], Json::parse(R"({"forward_share": 4096, "unit_bytes": 0, "prices": [3],
      "other_states": [0, 3, 4], "other_prices": [50, 0, 7]})"));
}

// Files that are older than the field do not have it, and stay as they are; what nobody rounds to is refused.
TEST(CertificateFile, SaysWhatSizesAreRoundedTo) {
  Certificate c = some_certificate();
  EXPECT_EQ(write_certificate(c).find("rounding_bytes"), std::string::npos);
  c.rounding_bytes = 4096;
  EXPECT_EQ(Json::parse(write_certificate(c))["rounding_bytes"], 4096);
  EXPECT_EQ(read_certificate_text(write_certificate(c), "c.json"), c);
  for (const std::int64_t bad : {std::int64_t{0}, (std::int64_t{1} << 30) + 1}) {
    c.rounding_bytes = bad;
    EXPECT_NE(error_of(write_certificate(c)).find("[c.json: rounding_bytes] sizes cannot be rounded up to that"),
              std::string::npos);
  }
  c.rounding_bytes = 512;
  c.against = "exact";
  EXPECT_NE(error_of(write_certificate(c)).find("1 for exact bytes"), std::string::npos);
}

TEST(CertificateFile, LiesBesideThePlan) {
  EXPECT_EQ(certificate_path("a/plan.json"), "a/plan.certificate.json");
  EXPECT_EQ(certificate_path("plan"), "plan.certificate.json");
}

TEST(CertificateFile, NoticesAChange) {
  Json json = Json::parse(write_certificate(some_certificate()));
  json["room_bytes"] = 1001;
  EXPECT_NE(error_of(json.dump()).find("changed after it was written"), std::string::npos);
}

// Every value replaced by what does not belong there, and every key left out: an error, never a crash.
void expect_only_itself(Certificate whole) {
  whole.rounding_bytes = 512;
  const Json good = Json::parse(write_certificate(whole));
  ASSERT_EQ(error_of(good.dump()), "");
  const std::vector<Json> strange = {nullptr, -1, 1e300, "x", Json::array(), Json::object(), true, 4611686018427387905};
  int refused = 0;
  const Json flat = good.flatten();
  for (const auto& [pointer, value] : flat.items())
    for (const Json& other : strange) {
      Json bad = good;
      bad[Json::json_pointer(pointer)] = other;
      if (bad == good || pointer == "/minor") continue;
      EXPECT_NE(error_of(bad.dump()), "") << pointer << " " << other;
      ++refused;
    }
  EXPECT_GT(refused, 100);
  for (const auto& [key, value] : good.items()) {
    Json bad = good;
    bad.erase(key);
    if (key == "minor") continue;
    EXPECT_NE(error_of(bad.dump()), "") << key;
  }
}

TEST(CertificateFile, RefusesWhatIsNoCertificate) {
  expect_only_itself(some_certificate());
  expect_only_itself(certificate_with_sides());
  expect_only_itself(certificate_with_other_prices());
  for (const char* text : {"", "{", "[]", "null", "{}", "{\"format\":\"tidemark-certificate\",\"format\":1}", "\xff"})
    EXPECT_NE(error_of(text), "") << text;
}

// A file cannot ask for more bounds than there may be, nor for prices whose sums overflow.
TEST(CertificateFile, BoundsItsHints) {
  Certificate many = some_certificate();
  many.parts[0].sides[0].prices.clear();
  for (std::int64_t price = 1; price <= static_cast<std::int64_t>(kMostPrices) + 1; ++price)
    many.parts[0].sides[0].prices.push_back(price);
  EXPECT_NE(error_of(write_certificate(many)).find("too many"), std::string::npos);
  Certificate high = some_certificate();
  high.parts[0].sides[0].prices = {(std::int64_t{1} << 58) + 1};
  EXPECT_NE(error_of(write_certificate(high)).find("do not ascend"), std::string::npos);
  Certificate sides = certificate_with_sides();
  sides.parts[1].sides.resize(kMostSides + 1);
  EXPECT_NE(error_of(write_certificate(sides)).find("parts[1]: sides] there are too few or too many"),
            std::string::npos);
  sides.parts[1].sides.clear();
  EXPECT_NE(error_of(write_certificate(sides)).find("parts[1]: sides] there are too few or too many"),
            std::string::npos);
  sides.parts[1].sides = {{4097, {}, 0, {}}};
  EXPECT_NE(error_of(write_certificate(sides)).find("a share is at most the whole"), std::string::npos);
}

TEST(CertificateFile, BoundsItsPricesOnTheOtherSide) {
  const auto error_with = [](std::int64_t share, std::vector<PriceFrom> prices) {
    Certificate c = certificate_with_sides();
    c.parts[0].sides = {{.forward_share = share, .other_prices = std::move(prices)}};
    return error_of(write_certificate(c));
  };
  EXPECT_EQ(error_with(0, {{0, 1}, {1, std::int64_t{1} << 58}}), "");
  EXPECT_NE(error_with(1, {{0, 1}}).find("other_prices] a mixture has no other side"), std::string::npos);
  EXPECT_NE(error_with(0, {{1, 5}, {1, 4}}).find("the states do not ascend"), std::string::npos);
  EXPECT_NE(error_with(0, {{std::int64_t{1} << 32, 5}}).find("the states do not ascend"), std::string::npos);
  EXPECT_NE(error_with(0, {{1, (std::int64_t{1} << 58) + 1}}).find("the price is too high"), std::string::npos);
  std::vector<PriceFrom> many;
  for (std::int64_t i = 0; i <= static_cast<std::int64_t>(kMostOtherPrices); ++i) many.push_back({i, 1});
  EXPECT_NE(error_with(0, many).find("too few or too many"), std::string::npos);
}

}  // namespace
}  // namespace tidemark::verify
