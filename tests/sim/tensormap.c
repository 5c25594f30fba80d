/* tensormap.c - tensor maps: the entry points that make them, and tensormap.replace.
 *
 * The 128 bytes are opaque to programs; a checksum distinguishes a map from other bytes. */
#include "async.h"
#include "driver.h"

enum { MAP_BYTES = 128, MAP_MAGIC = 0x544d4150, TYPES = 13 };
enum {
    REPLACE_ADDRESS,
    REPLACE_RANK,
    REPLACE_BOX,
    REPLACE_DIM,
    REPLACE_STRIDE,
    REPLACE_STEP,
    REPLACE_TYPE,
    REPLACE_INTERLEAVE,
    REPLACE_SWIZZLE,
    REPLACE_FILL,
    REPLACE_COPY = 255
};
_Static_assert(sizeof(sim_tensor_map) <= MAP_BYTES, "a tensor map has 128 bytes");

uint32_t sim_tensor_bytes(uint32_t type) {
    static const uint8_t bytes[TYPES] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return type < TYPES ? bytes[type] : 1;
}

/* The checksum of a map; differs from map->check if the magic number or the rank is wrong. */
uint32_t sim_tensor_check(const sim_tensor_map *m) {
    sim_tensor_map copy = *m;
    const uint8_t *p = (const uint8_t *)&copy;
    uint32_t h = 2166136261u;
    copy.check = 0;
    for (size_t k = 0; k < sizeof copy; k++) h = (h ^ p[k]) * 16777619u;
    return m->magic == MAP_MAGIC && m->rank >= 1 && m->rank <= SIM_MAX_BOX_RANK ? h : ~m->check;
}

static bool is_float(uint32_t type) { return type >= 6 && type <= 12; }

/* Whether the map's fields are valid; if not, the driver returns CUDA_ERROR_INVALID_VALUE. */
static bool sound(const sim_tensor_map *m) {
    static const uint16_t spans[] = {0, 32, 64, 128};
    uint32_t element = sim_tensor_bytes(m->type);
    if (m->type >= TYPES || m->rank < 1 || m->rank > SIM_MAX_BOX_RANK) return false;
    if (m->address % 16 || m->promotion > 3 || m->fill > 1 || (m->fill && !is_float(m->type))) return false;
    for (uint32_t k = 0; k + 1 < m->rank; k++)
        if (m->strides[k] % 16 || m->strides[k] >> 40) return false;
    for (uint32_t k = 0; k < m->rank; k++) {
        if (!m->box[k] || m->box[k] > 256) return false;
        if (!m->element_strides[k] || m->element_strides[k] > 8) return false;
    }
    if (m->box[0] * element % 16) return false;
    return !m->swizzle || m->box[0] * element <= spans[m->swizzle & 3];
}

SIM_API cuTensorMapEncodeTiled(void *out, int type, uint32_t rank, void *address, const uint64_t *dims,
                               const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                               int interleave, int swizzle, int promotion, int fill) {
    ENTER(cuTensorMapEncodeTiled);
    sim_context *c;
    int bad = sim_usable_context(&c);
    sim_tensor_map m;
    uint8_t bytes[MAP_BYTES] = {0};
    memset(&m, 0, sizeof m);
    if (bad) return leave(bad);
    if (sim_the_device()->sm < 90) return leave(CU_NOT_SUPPORTED);
    if (!out || (uintptr_t)out % 64 || !dims || !box || !steps || rank < 1 || rank > SIM_MAX_BOX_RANK
        || (rank > 1 && !strides) || interleave < 0 || interleave > 2 || swizzle < 0 || swizzle > 6
        || type < 0 || type > 15 || promotion < 0 || promotion > 3 || fill < 0 || fill > 1)
        return leave(CU_INVALID_VALUE);
    if (interleave && rank < 3) return leave(CU_INVALID_VALUE);
    if (interleave || type >= TYPES || swizzle > 3) return leave(CU_NOT_SUPPORTED);
    m.magic = MAP_MAGIC;
    m.type = (uint8_t)type;
    m.rank = (uint8_t)rank;
    m.address = (uintptr_t)address;
    m.swizzle = (uint8_t)swizzle;
    m.promotion = (uint8_t)promotion;
    m.fill = (uint8_t)fill;
    for (uint32_t k = 0; k < rank; k++) {
        if (!dims[k] || dims[k] > UINT64_C(1) << 32 || box[k] > 256 || steps[k] > 8)
            return leave(CU_INVALID_VALUE);
        m.dims[k] = (uint32_t)(dims[k] - 1);
        m.box[k] = (uint16_t)box[k];
        m.element_strides[k] = (uint8_t)steps[k];
        if (k) m.strides[k - 1] = strides[k - 1];
    }
    if (!sound(&m)) return leave(CU_INVALID_VALUE);
    m.check = sim_tensor_check(&m);
    memcpy(bytes, &m, sizeof m);
    memcpy(out, bytes, sizeof bytes);
    return leave(CU_OK);
}

