/* attributes.c - entry points for the device's name and attributes. */
#include "driver.h"

SIM_API cuInit(unsigned flags)
{
    int failed = sim_enter(E_cuInit, false);
    if (failed) return failed;
    if (flags) return leave(CU_INVALID_VALUE);
    if (sim_device_problem()) return leave(CU_INVALID_VALUE);
    const char *lag = getenv("PTXSIM_LAG");
    if (lag && *lag >= '0' && *lag <= '2' && !lag[1]) sim_driver_option.lag = *lag - '0';
    sim_initialised();
    return leave(CU_OK);
}

SIM_API cuDriverGetVersion(int *out)
{
    int failed = sim_enter(E_cuDriverGetVersion, false);
    if (failed) return failed;
    if (!out) return leave(CU_INVALID_VALUE);
    *out = 13000;
    return leave(CU_OK);
}

SIM_API cuDeviceGetCount(int *out)
{
    ENTER(cuDeviceGetCount);
    if (!out) return leave(CU_INVALID_VALUE);
    *out = 1;
    return leave(CU_OK);
}

SIM_API cuDeviceGet(int *out, int ordinal)
{
    ENTER(cuDeviceGet);
    if (!out) return leave(CU_INVALID_VALUE);
    if (ordinal) return leave(CU_INVALID_DEVICE);
    *out = 0;
    return leave(CU_OK);
}

SIM_API cuDeviceGetName(char *out, int size, int device)
{
    ENTER(cuDeviceGetName);
    if (!out || size <= 0) return leave(CU_INVALID_VALUE);
    if (device) return leave(CU_INVALID_DEVICE);
    snprintf(out, (size_t)size, "%s", sim_the_device()->text);
    return leave(CU_OK);
}

static int uuid(unsigned char *out, int device)
{
    if (!out) return CU_INVALID_VALUE;
    if (device) return CU_INVALID_DEVICE;
    memcpy(out, "ptxsim-cpu-drive", 16);
    out[15] = (unsigned char)sim_the_device()->sm;
    return CU_OK;
}

SIM_API cuDeviceGetUuid_v2(unsigned char out[16], int device)
{ ENTER(cuDeviceGetUuid_v2); return leave(uuid(out, device)); }
SIM_API cuDeviceGetUuid(unsigned char out[16], int device)
{ ENTER(cuDeviceGetUuid); return leave(uuid(out, device)); }

SIM_API cuDeviceTotalMem_v2(size_t *out, int device)
{
    ENTER(cuDeviceTotalMem_v2);
    if (!out) return leave(CU_INVALID_VALUE);
    if (device) return leave(CU_INVALID_DEVICE);
    *out = (size_t)sim_device_memory();
    return leave(CU_OK);
}

/* --- attributes ------------------------------------------------------------------------------- */

typedef struct attribute { int id; long value; } attribute;

