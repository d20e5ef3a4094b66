// The kernels that a file is compiled for: those of a card, or the same code as
// plain C++. Files that name device code are compiled once for each.
#pragma once

#ifdef CUZK_EMULATED
#define CUZK_VARIANT emulated
#else
#define CUZK_VARIANT card
#endif
