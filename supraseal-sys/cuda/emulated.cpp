// The device code as plain C++, for tests without a device: one translation
// unit, compiled with CUZK_EMULATED.
#include "kernels.hpp"
