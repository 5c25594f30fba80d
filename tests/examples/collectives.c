/* collectives.c - what ranks do together (examples/ranks.h): who they are and how they meet, sums and gatherings, what
 * is told of ranks that are missing or differ; and of tests/nccl, NCCL's functions on the CPU driver. */
#define _DEFAULT_SOURCE
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../rankstest.h"

/* -- the environment -- */

static const char *const variables[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK", "PMI_SIZE",
                                        "MPI_LOCALRANKID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"};

/* The words are names and values with spaces between them. Returns what ranks_read does. */
static int read_from(const char *words, ranks_group *r)
{
    char room[200], *name, *value;
    size_t i;
    for (i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
    snprintf(room, sizeof room, "%s", words);
    for (name = strtok(room, " "); name; name = strtok(NULL, " ")) {
        value = strtok(NULL, " ");
        setenv(name, strcmp(value, "-") ? value : "", 1);
    }
    return ranks_read(r);
}

static void test_environment(void)
{
    static const struct { const char *words; uint32_t rank, count, local; } good[] = {
        {"", 0, 1, 0},
        {"RANK 3 WORLD_SIZE 8 LOCAL_RANK 1", 3, 8, 1},
        {"RANK 3 WORLD_SIZE 8", 3, 8, 3},
        {"RANK - WORLD_SIZE -", 0, 1, 0},
        {"OMPI_COMM_WORLD_RANK 1 OMPI_COMM_WORLD_SIZE 2 OMPI_COMM_WORLD_LOCAL_RANK 0", 1, 2, 0},
        {"PMI_RANK 1 PMI_SIZE 4 MPI_LOCALRANKID 1", 1, 4, 1},
        {"SLURM_PROCID 5 SLURM_STEP_NUM_TASKS 6 SLURM_LOCALID 1", 5, 6, 1},
        {"SLURM_PROCID 0", 0, 1, 0}, /* a script of a job, not one of its steps */
        {"PMI_RANK 0", 0, 1, 0},
        {"RANK 1 WORLD_SIZE 2 PMI_RANK 7 PMI_SIZE 9", 1, 2, 1},
        {"RANK 63 WORLD_SIZE 64", 63, 64, 63},
    };
    static const struct { const char *words, *why; } bad[] = {
        {"RANK 1", "RANK is set, and WORLD_SIZE is not"},
        {"WORLD_SIZE 2", "WORLD_SIZE is set, and RANK is not"},
        {"RANK 2 WORLD_SIZE 2", "RANK is '2', must be a whole number below 2"},
        {"RANK -1 WORLD_SIZE 2", "RANK is '-1'"},
        {"RANK x WORLD_SIZE 2", "RANK is 'x'"},
        {"RANK 0 WORLD_SIZE 0", "WORLD_SIZE is 0"},
        {"RANK 0 WORLD_SIZE 65", "WORLD_SIZE is '65', must be a whole number below 65"},
        {"RANK 0 WORLD_SIZE 99999999999999999999", "WORLD_SIZE is '9999"},
        {"RANK 0 WORLD_SIZE 2 LOCAL_RANK 0x1", "LOCAL_RANK is '0x1'"},
    };
    ranks_group r;
    size_t i;
    for (i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_MORE(read_from(good[i].words, &r) == 0 && r.rank == good[i].rank && r.count == good[i].count
                       && r.local == good[i].local,
                   good[i].words);
    for (i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_MORE(read_from(bad[i].words, &r) == 1 && strstr(r.error, bad[i].why), bad[i].words);
    read_from("", &r);
    CHECK(ranks_meet(&r) == 0 && ranks_open(&r, NULL) == 0 && ranks_sum(&r, 0, 4, NULL) == 0);
    CHECK(ranks_agree(&r, NULL) == 0 && ranks_agree(&r, "no") == 1 && strstr(r.error, "no"));
    ranks_close(&r);
}

/* -- meeting -- */

/* A process that says it is this rank of so many, by itself: what it is told. Returns the process. */
static pid_t lone(uint32_t rank, uint32_t count, uint32_t seconds, const char *why)
{
    pid_t process = fork();
    ranks_group r;
    int bad;
    if (process) return process;
    set_number("RANK", rank);
    set_number("WORLD_SIZE", count);
    set_number("PTXGEN_RANKS_TIMEOUT", seconds);
    bad = ranks_read(&r) || ranks_meet(&r);
    if (why ? !bad || !strstr(r.error, why) : bad) {
        fprintf(stdout, "rank %u of %u was told: %s\n", (unsigned)rank, (unsigned)count, bad ? r.error : "nothing");
        fflush(stdout);
        _exit(1);
    }
    ranks_close(&r);
    _exit(0);
}

static void all_end(const pid_t *process, uint32_t count, const char *what)
{
    uint32_t i;
    int status;
    for (i = 0; i < count; i++)
        CHECK_MORE(waitpid(process[i], &status, 0) == process[i] && WIFEXITED(status) && !WEXITSTATUS(status), what);
}

static void test_meeting(void)
{
    pid_t process[4];
    char port[16], name[16];
    snprintf(port, sizeof port, "%s", getenv("MASTER_PORT"));
    fflush(stdout);
    process[0] = lone(0, 4, 1, "of 4 ranks these have not come to 127.0.0.1, port ");
    process[1] = lone(2, 4, 5, "in 1 seconds: 1, 3");
    all_end(process, 2, "ranks 1 and 3 are missing");
    process[0] = lone(1, 2, 1, "rank 0 of 2 does not answer at 127.0.0.1, ports ");
    all_end(process, 1, "rank 0 is missing");
    process[0] = lone(0, 3, 5, "two processes say that they are rank 1 of 3");
    process[1] = lone(1, 3, 5, "1 of 3");
    usleep(300000);
    process[2] = lone(1, 3, 5, "rank 0 knows a rank 1 already");
    all_end(process, 3, "rank 1 twice");
    process[0] = lone(0, 3, 2, "1, 2");
    process[1] = lone(1, 2, 1, "(somebody there is of another run, or counts other ranks)");
    all_end(process, 2, "other counts");
    process[0] = lone(0, 2, 5, NULL); /* two runs at one port, of one machine */
    process[1] = lone(1, 2, 5, NULL);
    snprintf(name, sizeof name, "%s", getenv("TORCHELASTIC_RUN_ID"));
    setenv("TORCHELASTIC_RUN_ID", "another", 1);
    process[2] = lone(1, 2, 5, NULL);
    process[3] = lone(0, 2, 5, NULL);
    setenv("TORCHELASTIC_RUN_ID", name, 1);
    all_end(process, 4, "two runs");
    setenv("MASTER_ADDR", "no such host", 1);
    process[0] = lone(1, 2, 1, "MASTER_ADDR is 'no such host': ");
    unsetenv("MASTER_ADDR");
    setenv("MASTER_PORT", "65530", 1);
    process[1] = lone(0, 2, 1, "MASTER_PORT is '65530', must be a whole number below 65520");
    all_end(process, 2, "where they cannot meet");
    setenv("MASTER_PORT", port, 1);
}

/* -- words -- */

static void talk(void)
{
    uint32_t all[4] = {0}, mine = 10 + group.rank, i;
    char text[40] = "";
    CHECK(ranks_collect(&group, &mine, sizeof mine, all) == 0);
    for (i = 0; !group.rank && i < 4; i++) CHECK(all[i] == 10 + i);
    if (!group.rank) snprintf(text, sizeof text, "said by rank 0");
    CHECK(ranks_share(&group, text, sizeof text) == 0 && !strcmp(text, "said by rank 0"));
    CHECK(ranks_agree(&group, NULL) == 0);
    CHECK(ranks_agree(&group, group.rank == 2 ? "no memory" : NULL) == 1);
    CHECK_MORE(!strcmp(group.error, "rank 2: no memory"), group.error);
    CHECK(ranks_agree(&group, NULL) == 1); /* nothing is sent any more */
}

static void end_before_others(void)
{
    if (group.rank == 1) raise(SIGKILL);
    CHECK(ranks_agree(&group, NULL) == 1);
    CHECK_MORE(strstr(group.error, "rank 1 has gone"), group.error);
}

/* -- NCCL is missing, or another library -- */

static void lack_nccl(void)
{
    ptxcu *cu;
    if (!fine(ptxcu_open(&cu, NULL))) return;
    if (group.rank == 1) setenv("PTXGEN_NCCL_LIBRARY", "/nowhere/libnccl.so.2", 1);
    CHECK(ranks_open(&group, cu) == 1);
    CHECK_MORE(strstr(group.error, "rank 1: 2 ranks need NCCL: /nowhere/libnccl.so.2: ")
                   && strstr(group.error, "install it (libnccl2), or name its file in PTXGEN_NCCL_LIBRARY"),
               group.error);
    ptxcu_close(cu);
}

static void take_another_library(void)
{
    ptxcu *cu;
    if (!fine(ptxcu_open(&cu, NULL))) return;
    setenv("PTXGEN_NCCL_LIBRARY", ptxcu_device_info(cu)->library, 1);
    CHECK(ranks_open(&group, cu) == 1);
    CHECK_MORE(strstr(group.error, " is no NCCL: it lacks nccl"), group.error);
    ptxcu_close(cu);
}

/* NCCL itself, where it is installed: its functions are found. */
static void test_nccl_itself(void)
{
    ranks_group r;
    memset(&r, 0, sizeof r);
    setenv("PTXGEN_NCCL_LIBRARY", "", 1);
    if (!ranks_load(&r)) printf("note: libnccl.so.2 is here, and has what is needed\n");
    else printf("skip: no libnccl.so.2 to look at: %.60s\n", r.error);
    setenv("PTXGEN_NCCL_LIBRARY", nccl_library, 1);
}

/* -- sums and gatherings -- */

static ptxcu_buffer upload(const void *data, size_t bytes)
{
    ptxcu_buffer b = {0, 0};
    fine(ptxcu_alloc(device, bytes, &b));
    fine(ptxcu_upload(device, b, 0, data, bytes, stream));
    fine(ptxcu_stream_sync(device, stream));
    return b;
}

/* Numbers of each rank, which all ranks know. */
static float number_of(uint32_t rank, uint32_t i, uint32_t salt)
{
    return (float)((rank * 7919u + i * 104729u + salt * 13u) % 20011u) / 97 - 100;
}

static void check_sum_and_gather(uint32_t count, uint32_t salt)
{
    size_t bytes = count * sizeof(float);
    float *x = (float *)malloc(bytes), *all = (float *)malloc(bytes * group.count);
    ptxcu_buffer from, to;
    uint32_t i, k, wrong = 0;
    for (i = 0; i < count; i++) x[i] = number_of(group.rank, i, salt);
    if (count > 3) x[2] = group.rank == 1 ? NAN : 1, x[3] = INFINITY;
    from = upload(x, bytes);
    fine(ptxcu_alloc(device, bytes * group.count, &to));
    CHECK_MORE(ranks_gather(&group, from.address, to.address, count, stream) == 0, group.error);
    CHECK_MORE(ranks_sum(&group, from.address, count, stream) == 0, group.error);
    fine(ptxcu_download(device, x, from, 0, bytes, stream));
    fine(ptxcu_download(device, all, to, 0, bytes * group.count, stream));
    fine(ptxcu_stream_sync(device, stream));
    for (i = 0; i < count; i++) {
        double sum = 0, size = 0;
        for (k = 0; k < group.count; k++) {
            double part = (double)number_of(k, i, salt);
            if (i < 2 || i > 3 || count <= 3) wrong += all[k * count + i] != (float)part;
            sum += part, size += fabs(part);
        }
        if ((i < 2 || i > 3 || count <= 3) && !(fabs((double)x[i] - sum) <= size * 0x1p-22)) wrong++;
    }
    if (count > 3) CHECK(isnan(x[2]) && isinf(x[3]) && x[3] > 0 && isnan(all[count + 2]));
    CHECK(wrong == 0);
    free(all);
    all = (float *)calloc(group.count, bytes); /* the same bits in all ranks */
    CHECK(ranks_collect(&group, x, bytes, all) == 0);
    for (k = 1; !group.rank && k < group.count; k++) CHECK(!memcmp(all, all + (size_t)k * count, bytes));
    ptxcu_free(device, from);
    ptxcu_free(device, to);
    free(x);
    free(all);
}

/* In place, and of the other types. */
static void check_types(void)
{
    enum { INT32 = 2, UINT64 = 5, DOUBLE = 8, PRODUCT = 1, MAXIMUM = 2, MINIMUM = 3 };
    int32_t x[3], y[12];
    double d = 1.5 + group.rank;
    uint64_t u = group.rank + 2, product = 1;
    ptxcu_buffer a, b, c;
    uint32_t i;
    for (i = 0; i < 3; i++) x[i] = (int32_t)(i * 100) - 5 * (int32_t)group.rank;
    memset(y, 255, sizeof y);
    memcpy(y + 3 * group.rank, x, sizeof x);
    a = upload(y, sizeof y), b = upload(&d, sizeof d), c = upload(&u, sizeof u);
#define AT(buffer, offset) ((void *)(uintptr_t)((buffer).address + (offset)))
    fine((ptxcu_code)ranks_enter(&group));
    CHECK(group.ncclAllGather(AT(a, 12 * group.rank), AT(a, 0), 3, INT32, group.communicator, stream) == 0);
    CHECK(group.ncclAllReduce(AT(b, 0), AT(b, 0), 1, DOUBLE, MAXIMUM, group.communicator, stream) == 0);
    CHECK(group.ncclAllReduce(AT(c, 0), AT(c, 0), 1, UINT64, PRODUCT, group.communicator, stream) == 0);
    fine(ptxcu_download(device, y, a, 0, sizeof y, stream));
    CHECK(group.ncclAllReduce(AT(a, 0), AT(a, 0), 12, INT32, MINIMUM, group.communicator, stream) == 0);
    fine(ptxcu_download(device, x, a, 36, sizeof x, stream));
    fine(ptxcu_download(device, &d, b, 0, sizeof d, stream));
    fine(ptxcu_download(device, &u, c, 0, sizeof u, stream));
    fine(ptxcu_stream_sync(device, stream));
    for (i = 0; i < 12; i++) CHECK(y[i] == (int32_t)(i % 3 * 100) - 5 * (int32_t)(i / 3));
    for (i = 0; i < 3; i++) CHECK(x[i] == (int32_t)(i * 100) - 15);
    for (i = 0; i < 4; i++) product *= i + 2;
    CHECK(d == 4.5 && u == product);
    /* what is refused */
    CHECK(group.ncclAllReduce(AT(a, 0), AT(a, 0), 1, 10, 0, group.communicator, stream) == 4);
    CHECK(group.ncclAllReduce(AT(a, 0), AT(a, 0), 1, 6, 0, group.communicator, stream) == 4);
    CHECK(group.ncclAllReduce(AT(a, 0), AT(a, 0), 1, INT32, 4, group.communicator, stream) == 4);
    CHECK(group.ncclAllReduce(AT(a, 0), AT(a, 4), 2, INT32, 0, group.communicator, stream) == 4);
    CHECK(group.ncclAllReduce(AT(a, 2), AT(a, 2), 1, INT32, 0, group.communicator, stream) == 4);
    CHECK(group.ncclAllReduce(NULL, AT(a, 0), 1, INT32, 0, group.communicator, stream) == 4);
    CHECK(group.ncclAllReduce(AT(a, 0), AT(a, 0), 1, INT32, 0, &group, stream) == 4);
    CHECK(group.ncclAllGather(AT(a, 4), AT(a, 0), 3, INT32, group.communicator, stream) == 4);
    CHECK(group.ncclAllReduce(AT(a, 0), AT(a, 40), 8, INT32, 0, group.communicator, stream) == 1);
    CHECK(strstr(group.ncclGetLastError(NULL), "cuMemcpy"));
    CHECK(group.ncclAllReduce(NULL, NULL, 0, INT32, 0, group.communicator, stream) == 0);
    ranks_leave(&group);
    ptxcu_free(device, a);
    ptxcu_free(device, b);
    ptxcu_free(device, c);
}

/* A sum in a graph, launched some times: each adds all ranks' numbers. */
static void check_graph(void)
{
    float x[5], want;
    ptxcu_buffer a;
    ptxcu_graph graph;
    uint32_t i;
    for (i = 0; i < 5; i++) x[i] = (float)(group.rank + i);
    a = upload(x, sizeof x);
    if (!fine(ptxcu_graph_begin(device, stream))) return;
    CHECK_MORE(ranks_sum(&group, a.address, 5, stream) == 0, group.error);
    if (!fine(ptxcu_graph_end(device, stream, &graph))) return;
    for (i = 0; i < 3; i++) fine(ptxcu_graph_launch(device, graph, stream));
    fine(ptxcu_download(device, x, a, 0, sizeof x, stream));
    fine(ptxcu_stream_sync(device, stream));
    for (i = 0; i < 5; i++) {
        want = (float)(16 * (6 + 4 * i)); /* the sum over 4 ranks, twice times 4 */
        CHECK(!(x[i] < want) && !(x[i] > want));
    }
    ptxcu_graph_destroy(device, graph);
    ptxcu_free(device, a);
}

static void compute(void)
{
    static const uint32_t counts[] = {1, 4, 1000, 65536, 65537, 150001};
    uint32_t i, salt = random_u32();
    if (!open_rank()) return;
    for (i = 0; i < sizeof counts / sizeof *counts; i++) check_sum_and_gather(counts[i], salt + i);
    check_types();
    check_graph();
    check_reports();
}

/* -- what is told instead of a hang -- */

static ptxcu_buffer ones(void)
{
    float x[64];
    uint32_t i;
    for (i = 0; i < 64; i++) x[i] = 1;
    return upload(x, sizeof x);
}

/* The stream's work ends with a timeout, and a finding has these words. */
static void check_fault(const char *words)
{
    static char text[4000];
    size_t (*report)(char *, size_t);
    void *symbol = ptxcu_symbol(device, "ptxsim_report");
    memcpy(&report, &symbol, sizeof symbol);
    CHECK(ptxcu_stream_sync(device, stream) && ptxcu_get_error(device)->driver_result == 702);
    report(text, sizeof text);
    CHECK_MORE(strstr(text, "collective: ") && strstr(text, words), text);
}

static void have_other_sizes(void)
{
    ptxcu_buffer a;
    if (!open_rank()) return;
    a = ones();
    CHECK(ranks_sum(&group, a.address, 8, stream) == 0);
    CHECK(ranks_sum(&group, a.address, group.rank ? 16 : 32, stream) == 0);
    check_fault("ranks differ in their 3rd collective: rank 0 has ncclAllReduce of 32 ncclFloat32, ncclSum, rank 1 "
                "ncclAllReduce of 16 ncclFloat32, ncclSum");
}

static void have_other_order(void)
{
    ptxcu_buffer a;
    if (!open_rank()) return;
    a = ones();
    if (group.rank) CHECK(ranks_sum(&group, a.address, 8, stream) == 0);
    CHECK(ranks_gather(&group, a.address, a.address + 128, 8, stream) == 0);
    if (!group.rank) CHECK(ranks_sum(&group, a.address, 8, stream) == 0);
    check_fault("ranks differ in their 2nd collective: rank 0 has ncclAllGather of 8 ncclFloat32, rank 1 "
                "ncclAllReduce of 8 ncclFloat32, ncclSum");
}

static void leave_early(void)
{
    ptxcu_buffer a;
    if (!open_rank()) return;
    a = ones();
    CHECK(ranks_sum(&group, a.address, 8, stream) == 0);
    if (group.rank) return;
    CHECK(ranks_sum(&group, a.address, 8, stream) == 0);
    check_fault("rank 0 waits in its 3rd collective (ncclAllReduce of 8 ncclFloat32, ncclSum) for rank 1, which has "
                "left after 2 of its own");
}

static void be_killed(void)
{
    ptxcu_buffer a;
    if (!open_rank()) return;
    a = ones();
    if (group.rank) raise(SIGKILL);
    CHECK(ranks_sum(&group, a.address, 8, stream) == 0);
    check_fault("for rank 1, which has ended after 1 of its own");
}

static void come_never(void)
{
    ptxcu_buffer a;
    if (!open_rank()) return;
    a = ones();
    if (!group.rank) {
        CHECK(ranks_sum(&group, a.address, 8, stream) == 0);
        check_fault("for rank 1, which has not come after 1 of its own in the time given (NCCLSIM_TIMEOUT)");
    }
    group.failed = 0;
    CHECK(ranks_agree(&group, NULL) == 0);
}

/* Memory that was never written, and a kernel's work in another stream. */
static void be_careless(void)
{
    static char text[4000];
    ptxcu_buffer a, b;
    ptxcu_stream other;
    size_t (*report)(char *, size_t);
    void *symbol;
    if (!open_rank()) return;
    symbol = ptxcu_symbol(device, "ptxsim_report");
    memcpy(&report, &symbol, sizeof symbol);
    a = ones();
    fine(ptxcu_alloc(device, 256, &b));
    fine(ptxcu_stream_create(device, &other));
    CHECK(ranks_sum(&group, b.address, 64, stream) == 0);
    fine(ptxcu_stream_sync(device, stream));
    report(text, sizeof text);
    CHECK_MORE(strstr(text, "uninitialised-read"), text);
    CHECK(ranks_sum(&group, a.address, 64, stream) == 0);
    fine(ptxcu_fill32(device, a, 0, 0, 64, other)); /* nothing orders it */
    fine(ptxcu_sync(device));
    report(text, sizeof text);
    CHECK_MORE(strstr(text, "stream-race"), text);
    fine(ptxcu_stream_destroy(device, other));
}

int main(int argc, char **argv)
{
    if (start_ranks(argc, argv)) {
        test_environment();
        test_meeting();
        test_nccl_itself();
        run_ranks(4, talk);
        run_ranks_but(3, 1, end_before_others);
        run_ranks(2, lack_nccl);
        run_ranks(2, take_another_library);
        run_ranks(4, compute);
        run_ranks(2, have_other_sizes);
        run_ranks(2, have_other_order);
        run_ranks(2, leave_early);
        run_ranks_but(2, 1, be_killed);
        setenv("NCCLSIM_TIMEOUT", "1", 1);
        run_ranks(2, come_never);
        run_ranks(2, be_careless);
    }
    return check_end();
}
