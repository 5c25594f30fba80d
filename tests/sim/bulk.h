/* bulk.h - the list of slots in which lower_async.c passes the operands of a bulk copy to bulk.c. */
#ifndef SIM_BULK_H
#define SIM_BULK_H

/* An address: its register, the width of that, the offset. */
enum { ADDRESS_SLOT, ADDRESS_WIDE, ADDRESS_LOW, ADDRESS_HIGH, ADDRESS_FIELDS };
enum {
    BULK_DESTINATION,
    BULK_SOURCE = BULK_DESTINATION + ADDRESS_FIELDS,
    BULK_BARRIER = BULK_SOURCE + ADDRESS_FIELDS,
    BULK_SIZE = BULK_BARRIER + ADDRESS_FIELDS,
    BULK_MASK,
    BULK_COORDINATES,                  /* coordinates; values of st.async */
    BULK_FIELDS = BULK_COORDINATES + 5
};
enum { BULK_MULTICAST = 1, BULK_REDUCE = 2, BULK_GROUP = 4, BULK_TENSOR = 8, BULK_FROM_SHARED = 16, BULK_GENERIC = 32,
       BULK_PREFETCH = 64, BULK_STORE = 128 }; /* i->width */

#endif
