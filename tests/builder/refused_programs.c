/* refused_programs.c - programs that the builder refuses, each beside one that it takes: fragments of
 * matrices, operands of one instruction, directives, versions, addresses, asynchronous order, handles. Needs no
 * driver. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen.h"
#include "../fault_words.h"

/* Operands of matrix products: immediates where registers are needed, scales and selectors out of range. */
static void fragments(void) {
    ptx_val f = ptx_f32(0), v[20], o[8];
    ptx_var total[4];
    int c, which;
    PAIR(AMPERE, "!type") {
        v[0] = v[1] = ptx_as(n, PTX_B32), v[2] = bad ? I(0) : v[0];
        for (c = 3; c < 7; c++) v[c] = f;
        ptx_opn(k, PTX_MMA_M16N8K8_F32, 0, PTX_F16, PTX_NONE, 7, v, 4, o);
    }
    PAIR(AMPERE, "!type") { /* the metadata */
        for (c = 0; c < 4; c++) v[c] = ptx_as(n, PTX_B32), v[4 + c] = f;
        v[8] = bad ? I(5) : v[0], v[9] = I(0);
        ptx_opn(k, PTX_MMA_SP_M16N8K16_F32, 0, PTX_F16, PTX_NONE, 10, v, 4, o);
    }
    for (which = 0; which < 3; which++) PAIR(PTX_SM_A(120), "!range") {
            for (c = 0; c < 16; c++) v[c] = c > 5 && c < 10 ? f : ptx_as(n, PTX_B32);
            v[11] = I(bad && which == 0 ? 1 : 2), v[12] = I(bad && which == 1 ? 2 : 1);
            v[14] = I(0), v[15] = I(bad && which == 2 ? 4 : 3);
            ptx_opn(k, PTX_MMA_MXF4, 0, PTX_NONE, PTX_NONE, 16, v, 4, o);
        }
    PAIR(PTX_SM_A(120), "!range") { /* all four threads give metadata: the selector is 0 */
        for (c = 0; c < 20; c++) v[c] = c > 7 && c < 12 ? f : ptx_as(n, PTX_B32);
        v[13] = I(bad), v[15] = v[16] = v[18] = v[19] = I(0);
        ptx_opn(k, PTX_MMA_SPO_MXF4NVF4_4X, 0, PTX_NONE, PTX_NONE, 20, v, 4, o);
    }
    for (which = 0; which < 2; which++)
        PAIR(HOPPER, which ? "!type" : "!range") { /* a selector of 2; integer accumulators */
            for (c = 0; c < 4; c++) total[c] = ptx_var_new(k, bad && which ? U(0) : f);
            v[0] = v[1] = ptx_mov(k, ptx_u64(0)), v[2] = ptx_as(n, PTX_B32), v[3] = I(bad && !which ? 2 : 1);
            v[4] = NE(n, zero), v[5] = v[6] = I(1), v[7] = v[8] = I(0);
            ptx_op0(k, PTX_WGMMA_FENCE, 0);
            ptx_wgmma(k, PTX_WGMMA_SP_F32, 0, PTX_F16, PTX_NONE, 4, total, 9, v);
            ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0);
            ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, I(0));
            for (c = 0; c < 4; c++) out(ptx_as(GET(total[c]), PTX_U32));
        }
}

