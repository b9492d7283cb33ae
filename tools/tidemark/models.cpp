// tidemark models: the built-in models.

#include <fmt/format.h>

#include "commands.h"
#include "text_layout.h"
#include "tidemark/base/bytes.h"
#include "tidemark/zoo/catalog.h"

namespace tidemark::cli {

namespace {

ExitCode list_models(const Console& console) {
  Json list = Json::array();
  Table table("<>><<");
  table.row({"name", "parameters", "layers", "trained for", "config from"});
  for (const zoo::Entry& entry : zoo::models()) {
    const zoo::ModelFacts facts = zoo::facts_of(entry.config);
    list.push_back({{"name", entry.name},
                    {"parameters", facts.parameters},
                    {"step_parameters", facts.step_parameters},
                    {"layers", facts.layers},
                    {"head", facts.head},
                    {"source", entry.source}});
    table.row({std::string(entry.name), format_count(facts.parameters), format_count(facts.layers),
               std::string(facts.head), std::string(entry.source)});
  }
  if (console.json()) {
    console.print_json(list);
  } else {
    console.print(table.text(0));
  }
  return ExitCode::kOk;
}

}  // namespace

Command add_models(CLI::App& root) {
  CLI::App* app =
      new_command(root, {.name = "models",
                         .summary = "List the built-in models",
                         .examples = {{{"build/tidemark models", "names, parameters, layers"},
                                       {"build/tidemark models --json", "the same for programs"},
                                       {"build/tidemark models --json | head -c 200", "the first of them"}}}});
  return {app, [](Console& console) { return list_models(console); }};
}

}  // namespace tidemark::cli