SIM_API cuTensorMapEncodeIm2col(void *out, int type, uint32_t rank, void *address, const uint64_t *dims,
                                const uint64_t *strides, const int *lower, const int *upper,
                                uint32_t channels, uint32_t pixels, const uint32_t *steps, int interleave,
                                int swizzle, int promotion, int fill) {
    ENTER(cuTensorMapEncodeIm2col);
    (void)out;
    (void)type;
    (void)rank;
    (void)address;
    (void)dims;
    (void)strides;
    (void)lower;
    (void)upper;
    (void)channels;
    (void)pixels;
    (void)steps;
    (void)interleave;
    (void)swizzle;
    (void)promotion;
    (void)fill;
    return leave(CU_NOT_SUPPORTED);
}

SIM_API cuTensorMapReplaceAddress(void *map, void *address) {
    ENTER(cuTensorMapReplaceAddress);
    sim_context *c;
    int bad = sim_usable_context(&c);
    sim_tensor_map m;
    if (bad) return leave(bad);
    if (!map || (uintptr_t)map % 64 || (uintptr_t)address % 16) return leave(CU_INVALID_VALUE);
    memcpy(&m, map, sizeof m);
    if (m.check != sim_tensor_check(&m)) return leave(CU_INVALID_VALUE);
    m.address = (uintptr_t)address;
    m.check = sim_tensor_check(&m);
    memcpy(map, &m, sizeof m);
    return leave(CU_OK);
}

/* --- in kernels ------------------------------------------------------------------------------- */

static uint64_t address_of(const sim_warp *w, uint32_t slot, bool wide, int64_t offset, uint32_t lane) {
    uint64_t a = (wide ? sim_slot64(w, slot)[lane] : sim_slot(w, slot)[lane]) + (uint64_t)offset;
    return wide ? a : (uint32_t)a;
}

static void copy_map(sim_warp *w, const sim_ins *i, uint32_t lane) {
    const uint8_t *from = sim_reach(w, i, lane, address_of(w, i->b, i->width, (int32_t)i->e, lane), SP_SHARED,
                                    MAP_BYTES, SIM_READ);
    uint8_t *to =
        from ? sim_reach(w, i, lane, address_of(w, i->a, i->q, i->imm, lane), SP_GLOBAL, MAP_BYTES, SIM_WRITE)
             : NULL;
    if (to) memcpy(to, from, MAP_BYTES);
}

static void replace(sim_tensor_map *m, uint32_t field, uint32_t index, uint64_t v) {
    switch (field) {
    case REPLACE_ADDRESS: m->address = v; break;
    case REPLACE_RANK: m->rank = (uint8_t)(v + 1); break; /* the field holds rank - 1 */
    case REPLACE_BOX: m->box[index] = (uint16_t)v; break;
    case REPLACE_DIM: m->dims[index] = (uint32_t)v - 1; break;
    case REPLACE_STRIDE: m->strides[index & 3] = v; break;
    case REPLACE_STEP: m->element_strides[index] = (uint8_t)v; break;
    case REPLACE_TYPE: m->type = (uint8_t)v; break;
    case REPLACE_INTERLEAVE: m->interleave = (uint8_t)v; break;
    case REPLACE_SWIZZLE: m->swizzle = (uint8_t)v; break;
    default: m->fill = (uint8_t)v; break;
    }
}

void sim_tensormap_replace(sim_warp *w, const sim_ins *i, uint32_t mask) {
    if (i->op == REPLACE_COPY) {
        copy_map(w, i, sim_lowest(mask));
        return;
    }
    SIM_EACH_LANE(l, mask) {
        sim_tensor_map m;
        uint64_t wide = i->op == REPLACE_ADDRESS || i->op == REPLACE_STRIDE,
                 v = wide ? sim_slot64(w, i->c)[l] : sim_slot(w, i->c)[l];
        uint8_t *at = sim_reach(w, i, l, address_of(w, i->a, i->q, i->imm, l), (sim_space)i->space, MAP_BYTES,
                                SIM_UPDATE);
        if (!at) return;
        memcpy(&m, at, sizeof m);
        bool known = m.check == sim_tensor_check(&m);
        if (known) replace(&m, i->op, i->e, v);
        if (!known || m.interleave || m.swizzle > 3 || !sound(&m)) {
            sim_report_at(w, i, "tensor-map", l,
                          known ? "the tensor map breaks the rules with this value, or cannot be used here"
                                : "what is there was not made by cuTensorMapEncodeTiled");
            sim_warp_fault(w, SIM_ERROR_ILLEGAL_INSTRUCTION);
            return;
        }
        m.check = sim_tensor_check(&m);
        memcpy(at, &m, sizeof m);
    }
}
