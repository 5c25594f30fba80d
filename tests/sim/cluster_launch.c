/* cluster_launch.c - entry points for clusters: cuLaunchKernelEx and two occupancy queries. */
#include "async.h"
#include "driver.h"

enum { PORTABLE_CLUSTER = 8, SMS_OF_A_CLUSTER = 16 };
enum { ATTRIBUTE_COOPERATIVE = 2, ATTRIBUTE_CLUSTER = 4, ATTRIBUTE_PROGRAMMATIC = 6,
       ATTRIBUTE_LAST = 16 };
/* Attributes without effect on results: none, L2 window, synchronisation policy, cluster scheduling policy, priority,
 * memory domains, preferred clusters, carveout, NVLink use. Launch events (7, 12) would have an effect. */
#define ATTRIBUTES_IGNORED 0x14f2bu

typedef struct launch_attribute {
    int id;
    char pad[4];
    union {
        char room[64];
        uint32_t n[3];
    } value;
} launch_attribute;
typedef struct launch_config {
    uint32_t grid[3], block[3], shared;
    void *stream;
    launch_attribute *attributes;
    uint32_t count;
} launch_config;

/* Sets the cluster shape of a launch: the kernel's required one, or the launch's; if both exist they must agree. */
int sim_cluster_shape(const sim_kernel *k, sim_launch *l, const uint32_t grid[3], const uint32_t *wish) {
    const sim_function *f = k->function;
    const uint32_t *shape = f->reqnctapercluster[0] ? f->reqnctapercluster : NULL;
    uint32_t most = k->cluster_flags[0] ? SIM_MAX_CLUSTER : PORTABLE_CLUSTER;
    if (wish && shape && memcmp(wish, shape, sizeof l->cluster)) return CU_INVALID_CLUSTER_SIZE;
    if (!shape) shape = wish;
    l->cluster[0] = l->cluster[1] = l->cluster[2] = l->cluster_size = 1;
    l->explicit_cluster = shape != NULL;
    if (f->blocksareclusters) return CU_NOT_SUPPORTED;
    if (!shape) return f->explicitcluster ? CU_INVALID_CLUSTER_SIZE : CU_OK;
    if (sim_the_device()->sm < 90) return CU_INVALID_VALUE;
    for (int n = 0; n < 3; n++) {
        if (!shape[n] || shape[n] > SIM_MAX_CLUSTER) return CU_INVALID_CLUSTER_SIZE;
        if (grid[n] % shape[n]) return CU_INVALID_VALUE;
        l->cluster[n] = shape[n];
    }
    l->cluster_size = shape[0] * shape[1] * shape[2];
    if (f->maxclusterrank && f->maxclusterrank < most) most = f->maxclusterrank;
    return l->cluster_size > most ? CU_INVALID_CLUSTER_SIZE : CU_OK;
}

typedef struct wishes {
    const uint32_t *cluster;
    bool cooperative, programmatic;
} wishes;

static int read_attributes(const launch_config *c, wishes *out) {
    *out = (wishes){0};
    if (c->count && !c->attributes) return CU_INVALID_VALUE;
    for (uint32_t k = 0; k < c->count; k++) {
        const launch_attribute *a = &c->attributes[k];
        if (a->id == ATTRIBUTE_CLUSTER)
            out->cluster = a->value.n;
        else if (a->id == ATTRIBUTE_COOPERATIVE)
            out->cooperative = a->value.n[0] != 0;
        else if (a->id == ATTRIBUTE_PROGRAMMATIC)
            out->programmatic = a->value.n[0] != 0;
        else if (a->id < 0 || a->id > ATTRIBUTE_LAST)
            return CU_INVALID_VALUE;
        else if (!(ATTRIBUTES_IGNORED >> a->id & 1))
            return CU_NOT_SUPPORTED;
    }
    return CU_OK;
}

SIM_API cuLaunchKernelEx(const launch_config *config, void *function, void **params, void **extra) {
    ENTER(cuLaunchKernelEx);
    sim_context *c;
    wishes wish;
    int bad = sim_usable_context(&c);
    if (bad) return leave(bad);
    if (!config) return leave(CU_INVALID_VALUE);
    bad = read_attributes(config, &wish);
    if (bad) return leave(bad);
    sim_launch_request r = {.function = function, .dynamic = config->shared, .stream = config->stream,
                            .params = params, .extra = extra, .cooperative = wish.cooperative,
                            .cluster = wish.cluster, .programmatic = wish.programmatic};
    memcpy(r.grid, config->grid, sizeof r.grid);
    memcpy(r.block, config->block, sizeof r.block);
    return leave(sim_launch_submit(c, &r));
}

/* The number of clusters that the chip holds at once: the blocks of a cluster share one group of SMs. */
static uint32_t active_clusters(const sim_kernel *k, const launch_config *config, uint32_t size) {
    const sim_device *d = sim_the_device();
    uint64_t threads = (uint64_t)config->block[0] * config->block[1] * config->block[2];
    uint32_t blocks = threads <= 1024 ? sim_occupancy(k, (uint32_t)threads, config->shared) : 0;
    return d->sm_count / SMS_OF_A_CLUSTER * (blocks * SMS_OF_A_CLUSTER / size);
}

SIM_API cuOccupancyMaxActiveClusters(int *out, void *function, const launch_config *config) {
    ENTER(cuOccupancyMaxActiveClusters);
    sim_context *c;
    wishes wish;
    sim_launch l;
    int bad = sim_usable_context(&c);
    if (bad) return leave(bad);
    if (!out || !config) return leave(CU_INVALID_VALUE);
    const sim_kernel *k = sim_kernel_of(c, function);
    if (!k) return leave(CU_INVALID_HANDLE);
    memset(&l, 0, sizeof l);
    bad = read_attributes(config, &wish);
    if (!bad) bad = sim_cluster_shape(k, &l, config->grid, wish.cluster);
    if (bad) return leave(bad);
    *out = (int)active_clusters(k, config, l.cluster_size);
    return leave(CU_OK);
}

SIM_API cuOccupancyMaxPotentialClusterSize(int *out, void *function, const launch_config *config) {
    ENTER(cuOccupancyMaxPotentialClusterSize);
    sim_context *c;
    int bad = sim_usable_context(&c);
    if (bad) return leave(bad);
    if (!out || !config) return leave(CU_INVALID_VALUE);
    const sim_kernel *k = sim_kernel_of(c, function);
    if (!k) return leave(CU_INVALID_HANDLE);
    uint32_t size = k->cluster_flags[0] ? SIM_MAX_CLUSTER : PORTABLE_CLUSTER;
    if (sim_the_device()->sm < 90) size = 1;
    while (size > 1 && !active_clusters(k, config, size)) size /= 2;
    *out = (int)size;
    return leave(CU_OK);
}