/* Operands whose type, width or size this instruction alone does not take. */
static void slots(void) {
    ptx_val wide_, v[6];
    int which;
    PAIR(AMPERE, "!type") ptx_op2(k, PTX_REDUX_AND, 0, bad ? ptx_f32(1) : U(1), FULL);
    PAIR(AMPERE, "!type") ptx_st(k, PTX_B8, ptx_at(p, 0), bad ? ptx_f32(1) : I(1));
    PAIR(AMPERE, "!type") {
        v[0] = ptx_param(k, "surface", PTX_U64), v[1] = n, v[2] = bad ? ptx_f32(1) : n;
        ptx_opn(k, PTX_SUST_1D, 0, PTX_B8, PTX_NONE, 3, v, 0, NULL);
    }
    for (which = 0; which < 2; which++) /* a vector of 32 bytes */
        PAIR(AMPERE, "!vector") {
            v[0] = ptx_param(k, "surface", PTX_U64), v[1] = n;
            if (which)
                ptx_opn(k, PTX_SULD_1D, 0, PTX_B64, PTX_NONE, 2, v, bad ? 4 : 2, v + 2);
            else
                ptx_opn(k, PTX_LDU, 0, PTX_U64, PTX_NONE, 1, &p, bad ? 4 : 2, v + 2);
        }
    for (which = 0; which < 2; which++) PAIR(PTX_SM(100), "!range")
    ptx_op3(k, PTX_ST_BULK, 0, sh, ptx_u64(bad ? (which ? 16777224 : 12) : 16), I(0));
    PAIR(PTX_SM_A(100), "!type") {
        init_mbarriers(1, 1);
        IF(one);
        ptx_op2(k, PTX_TCGEN05_COMMIT_MULTICAST, 0, bar, bad ? I(3) : ptx_mov(k, ptx_u16(3)));
        END;
        wait_parity(bar, U(0));
    }
    PAIR(HOPPER, "!range") ptx_op2(k, PTX_BULK_PREFETCH, 0, p, I(bad ? 1 << 20 : (1 << 20) - 16));
    for (which = 31; which < 34; which++) /* the clamp operand, behind a right shuffle */
        PAIR(AMPERE, "!range") {
            x = ptx_shfl_bfly(k, tid, I(1), I(31), FULL);
            out(ptx_shfl_bfly(k, x, I(2), I(bad ? which == 31 ? 255 : which : 31), FULL));
        }
    for (which = 0; which < 2; which++) /* a stride of 8 bytes; a tile at a multiple of 8 */
        PAIR(AMPERE, which ? "!align" : "!range") {
            ptx_val frag[8], from[2];
            ST(AT(sh, tid), 0, tid), BAR;
            from[0] = ptx_off(sh, bad && which ? 8 : 32), from[1] = I(bad && !which ? 4 : 24);
            ptx_opn(k, PTX_WMMA_LOAD_A_M16N16K16, 0, PTX_F16, PTX_NONE, 2, from, 8, frag);
        }
    PAIR(HOPPER, "!range") ptx_op2(k, PTX_TENSORMAP_REPLACE_RANK, 0, sh, I(bad ? 5 : 4));
    for (which = 0; which < 3; which++) /* behind a right one of the same kind */
        PAIR(HOPPER, which ? "!target" : "!range") {
            static const ptx_op_id op[] = {PTX_TENSORMAP_REPLACE_RANK, PTX_TENSORMAP_REPLACE_ELEMTYPE,
                                           PTX_TENSORMAP_REPLACE_SWIZZLE};
            static const int most[] = {4, 12, 3};
            ptx_op2(k, op[which], 0, sh, I(most[which])), ptx_op2(k, op[which], 0, sh, I(1));
            ptx_op2(k, op[which], 0, sh, I(most[which] + bad));
        }
    PAIR(HOPPER, "!align") ptx_op2(k, PTX_TENSORMAP_REPLACE_RANK, 0, ptx_off(sh, bad ? 64 : 128), I(1));
    PAIR(AMPERE, "!range") ptx_op1(k, PTX_PREFETCH_L2, 0, ptx_off(p, bad ? (int64_t)1 << 33 : 64));
    for (which = 1; which < 3; which++) /* immediates among the registers of a matrix */
        PAIR(AMPERE, "!type") {
            ptx_val part[10], sum[4];
            int c;
            for (c = 0; c < 10; c++)
                part[c] = c < 6 ? c < which || (bad && c < 4) ? ptx_b32(0) : ptx_as(ptx_mov(k, n), PTX_B32)
                                : ptx_f32(0);
            ptx_opn(k, PTX_MMA_M16N8K16_F32, 0, PTX_F16, PTX_NONE, 10, part, 4, sum);
            out(ptx_as(sum[0], PTX_U32));
        }
    PAIR(AMPERE, "!range") ptx_nanosleep(k, I(bad ? -1 : 1000000));
    PAIR(AMPERE, "!type") {
        x = ptx_op0(k, PTX_CREATEPOLICY, PTX_L2_EVICT_LAST);
        out(ptx_ld(k, PTX_U32, ptx_cached(ptx_at(q, 0), bad ? p : x)));
    }
    PAIR(AMPERE, "!type") {
        wide_ = ptx_mov(k, ptx_f32(1));
        x = ptx_selp(k, bad ? wide_ : ptx_as(wide_, PTX_U32), n, NE(n, zero));
        out(ptx_as(x, PTX_U32));
    }
    PAIR(AMPERE, "!type") out(ptx_op3(k, PTX_SLCT, 0, bad ? ptx_f32(1) : U(1), n, ptx_as(tid, PTX_S32)));
    PAIR(AMPERE, "!address") {
        x = ptx_cvta(k, bad ? n : q);
        out(LD(x, 0));
    }
    PAIR(AMPERE, "!address") out(LD(ADD(q, bad ? ADD(p, I(16)) : ptx_u64(16)), 0));
    PAIR(AMPERE, "!address") { /* and with -128 keeps an address, and with 127 gives an offset */
        ST(AT(sh, tid), 0, tid), BAR;
        x = ptx_and(k, wide, I(112)), at = ptx_and(k, wide, I(bad ? -128 : 127));
        out(LD(ADD(sh, at), 0)), out(x);
    }
    PAIR(AMPERE, "!address") out(ADD(sh, bad ? mine : ptx_ptr(mine, PTX_GENERIC)));
    PAIR(PTX_SM_A(100), "!type") {
        x = ptx_op2(k, bad ? PTX_REDUX_AND : PTX_REDUX_MIN, 0, ptx_f32(2), FULL);
        out(ptx_as(x, PTX_U32));
    }
    PAIR(HOPPER, "!range") {
        CLUSTER(2);
        init_mbarriers(1, 1);
        cluster_sync();
        v[0] = sh, v[1] = q, v[2] = I(1024), v[3] = bar, v[4] = I(bad ? 0 : 3);
        IF(one);
        ptx_mbarrier_arrive_expect(k, bar, I(1024));
        ptx_opn(k, PTX_BULK_G2S, PTX_MULTICAST, PTX_NONE, PTX_NONE, 5, v, 0, NULL);
        END;
        wait_parity(bar, U(0));
        out(LD(mine, 0));
        cluster_sync();
    }
}

