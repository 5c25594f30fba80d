/* weight_formats.h - the formats of weights that gemv and gemm take, beside those of the reference.
 *
 * Include it behind ptxgen_kernels.h and the references. */
#ifndef WEIGHT_FORMATS_H
#define WEIGHT_FORMATS_H

static const struct format {
    uint32_t format;
    int type;
    const char *name;
} formats[] = {{PTXK_Q4_K, REF_BLOCK_Q4_K, "Q4_K"}, {PTXK_Q8_0, REF_BLOCK_Q8_0, "Q8_0"},
               {PTXK_Q4_0, REF_BLOCK_Q4_0, "Q4_0"}, {PTXK_Q5_K, REF_BLOCK_Q5_K, "Q5_K"},
               {PTXK_Q6_K, REF_BLOCK_Q6_K, "Q6_K"}, {PTXK_F32, REF_BLOCK_F32, "f32"},
               {PTXK_F16, REF_BLOCK_F16, "f16"},    {PTXK_BF16, REF_BLOCK_BF16, "bf16"},
               {PTXK_Q4_1, REF_BLOCK_Q4_1, "Q4_1"}, {PTXK_Q5_0, REF_BLOCK_Q5_0, "Q5_0"},
               {PTXK_Q5_1, REF_BLOCK_Q5_1, "Q5_1"}, {PTXK_Q2_K, REF_BLOCK_Q2_K, "Q2_K"},
               {PTXK_Q3_K, REF_BLOCK_Q3_K, "Q3_K"}, {PTXK_IQ4_NL, REF_BLOCK_IQ4_NL, "IQ4_NL"},
               {PTXK_IQ4_XS, REF_BLOCK_IQ4_XS, "IQ4_XS"}, {PTXK_MXFP4, REF_BLOCK_MXFP4, "MXFP4"},
               {PTXK_NVFP4, REF_BLOCK_NVFP4, "NVFP4"}, {PTXK_IQ2_XXS, REF_BLOCK_IQ2_XXS, "IQ2_XXS"},
               {PTXK_IQ2_XS, REF_BLOCK_IQ2_XS, "IQ2_XS"}, {PTXK_IQ2_S, REF_BLOCK_IQ2_S, "IQ2_S"},
               {PTXK_IQ3_XXS, REF_BLOCK_IQ3_XXS, "IQ3_XXS"}, {PTXK_IQ3_S, REF_BLOCK_IQ3_S, "IQ3_S"},
               {PTXK_IQ1_S, REF_BLOCK_IQ1_S, "IQ1_S"}, {PTXK_IQ1_M, REF_BLOCK_IQ1_M, "IQ1_M"},
               {PTXK_TQ1_0, REF_BLOCK_TQ1_0, "TQ1_0"}, {PTXK_TQ2_0, REF_BLOCK_TQ2_0, "TQ2_0"}};
#define FORMATS (sizeof formats / sizeof *formats)
#define CODED 8u /* the first ones have code of their own, the others readers and code in common */

/* For tests that take long: g counts the first formats, and two of the others, new ones in every run. */
#define SOME_FORMATS(f, g) for (g = 0; g < CODED + 2 && (f = some_format(g)) < FORMATS; g++)
static uint32_t some_format(uint32_t g)
{
    return g < CODED ? g : CODED + random_below(FORMATS - CODED);
}

/* A finite factor as f16, `size` large; a size of 0: of any size, either sign, subnormal and 0 too. */
static void random_factor(unsigned char *at, double size)
{
    uint16_t any = (uint16_t)random_u32();
    if (size > 0) ref_put_u16(at, ref_to_f16(size * (0.5 + fabs(random_within(1)))));
    else ref_put_u16(at, (uint16_t)(any & ((any & 0x7c00) == 0x7c00 ? 0xbfff : 0xffff)));
}

/* Any bits are weights, but factors are finite: such that weights are `size` large, or with 0 any; plain
   numbers then 2^least ... 2^most. */
static void random_blocks(int type, unsigned char *at, size_t bytes, double size, int least, int most)
{
    const struct ref_layout *l = ref_layout_of(type);
    size_t i, j;
    for (i = 0; i + 4 <= bytes; i += 4) {
        uint32_t r = random_u32();
        memcpy(at + i, &r, 4);
    }
    for (i = bytes / 4 * 4; i < bytes; i++) at[i] = (unsigned char)random_u32();
    for (i = 0; i < bytes; i += l->bytes) {
        float x = (float)(size > 0 ? random_within(size * 30)
                                   : ldexp(random_within(1), (int)random_below((uint32_t)(most - least)) + least));
        switch (type) {
        case REF_BLOCK_F32: memcpy(at + i, &x, 4); break;
        case REF_BLOCK_BF16: ref_put_u16(at + i, ref_to_bf16((double)x)); break;
        case REF_BLOCK_F16:
            random_factor(at + i, size > 0 ? 30 * size : 0);
            if (size > 0 && random_below(2)) at[i + 1] |= 0x80;
            break;
        case REF_BLOCK_MXFP4: at[i] = (unsigned char)(size > 0 ? 116 + random_below(4) : 80 + random_below(80)); break;
        case REF_BLOCK_NVFP4:
            for (j = 0; j < 4; j++) at[i + j] &= size > 0 ? 0x9f : 0xff;
            break;
        case REF_BLOCK_IQ1_M: { /* four bits of the factor in every second byte */
            unsigned char d[2];
            random_factor(d, size * 32 / l->most);
            for (j = 0; j < 4; j++)
                at[i + 49 + 2 * j] = (unsigned char)((at[i + 49 + 2 * j] & 15) | (d[j / 2] >> 4 * (j & 1) & 15) << 4);
            break;
        }
        default:
            random_factor(at + i + l->factor, size * 32 / l->most);
            if (l->second >= 0) random_factor(at + i + l->second, size * 8 / l->most_low);
        }
    }
}

/* The first factor of a block, of f16, f32 or bf16, such as NaN; 0: the format can have none that is not
   finite. */
static int put_factor(int type, unsigned char *block, double value)
{
    const struct ref_layout *l = ref_layout_of(type);
    float x = (float)value;
    if (type == REF_BLOCK_F32) memcpy(block, &x, 4);
    else if (type == REF_BLOCK_BF16) ref_put_u16(block, ref_to_bf16(value));
    else if (type == REF_BLOCK_F16) ref_put_u16(block, ref_to_f16(value));
    else if (l->factor < 0) return 0;
    else ref_put_u16(block + l->factor, ref_to_f16(value));
    return 1;
}

static int type_of(uint32_t format)
{
    size_t i;
    for (i = 0; i < FORMATS; i++)
        if (formats[i].format == format) return formats[i].type;
    return -1;
}

#endif
