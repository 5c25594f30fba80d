/* matmul_dense_sass.c - what ptxas makes of matmul's form for sm_90a: instructions beside the products, spills,
 * remarks. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include "../check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../sass.h"

/* The shortest loop with products of a warpgroup: its length, and how many it has. */
static uint32_t loop_of_products(const unsigned char *code, uint32_t count, uint32_t *products)
{
    uint32_t i, j, n, best = 0;
    for (i = 0; i < count; i++) {
        int64_t target = sass_target(code, i);
        if (sass_opcode(code, i) != SASS_BRA || target < 0 || target >= (int64_t)i) continue;
        for (j = (uint32_t)target, n = 0; j <= i; j++) n += (sass_opcode(code, j) & 0xffc) == 0x9f0;
        if (n && (!best || i - (uint32_t)target < best)) best = i - (uint32_t)target + 1, *products = n;
    }
    return best;
}

/* Without spills, without a remark about products that ptxas puts one after the other, and with few instructions
   beside them: at most 10 for 64 x 256 x 16, of a warp; 30 where each 4 products of 64 x 128 x 32 are added to sums. */
static void instructions_per_product(void)
{
    static const uint32_t descs[][7] = {/* type, out, flags, factors of A, of B, activation, entries */
                                        {PTX_BF16, PTX_BF16, PTXK_MATMUL_TRANS_B, 0, 0, 0, 2},
                                        {PTX_F16, PTX_F32, PTXK_MATMUL_TRANS_A, 2, 2, PTXK_MATMUL_GELU, 2},
                                        {PTX_S8, PTX_F16, PTXK_MATMUL_TRANS_B | PTXK_MATMUL_BIAS, 0, 2, 0, 2},
                                        {PTX_F32, PTX_F32, PTXK_MATMUL_TRANS_B, 0, 0, 0, 2},
                                        {PTX_E4M3, PTX_BF16, PTXK_MATMUL_TRANS_B, 3, 4, 0, 1}};
    static unsigned char image[1 << 20];
    uint32_t i, entry, count, loop, products = 0;
    unsigned remarks;
    if (!sass_possible("instructions_per_product")) return;
    for (i = 0; i < sizeof descs / sizeof *descs; i++) {
        ptxk_matmul_desc desc;
        ptx_module_desc module_desc;
        ptx_module *m;
        ptx_entry_info info;
        const unsigned char *code;
        memset(&module_desc, 0, sizeof module_desc);
        memset(&desc, 0, sizeof desc);
        module_desc.target = PTX_SM_A(90);
        desc.a_type = desc.b_type = descs[i][0], desc.out_type = descs[i][1], desc.flags = descs[i][2];
        desc.a_factors = descs[i][3], desc.b_factors = descs[i][4], desc.activation = descs[i][5];
        desc.precision = desc.a_type == PTX_F32;
        m = ptx_module_new(&module_desc);
        CHECK(ptxk_matmul_emit(m, &desc) == PTX_E_NONE);
        if (CHECK(ptx_text(m, NULL) != NULL)
            && sass_assemble_for("sm_90a", ptx_text(m, NULL), image, sizeof image, &remarks)) {
            CHECK(remarks == 0);
            CHECK(!ptx_entry_get(m, 2 + descs[i][6], &info));
            for (entry = 2; entry < 2 + descs[i][6]; entry++) {
                if (!CHECK(ptx_entry_get(m, entry, &info)) || !(code = sass_code(image, info.name, &count))) continue;
                loop = loop_of_products(code, count, &products);
                if (!CHECK(loop)) continue;
                printf("note: sm_90a: %s: %u instructions, %u in the loop of %u products: %.2f each\n",
                       info.name, count, loop, products, (double)loop / products);
                CHECK_MORE(loop <= (descs[i][6] == 2 ? 10u : 30u) * products, info.name);
            }
        }
        ptx_module_free(m);
    }
}

int main(void)
{
    instructions_per_product();
    return check_end();
}