/* Directives given twice, or with more blocks than a multiprocessor takes; an initialiser that points behind
 * its variable. */
static void directives(void) {
    static const struct { unsigned sm, blocks; } most[] = {{75, 16}, {86, 16}, {88, 16}, {89, 24}, {120, 24}};
    ptx_variable_desc desc;
    ptx_symbol to, in;
    unsigned c;
    for (c = 0; c < 5; c++)
        PAIR(PTX_SM(most[c].sm), "!launch-limit") ptx_launch_bounds(k, 32, most[c].blocks + (unsigned)bad);
    PAIR(AMPERE, "!launch-limit") ptx_launch_bounds(k, 128, 2), ptx_launch_bounds(k, bad ? 256 : 128, 2);
    PAIR(AMPERE, "!launch-limit") BLOCK(128), BLOCK(bad ? 64 : 128);
    PAIR(AMPERE, "!argument") {
        memset(&desc, 0, sizeof desc);
        desc.name = "to", desc.space = PTX_GLOBAL, desc.type = PTX_U64, desc.count = 4;
        to = ptx_variable(m, &desc);
        desc.name = "in";
        in = ptx_variable(m, &desc);
        ptx_point(m, in, 0, to, bad ? 33 : 32);
    }
}

/* What ptxas refuses, or crashes on. */
static void assembler(void) {
    ptx_val v[10], o[2];
    ptx_kernel *other;
    int c;
    for (c = 0; c < 2; c++) PAIR(HOPPER, "!type") {
            x = ptx_op0(k, PTX_CREATEPOLICY, PTX_L2_EVICT_LAST);
            v[0] = v[1] = x;
            x = ptx_pack(k, PTX_B128, 2, v);
            x = ptx_atom_cas(k, ptx_at(p, 0), bad && c ? I(0) : x, bad && !c ? I(0) : x);
            ptx_st(k, PTX_B128, ptx_at(q, 0), x);
        }
    for (c = 0; c < 2; c++) PAIR(PTX_SM_A(103), "!type") {
            int j;
            for (j = 0; j < 8; j++) v[j] = ptx_as(ptx_mov(k, n), PTX_B32);
            if (bad) v[6 + c] = I(0);
            ptx_opn(k, PTX_MMA_M16N8K32_F16, 0, PTX_E4M3, PTX_E4M3, 8, v, 2, o);
            out(ptx_as(o[0], PTX_U32));
        }
    PAIR(PTX_SM_F(103), "!target")
    ptx_op2(k, PTX_TENSORMAP_REPLACE_SWIZZLE, 0, sh, I(bad ? 4 : 3));
    for (c = 0; c < 2; c++) PAIR(PTX_SM(100), "!modifier") {
            ptx_mem mem = ptx_with(ptx_at(p, 0), PTX_MMIO | PTX_RELAXED | PTX_SYS);
            if (bad) mem = ptx_with(mem, c ? PTX_L2_128B : PTX_L1_NO_ALLOCATE);
            out(ptx_ld(k, PTX_U32, mem));
        }
    PAIR(PTX_SM(100), "!modifier")
    ptx_ld_vec(k, PTX_U32, bad ? 2 : 1, ptx_with(ptx_at(p, 0), PTX_MMIO | PTX_RELAXED | PTX_SYS), v);
    for (c = 0; c < 3; c++) { /* pragmas that are newer than max_version */
        static const char *const pragmas[] = {"used_bytes_mask 0xff", "enable_smem_spilling", "frequency 4"};
        static const unsigned since[] = {83, 87, 90};
        int late;
        for (late = 0; late < 2; late++) {
            ptx_module_desc desc;
            memset(&desc, 0, sizeof desc);
            desc.target = AMPERE, desc.max_version = since[c] - (late ? 0 : since[c] == 90 ? 3 : 1);
            m = ptx_module_new(&desc), k = ptx_entry(m, "k");
            ptx_pragma(k, pragmas[c]);
            end_build(__FILE__, __LINE__, late ? "" : "version");
        }
    }
    for (c = 0; c < 2; c++) PAIR(AMPERE, "!name-taken") { /* a later kernel takes the name of a parameter */
            other = c ? ptx_entry(m, bad ? "late" : "later") : NULL;
            ptx_param(k, "late", PTX_U32);
            if (!c) other = ptx_entry(m, bad ? "late" : "later");
            ptx_ret(other);
        }
    PAIR(AMPERE, "!argument") out(LD(ptx_ptr_add(k, p, n, bad ? ptx_type_bytes(PTX_PRED) : 4), 0));
}

