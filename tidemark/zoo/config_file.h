#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tidemark/zoo/catalog.h"

namespace tidemark::zoo {

// A model from the text of a Hugging Face config.json. `place` names the file in errors.
// Throws: Error, one sentence: text that is no JSON object, a model_type that is not known (with those that are), a
// value of the wrong type, a key that is missing, a config that no model can have.
Config parse_config(std::string_view text, const std::string& place);
Config read_config(const std::string& path);

// The values of model_type that are understood.
std::vector<std::string_view> model_types();

}  // namespace tidemark::zoo
