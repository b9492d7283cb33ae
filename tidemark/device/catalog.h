#pragma once

#include <string>
#include <vector>

#include "tidemark/device/device.h"

namespace tidemark::device {

// The devices of data/devices, which are part of the library, in the order of their names.
const std::vector<Device>& built_in_devices();

// What a user writes for a device: a name or alias, whatever its case, or the path of a device file. What contains a
// slash or ends in ".json" is a path; other words are one if no device has that name. Throws: Error with the nearest
// names for one that is not known.
Device find_device(const std::string& name_or_path);

}  // namespace tidemark::device
