#include "core/base/interrupt.h"

#include "core/base/error.h"

namespace lunaria {

void throw_interrupted() { throw Error(ErrorKind::interrupt, "", "interrupted!"); }

}  // namespace lunaria
