/* log - the callback of ptxcu_desc: what it is told of a device, of programs and of the cache folder. */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#include <stdlib.h>
#include <string.h>

#include "../../ptxgen.h"
#include "../../ptxgen_cuda.h"
#include "../check.h"

static char told[8000];
static unsigned messages;

static void keep(void *user, int kind, const char *message) {
    size_t used = strlen(told);
    CHECK(user == &messages);
    CHECK(message[0] && message[strlen(message) - 1] != '\n');
    if (kind != PTXCU_LOG_NOTE) return;
    snprintf(told + used, sizeof told - used, "%s\n", message);
    messages++;
}

static void load_twice(ptxcu *cu) {
    ptx_module *m = ptx_module_new(NULL);
    ptxcu_program *program;
    ptx_ret(ptx_entry(m, "first"));
    ptx_ret(ptx_entry(m, "second"));
    CHECK(ptxcu_load(cu, m, &program) == PTXCU_E_NONE);
    CHECK(ptxcu_load(cu, m, &program) == PTXCU_E_NONE);
    ptx_module_free(m);
}

int main(void) {
    ptxcu_desc desc = PTX_ZERO;
    ptxcu *cu;
    char folder[] = "/tmp/ptxgen_log_XXXXXX", command[100];
    desc.log = keep;
    desc.log_user = &messages;
    if (!CHECK(ptxcu_open(&cu, &desc) == PTXCU_E_NONE)) puts(ptxcu_get_error(cu)->message);
    CHECK(messages == 1 && strstr(told, ptxcu_device_info(cu)->name) && strstr(told, ": device 0, "));
    load_twice(cu);
    CHECK(messages == 3 && strstr(told, "\ncompiled ") && strstr(told, " bytes of PTX\n"));
    ptxcu_close(cu);

    CHECK(mkdtemp(folder) != NULL);
    desc.cache_folder = folder;
    told[0] = 0, messages = 0;
    CHECK(ptxcu_open(&cu, &desc) == PTXCU_E_NONE);
    load_twice(cu);
    CHECK(messages == 3);
    CHECK_MORE(strstr(told, "of PTX for the cache folder\n") != NULL, told);
    CHECK_MORE(strstr(told, "read machine code from /tmp/ptxgen_log_") != NULL, told);
    ptxcu_close(cu);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK(system(command) == 0);

    told[0] = 0, messages = 0;
    desc.library = "/nowhere/libcuda.so"; /* no device: nothing to tell but the folder; the error has a code */
    desc.fallback = "/nowhere/libcuda.so";
    CHECK(ptxcu_open(&cu, &desc) == PTXCU_E_LIBRARY && messages == 1);
    CHECK_MORE(strstr(told, "' does not exist: nothing is kept in it\n") != NULL, told);
    ptxcu_close(cu);
    return check_end();
}
