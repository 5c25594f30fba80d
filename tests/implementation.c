/* implementation.c - the code of the three headers, compiled once. Every test that only uses the public
 * interface includes the headers plainly and links this object, as a user's program does. */
#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "../ptxgen_kernels.h"
#include "../ptxgen_cuda.h"
