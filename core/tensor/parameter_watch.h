// A hook for devices that account for parameters apart from other tensors.
#pragma once

namespace lunaria {

struct Storage;

// Called with the storage of a parameter on a device other than the host, and again when the parameter gets another
// storage; the caller sees its exceptions. Set once by the program, when its devices are made.
using ParameterWatch = void (*)(const Storage& storage);
void watch_parameters(ParameterWatch watch);

}  // namespace lunaria
