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
               {PTXK_F16, REF_BLOCK_F16, "f16"},    {PTXK_BF16, REF_BLOCK_BF16, "bf16"}};
#define FORMATS (sizeof formats / sizeof *formats)

static int type_of(uint32_t format)
{
    size_t i;
    for (i = 0; i < FORMATS; i++)
        if (formats[i].format == format) return formats[i].type;
    return -1;
}

#endif
