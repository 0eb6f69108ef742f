#include "core/interrupt.h"

#include "core/error.h"

namespace lunaria {

void throw_interrupted() { throw Error(ErrorKind::interrupt, "", "interrupted!"); }

}  // namespace lunaria
