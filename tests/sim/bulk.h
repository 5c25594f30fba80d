/* bulk.h - the list of slots in which lower_async.c passes the operands of a bulk copy to bulk.c. */
#ifndef SIM_BULK_H
#define SIM_BULK_H

enum { P_SLOT, P_WIDE, P_LOW, P_HIGH, P_FIELDS };             /* an address: register, its width, offset */
enum {
    L_DST,
    L_SRC = L_DST + P_FIELDS,
    L_BAR = L_SRC + P_FIELDS,
    L_SIZE = L_BAR + P_FIELDS,
    L_MASK,
    L_COORD,                           /* coordinates; values of st.async */
    L_FIELDS = L_COORD + 5
};
enum { B_MULTICAST = 1, B_REDUCE = 2, B_GROUP = 4, B_TENSOR = 8, B_FROM_SHARED = 16, B_GENERIC = 32,
       B_PREFETCH = 64, B_STORE = 128 };       /* i->width */

#endif