/* Offsets out of range, an address as an index, halves of another type. */
static void addresses(void) {
    PAIR(AMPERE, "!address") ST(ptx_shared_dynamic(k), bad ? 232448 : 232444, n);
    PAIR(AMPERE, "!address") out(LD(AT(q, bad ? mine : tid), 0));
    PAIR(HOPPER, "!type") {
        ptx_val part[2];
        part[0] = ptx_ld(k, PTX_F16, ptx_at(p, 0));
        part[1] = ptx_ld(k, bad ? PTX_BF16 : PTX_F16, ptx_at(p, 2));
        x = ptx_pack(k, PTX_F16X2, 2, part);
        ptx_st(k, PTX_F16X2, ptx_at(q, 0), x);
    }
    PAIR(HOPPER, "!type") {
        ptx_val part[2];
        ptx_unpack(k, bad ? PTX_BF16 : PTX_F16, 2, ptx_ld(k, PTX_F16X2, ptx_at(p, 0)), part);
        ptx_st(k, ptx_type_of(part[0]), ptx_at(q, 0), part[0]);
    }
}

/* What the verifier follows through the program: asynchronous order, convergence, loops. */
static void flow(void) {
    /* A loop whose step is 0. */
    PAIR(AMPERE, "!range") {
        i = ptx_for(k, U(0), n, U(bad ? 0 : 1));
        out(i);
        END;
    }

    /* A vote of all lanes behind an exit of some. */
    PAIR(AMPERE, "!divergent") {
        IF(GE(tid, n));
        if (bad) ptx_exit(k);
        END;
        out(ptx_as(ptx_ballot(k, EQ(n, zero), FULL), PTX_U32));
    }

    /* A product that no group is committed for. */
    PAIR(HOPPER, "!async") {
        init_sums();
        init_mbarriers(1, 1);
        IF(one);
        fetch(sh, bar);
        END;
        wait_parity(bar, U(0));
        {
            ptx_val o[7];
            o[0] = o[1] = ptx_wgmma_descriptor(k, sh, 128, 256, 128);
            o[2] = NE(n, zero), o[3] = o[4] = I(1), o[5] = o[6] = I(0);
            ptx_op0(k, PTX_WGMMA_FENCE, 0);
            ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, 4, sums, 7, o);
            if (!bad) ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0);
        }
        product_wait(0);
        store_sums();
    }

    /* Sums of a product that may still be under way. */
    PAIR(HOPPER, "!async") {
        init_sums();
        init_mbarriers(1, 1);
        IF(one);
        fetch(sh, bar);
        END;
        wait_parity(bar, U(0));
        start_product(sh);
        product_wait(bad ? 1 : 0);
        store_sums();
    }

    /* Half of the threads wait for the copies that all have started. */
    PAIR(AMPERE, "!async") {
        BLOCK(128);
        copy(0), copy_commit();
        if (bad) IF(LT(tid, U(64)));
        copy_wait(0);
        if (bad) END;
        BAR;
        out(LD(AT(sh, XOR(tid, U(64))), 0));
        copy_wait(0);
    }

    /* A barrier in a loop that some threads have left. */
    PAIR(AMPERE, "!divergent") {
        FOR(n);
        IF(EQ(LD(AT(q, tid), 0), zero));
        if (bad) ptx_break(k);
        END;
        BAR;
        END;
    }

    /* A shuffle of all lanes in a branch of some. */
    PAIR(AMPERE, "!divergent") {
        IF(LT(lane, n));
        x = ptx_as(ptx_shfl_down(k, tid, I(1), I(31), bad ? FULL : ptx_activemask(k)), PTX_U32);
        out(x);
        END;
    }

    PAIR(HOPPER, "!align")
    init_sums(), start_product(ptx_off(sh, bad ? 8 : 1024)), product_wait(0), store_sums();
    PAIR(AMPERE, "!range") ptx_op1(k, PTX_CREATEPOLICY, PTX_L2_EVICT_LAST, bad ? ptx_f32(1.5) : ptx_f32(1));
    PAIR(AMPERE, "!range") ptx_op1(k, PTX_CREATEPOLICY, PTX_L2_EVICT_LAST, bad ? ptx_f32(0) : ptx_f32(0.5));

    /* Another array may be read while a copy is on its way, the copy's own may not. */
    PAIR(AMPERE, "!async") {
        y = ptx_shared(k, "other", PTX_U32, 64, 4);
        copy(0);
        out(LD(bad ? sh : y, 0));
        ptx_cp_async_wait_all(k);
    }

    /* A variable that one thread sets makes a branch divergent. */
    PAIR(AMPERE, "!divergent") {
        a = ptx_var_new(k, U(0));
        IF(one);
        SET(a, n);
        END;
        if (!bad) SET(a, n);
        IF(LT(GET(a), U(9)));
        BAR;
        END;
    }

    /* The same from round to round. */
    PAIR(AMPERE, "!divergent") {
        if (bad) a = ptx_var_new(k, U(0));
        i = FOR(n);
        if (!bad) a = ptx_var_new(k, U(0));
        IF(LT(GET(a), U(9)));
        BAR;
        END;
        IF(one);
        SET(a, i);
        END;
        END;
    }
}

