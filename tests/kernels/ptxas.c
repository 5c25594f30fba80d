/* ptxas.c - every example of every operation assembles for every target, without spills, where ptxas is
 * on the PATH. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"
#include "../../examples/operation_examples.h"
#include "../check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int every_example_assembles_without_spills(void)
{
    static const ptx_target targets[] = {PTX_SM(75),  PTX_SM(80),  PTX_SM(86),   PTX_SM(89),    PTX_SM(90),
                                         PTX_SM(100), PTX_SM(120), PTX_SM_A(90), PTX_SM_A(100), PTX_SM_A(103)};
    const char *folder = getenv("TMPDIR");
    char path[256], command[600], line[400];
    unsigned t;
    uint32_t i, v;
    if (system("ptxas --version > /dev/null 2>&1")) {
        printf("SKIP every_example_assembles_without_spills: no ptxas on the PATH\n");
        return 0;
    }
    (void)snprintf(path, sizeof path, "%s/ptxgen_XXXXXX", folder ? folder : "/tmp");
    {
        int file = mkstemp(path);
        if (!CHECK(file >= 0)) return 0;
        (void)fclose(fdopen(file, "w"));
    }
    for (t = 0; t < sizeof targets / sizeof *targets; t++) {
        ptx_module_desc module_desc;
        ptx_module *m;
        const char *text, *label;
        FILE *file;
        unsigned kernels = 0, most = 0, registers, stores, loads;
        int status;
        const unsigned chip = targets[t] & 0xfffu;
        const char *own = targets[t] == PTX_SM(chip) ? "" : "a"; /* with the features of this chip alone */
        memset(&module_desc, 0, sizeof module_desc);
        module_desc.target = targets[t];
        module_desc.dependent_launch = targets[t] == PTX_SM_A(90) || chip > 90;
        m = ptx_module_new(&module_desc);
        for (i = 0; i < ptxk_operation_count(); i++) {
            unsigned char desc[256];
            for (v = 0; operation_example(i, v, desc, sizeof desc, &label); v++)
                CHECK_MORE(ptxk_operation_get(i)->emit(m, PTX__AT, desc) == PTX_E_NONE, label);
        }
        text = ptx_text(m, NULL);
        if (!CHECK_MORE(text != NULL, ptx_get_error(m)->message)) {
            ptx_module_free(m);
            continue;
        }
        file = fopen(path, "w");
        if (CHECK(file != NULL)) {
            CHECK(fputs(text, file) >= 0);
            (void)fclose(file);
        }
        ptx_module_free(m);
        (void)snprintf(command, sizeof command, "ptxas -v -arch=sm_%u%s '%s' -o '%s.cubin' 2>&1", chip,
                       own, path, path);
        file = popen(command, "r");
        if (!CHECK(file != NULL)) continue;
        while (fgets(line, sizeof line, file)) {
            const char *at = strstr(line, "Used "), *spill = strstr(line, "bytes stack frame, ");
            if (strstr(line, "error") || strstr(line, "fatal")) CHECK_MORE(0, line);
            if (strstr(line, "Compiling entry")) kernels++;
            if (at && sscanf(at, "Used %u registers", &registers) == 1 && registers > most) most = registers;
            if (spill
                && sscanf(spill, "bytes stack frame, %u bytes spill stores, %u bytes spill loads", &stores,
                          &loads)
                       == 2)
                CHECK_MORE(!stores && !loads, line);
        }
        status = pclose(file);
        CHECK(status == 0);
        printf("note: ptxas sm_%u%s: %u kernels, at most %u registers\n", chip, own, kernels, most);
        (void)snprintf(command, sizeof command, "%s.cubin", path);
        (void)remove(command);
    }
    (void)remove(path);
    return 1;
}

int main(void)
{
    every_example_assembles_without_spills();
    return check_end();
}
