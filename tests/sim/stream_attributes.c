/* stream_attributes.c - attributes of streams: set, read back, copied. Only the priority has a meaning
 * here, and only for those who query it. */
#include "driver.h"

enum { ACCESS_POLICY_WINDOW = 1, SYNCHRONIZATION_POLICY = 3, PRIORITY = 8, SYNC_DOMAIN_MAP = 9,
       SYNC_DOMAIN = 10 };

/* The attribute's index in sim_stream.attributes; -1: it is not stored there. */
static int stored_index(int attribute)
{
    switch (attribute) {
    case ACCESS_POLICY_WINDOW: return 0;
    case SYNCHRONIZATION_POLICY: return 1;
    case SYNC_DOMAIN_MAP: return 2;
    case SYNC_DOMAIN: return 3;
    default: return -1;
    }
}

static bool is_value_valid(int attribute, const void *value)
{
    int v;
    memcpy(&v, value, sizeof v);
    if (attribute == PRIORITY) return v <= 0 && v >= -5;
    if (attribute == SYNCHRONIZATION_POLICY) return v >= 0 && v <= 4;
    if (attribute == SYNC_DOMAIN) return v == 0 || v == 1;
    return true;
}

SIM_API cuStreamSetAttribute(void *handle, int attribute, const void *value)
{
    ENTER(cuStreamSetAttribute);
    USABLE();
    sim_stream *s = sim_stream_of(c, handle);
    if (!s) return leave(CU_INVALID_HANDLE);
    int at = stored_index(attribute);
    if (!value || (at < 0 && attribute != PRIORITY) || !is_value_valid(attribute, value))
        return leave(CU_INVALID_VALUE);
    if (at < 0) memcpy(&s->priority, value, sizeof s->priority);
    else memcpy(s->attributes[at], value, sizeof s->attributes[at]);
    return leave(CU_OK);
}

SIM_API cuStreamGetAttribute(void *handle, int attribute, void *value)
{
    ENTER(cuStreamGetAttribute);
    USABLE();
    const sim_stream *s = sim_stream_of(c, handle);
    if (!s) return leave(CU_INVALID_HANDLE);
    int at = stored_index(attribute);
    if (!value || (at < 0 && attribute != PRIORITY)) return leave(CU_INVALID_VALUE);
    if (at < 0) memcpy(value, &s->priority, sizeof s->priority);
    else memcpy(value, s->attributes[at], sizeof s->attributes[at]);
    return leave(CU_OK);
}

SIM_API cuStreamCopyAttributes(void *to, void *from)
{
    ENTER(cuStreamCopyAttributes);
    USABLE();
    sim_stream *d = sim_stream_of(c, to);
    const sim_stream *s = sim_stream_of(c, from);
    if (!d || !s) return leave(CU_INVALID_HANDLE);
    memcpy(d->attributes, s->attributes, sizeof d->attributes);
    d->priority = s->priority;
    return leave(CU_OK);
}