static void values_of(const sim_device *d, const attribute **list, size_t *count)
{
    static attribute table[160];
    size_t n = 0;
    bool ampere = d->sm >= 80, hopper = d->sm >= 90;
    /* Peak f32 rate over f64 rate: data-centre chips have half the rate in f64. */
    long ratio = d->sm == 80 || d->sm == 90 || d->sm == 100 ? 2 : d->sm == 75 ? 32 : 64;
#define V(id, value) table[n++] = (attribute){ id, (long)(value) }
    V(1, 1024); V(2, 1024); V(3, 1024); V(4, 64);             /* a block */
    V(5, 2147483647); V(6, 65535); V(7, 65535);               /* a grid */
    V(8, 49152); V(9, 65536); V(10, 32); V(11, 2147483647); V(12, 65536);
    V(13, d->clock_khz); V(14, 512); V(15, 1); V(16, d->sm_count); V(17, 0); V(18, d->sm == 87 || d->sm
        == 121);
    V(19, 1); V(20, 0);
    V(21, 131072); V(22, 131072); V(23, 65536); V(24, 16384); V(25, 16384); V(26, 16384);      /* textures */
    V(27, 32768); V(28, 32768); V(29, 2048); V(30, 512); V(31, 1); V(32, ampere && ratio == 2); V(33, 1);
    V(34, 0);
    V(35, 0); V(36, d->memory_clock_khz); V(37, d->bus_bits); V(38, d->l2_bytes); V(39, d->threads_per_sm);
    V(40, 3); V(41, 1); V(42, 32768); V(43, 2048); V(44, 1); V(45, 32768); V(46, 32768); V(47, 8192);
    V(48, 8192);
    V(49, 32768); V(50, 0); V(51, 32); V(52, 32768); V(53, 32768); V(54, 2046);
    V(55, 32768); V(56, 131072); V(57, 65536); V(58, 16384); V(59, 16384); V(60, 16384);       /* surfaces */
    V(61, 32768); V(62, 2048); V(63, 32768); V(64, 32768); V(65, 2048); V(66, 32768); V(67, 32768); V(68,
        2046);
    V(69, 268435456); V(70, 131072); V(71, 65000); V(72, 2097120); V(73, 32768); V(74, 32768);
    V(75, d->sm / 10); V(76, d->sm % 10); V(77, 32768); V(78, 1); V(79, 1); V(80, 1);
    V(81, d->shared_per_sm); V(82, d->registers_per_sm);
    V(83, 1); V(84, 0); V(85, 0); V(86, 0); V(87, ratio); V(88, 0); V(89, 0); V(90, 1); V(91, 1);
    V(92, 1); V(93, 1); V(94, 1); V(95, 1); V(96, 0); V(97, d->shared_optin); V(98, 0); V(99, 1); V(100, 0);
    V(101, 0); V(102, 0); V(103, 0); V(104, 0); V(105, 0); V(106, d->blocks_per_sm); V(107, 0);
    V(108, ampere ? d->l2_bytes / 4 * 3 : 0); V(109, ampere ? 134213632 : 0); V(110, 0); V(111, ampere ?
        1024 : 0);
    V(112, 0); V(113, 0); V(114, 0); V(115, 1); V(116, 0); V(117, 0); V(118, 0); V(119, 0);
    V(120, hopper); V(121, 0); V(122, 1); V(123, 1); V(124, 0); V(125, 0); V(126, hopper ? 4 : 1); V(127,
        hopper);
    V(128, 0); V(129, 1); V(130, 0); V(131, -1); V(132, 0); V(133, 0); V(134, 0); V(135, 0); V(136, 0);
    V(137, 0);
    V(138, 0); V(139, 0); V(140, 0); V(141, 0); V(142, 0); V(143, 0); V(144, 0); V(145, 0); V(146, 0);
    V(147, 0);
#undef V
    *list = table;
    *count = n;
}

SIM_API cuDeviceGetAttribute(int *out, int wanted, int device)
{
    ENTER(cuDeviceGetAttribute);
    const attribute *list;
    size_t count;
    if (!out) return leave(CU_INVALID_VALUE);
    if (device) return leave(CU_INVALID_DEVICE);
    values_of(sim_the_device(), &list, &count);
    for (size_t k = 0; k < count; k++)
        if (list[k].id == wanted) { *out = (int)list[k].value; return leave(CU_OK); }
    return leave(CU_INVALID_VALUE);
}

/* --- names ------------------------------------------------------------------------------------ */

static const char bus_id[] = "0000:01:00.0";

SIM_API cuDeviceGetPCIBusId(char *out, int size, int device)
{
    ENTER(cuDeviceGetPCIBusId);
    if (!out || size <= 0) return leave(CU_INVALID_VALUE);
    if (device) return leave(CU_INVALID_DEVICE);
    snprintf(out, (size_t)size, "%s", bus_id);
    return leave(CU_OK);
}

SIM_API cuDeviceGetByPCIBusId(int *out, const char *name)
{
    ENTER(cuDeviceGetByPCIBusId);
    unsigned domain = 0, bus, slot, function = 0;
    if (!out || !name) return leave(CU_INVALID_VALUE);
    if (sscanf(name, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
        domain = function = 0;
        if (sscanf(name, "%x:%x.%x", &bus, &slot, &function) < 2) return leave(CU_INVALID_VALUE);
    }
    if (domain || bus != 1 || slot || function) return leave(CU_INVALID_DEVICE);
    *out = 0;
    return leave(CU_OK);
}

SIM_API cuDeviceGetLuid(char *luid, unsigned *mask, int device)
{
    ENTER(cuDeviceGetLuid);
    if (device) return leave(CU_INVALID_DEVICE);
    if (!luid || !mask) return leave(CU_INVALID_VALUE);
    return leave(CU_NOT_SUPPORTED);                           /* only on Windows */
}

SIM_API cuDeviceComputeCapability(int *major, int *minor, int device)
{
    ENTER(cuDeviceComputeCapability);
    if (!major || !minor) return leave(CU_INVALID_VALUE);
    if (device) return leave(CU_INVALID_DEVICE);
    *major = (int)sim_the_device()->sm / 10;
    *minor = (int)sim_the_device()->sm % 10;
    return leave(CU_OK);
}

SIM_API cuDeviceGetExecAffinitySupport(int *out, int type, int device)
{
    ENTER(cuDeviceGetExecAffinitySupport);
    if (!out || type) return leave(CU_INVALID_VALUE);
    if (device) return leave(CU_INVALID_DEVICE);
    *out = 0;
    return leave(CU_OK);
}
