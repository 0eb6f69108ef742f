// Every formula of an elementwise operator, from the lists of the families.
#pragma once

#include "core/ops/formulas_activation.h"
#include "core/ops/formulas_compare.h"
#include "core/ops/formulas_gradient.h"
#include "core/ops/formulas_math.h"
#include "core/ops/formulas_special.h"

namespace lunaria::formula {

using RealFormulas = decltype(CheapMath() + Exponentials() + Trigonometry() + Hyperbolics() + Divisions() +
                              SpecialFunctions() + Activations() + SmoothActivations() + ActivationGradients() +
                              SmoothActivationGradients() + Comparisons() + Tests());
using AllFormulas = decltype(RealFormulas() + IntegerDivisions() + Logic() + Bits() + Shifts() + Selections());

}  // namespace lunaria::formula