/* A load of tensor memory that nothing waits for. */
static void tensor_memory(void) {
    PAIR(PTX_SM_A(100), "!async") {
        ptx_val r[2];
        IF(EQ(warp, zero));
        ptx_op2(k, PTX_TCGEN05_ALLOC, PTX_CTA_GROUP_1, sh, I(32));
        END;
        BAR;
        at = LD(sh, 0);
        ptx_opn(k, PTX_TCGEN05_LD_32X32B, 0, PTX_NONE, PTX_NONE, 1, &at, 2, r);
        if (!bad) ptx_op0(k, PTX_TCGEN05_WAIT_LD, 0);
        out(ptx_as(r[1], PTX_U32));
        BAR;
        IF(EQ(warp, zero));
        ptx_op2(k, PTX_TCGEN05_DEALLOC, PTX_CTA_GROUP_1, at, I(32));
        END;
    }
}

/* Raw text; handles of before a reset. */
static void texts_and_handles(void) {
    static const ptx_type u32 = PTX_U32;
    ptx_kernel *g;
    PAIR(AMPERE, "!argument") {
        ptx_raw(k, bad ? "mov.u32 $2, $1;" : "mov.u32 $0, $1;", 1, &tid, 1, &u32, &x);
        out(x);
    }
    PAIR(AMPERE, "!type") {
        x = bad ? ptx_cvt(k, PTX_U64, tid) : tid;
        ST(AT(sh, x), 0, n);
    }
    PAIR(AMPERE, "!modifier") ptx_atom(k, PTX_ATOM_ADD | (bad ? PTX_ATOM_MAX : 0), ptx_at(q, 0), n);
    PAIR(AMPERE, "!modifier") {
        if (bad)
            ptx_atom(k, PTX_ATOM_CAS, ptx_at(q, 0), n);
        else
            ptx_atom_cas(k, ptx_at(q, 0), n, U(0));
    }
    PAIR(AMPERE, "!foreign") {
        g = ptx_func(m, "g", PTX_NONE);
        ptx_ret(g);
        if (bad) ptx_module_reset(m), k = ptx_entry(m, "k");
        ptx_call(k, g, 0, NULL);
    }
    PAIR(AMPERE, "!foreign") {
        g = ptx_func(m, "g", PTX_NONE);
        ptx_ret(g);
        if (bad) ptx_module_reset(m), k = ptx_entry(m, "k");
        ptx_func_address(k, g);
    }
    PAIR(AMPERE, "!foreign") {
        g = ptx_entry(m, "g");
        if (bad) ptx_module_reset(m), k = ptx_entry(m, "k");
        ptx_ret(g);
    }
    PAIR(AMPERE, "!handle") out(ADD(bad ? ptx_inv(n) : n, n)); /* the inverse of what is no predicate */
}

int main(void) {
    fragments();
    slots();
    directives();
    assembler();
    addresses();
    flow();
    tensor_memory();
    texts_and_handles();
    return check_end();
}
