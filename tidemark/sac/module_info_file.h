#pragma once

#include <string>
#include <string_view>

#include "tidemark/sac/module_info.h"

namespace tidemark::sac {

// The ModuleInfo dictionary of torch.distributed._tools.ilp_utils as JSON, with its keys: what that module's
// parse_module_info and the planners behind it take. Python keeps the trade-off curve in a dictionary by float; JSON
// has only texts for keys.
std::string module_info_json(const ModuleInfo& info);

// Throws: Error naming the file, the module and the key.
ModuleInfo parse_module_info(std::string_view text, const std::string& name = "module info");
ModuleInfo read_module_info(const std::string& path);

}  // namespace tidemark::sac
