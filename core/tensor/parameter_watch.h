// Devices that account for parameters apart from other tensors are told of them.
#pragma once

namespace lunaria {

struct Storage;

// Called with the storage that a parameter of another device than the host has from then on, again when it gets another
// one; what it throws, the caller sees. Set once by the program, when its devices are made.
using ParameterWatch = void (*)(const Storage& storage);
void watch_parameters(ParameterWatch watch);

}  // namespace lunaria
