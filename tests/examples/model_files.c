/* model_files.c - files of each architecture (examples/models.h): a few tokens of each beside the reference, and files
 * with one thing wrong, tensor by tensor and value by value. architectures.c goes on for longer.
 *
 * GGUFTEST_KEEP names a folder: the heads of the files, with templates of chats, are written into it, to begin fuzzing
 * with, and nothing else is done. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../architecturetest.h"

/* -- files with one thing wrong -- */

/* Reads a head with these tensors and values. Returns what the reader says: NULL, or what is wrong. */
static const char *read_head(const model_shape *s, const model_line *lines, uint32_t count, model_keys *odd,
                             gguf_error *why)
{
    gguf_maker m = {0};
    llama_config c;
    llama_tensor *tensors = NULL;
    gguf g;
    uint64_t bytes = make_head_of(&m, s, lines, count, odd);
    int bad;
    make_padding(&m);
    bad = gguf_parse(&g, m.at, m.bytes, m.bytes + bytes, why);
    if (CHECK_MORE(!bad, why->text)) {
        bad = llama_read(&c, &g, why);
        if (!bad) bad = !(tensors = llama_find_tensors(&c, &g, why));
        if (bad) CHECK_MORE(why->offset > 24 && why->offset <= m.bytes + bytes, why->text);
        gguf_free(&g);
    }
    free(tensors);
    free(m.at);
    return bad ? why->text : NULL;
}

/* Each tensor missing, of another size and of another type; each value missing and of another type. What is
 * refused is named. */
static void check_refusals(const model_shape *s, const char *what)
{
    static const char *const optional[] = {"vocab_size",     "head_count_kv",     "key_length",      "value_length",
                                           "freq_base",      "scaling.type",      "scaling.factor",  "dimension_count",
                                           "softcapping",    "sliding_window",    "logit_scale",     "embedding_scale",
                                           "residual_scale", "attention.scale",   "yarn_beta_fast",  "yarn_beta_slow",
                                           "attn_factor",    "original_context_length", "llama.expert_count",
                                           "q_lora_rank",    "leading_dense",     "shared_count",    "weights_scale",
                                           "weights_norm",   "gating_func",       "group_count"};
    gguf_error why;
    model_keys odd;
    uint32_t count, i, j, n, values;
    const char *said;
    model_line *lines = model_lines(s, &count), kept;
    memset(&odd, 0, sizeof odd);
    said = read_head(s, lines, count, &odd, &why);
    CHECK_MORE(!said, said ? said : what);
    values = odd.count;
    for (i = 0; i < count; i++)
        for (n = 0; n < 3; n++) {
            kept = lines[i];
            if (n == 0) lines[i].name[strlen(kept.name) - 1] ^= 1;
            if (n == 1 && kept.rows) lines[i].rows += i > 0 ? 1 : 1u << 25; /* else: another vocabulary */
            if (n == 1 && !kept.rows) lines[i].columns++;
            if (n == 2) lines[i].format = GGUF_FORMAT_I8;
            said = read_head(s, lines, count, &odd, &why);
            CHECK_MORE(said
                           && (strstr(said, kept.name) || (n == 0 && strstr(said, lines[i].name))
                               || (n == 0 && strstr(kept.name, "attn_qkv") && strstr(said, "attn_q.weight"))),
                       said ? said : kept.name);
            /* of what is missing nothing else is wrong: unless the file may do without */
            if (n == 0 && said && !strstr(kept.name, "bias") && strcmp(kept.name, "output.weight")
                && strcmp(kept.name, "rope_freqs.weight") && !strstr(kept.name, "attn_qkv"))
                CHECK_MORE(strstr(said, "there is no tensor"), said);
            lines[i] = kept;
        }
    for (i = 3; i <= values; i++)
        for (odd.renamed = 0; odd.renamed < 2; odd.renamed++) {
            int may = 0;
            odd.odd = i;
            said = read_head(s, lines, count, &odd, &why);
            for (j = 0; j < sizeof optional / sizeof *optional; j++) may |= strstr(odd.odd_key, optional[j]) != NULL;
            if (odd.renamed) /* of another value where it goes without */
                CHECK_MORE(may || (said && strstr(said, odd.odd_key)), said ? said : odd.odd_key);
            else if (!strstr(odd.odd_key, "vocab_size") && !strstr(odd.odd_key, "weights_norm")) /* a bool */
                CHECK_MORE(said && strstr(said, odd.odd_key), said ? said : odd.odd_key);
        }
    free(lines);
}

/* Sizes that no product takes are refused by the tensor, with the rule of its format. */
static void check_columns(void)
{
    static const struct {
        uint32_t hidden, ffn, format;
        const char *said; /* NULL: it is taken */
    } cases[] = {
        {64, 96, GGUF_FORMAT_F16, NULL},
        {20, 96, GGUF_FORMAT_F16, "'token_embd.weight': rows of 20 values, must be a multiple of 8 in F16"},
        {64, 36, GGUF_FORMAT_BF16, "'blk.0.ffn_down.weight': rows of 36 values, must be a multiple of 8 in BF16"},
        {64, 96, GGUF_FORMAT_MXFP4, "'blk.0.ffn_down.weight': rows of 96 values, must be a multiple of 64 in MXFP4"},
        {64, 96, GGUF_FORMAT_Q4_0, NULL},
        {64, 128, GGUF_FORMAT_MXFP4, NULL},
    };
    uint32_t i, count;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        model_shape s = models[0].shape;
        model_line *lines;
        model_keys odd;
        gguf_error why;
        const char *said;
        s.hidden = cases[i].hidden, s.ffn = cases[i].ffn, s.down_format = cases[i].format;
        lines = model_lines(&s, &count);
        memset(&odd, 0, sizeof odd);
        said = read_head(&s, lines, count, &odd, &why);
        CHECK_MORE(cases[i].said ? said && !strcmp(said, cases[i].said) : !said, said ? said : cases[i].said);
        free(lines);
    }
}

/* The head of a file, with a template and tokens for it in the place of the value that says that there are none. */
static void keep_head(const model_shape *s, const char *folder, uint32_t n)
{
    static const char none[] = "tokenizer.ggml.model";
    static const char *const rules[] = {"qwen2", "gpt-4o", "deepseek-v3", "deepseek-llm"};
    gguf_maker head = {0}, m = {0};
    uint32_t count, i;
    uint64_t bytes;
    size_t at = 0;
    char path[400];
    FILE *f;
    model_line *lines = make_model_head(&head, s, &count, &bytes);
    snprintf(path, sizeof path, "%s/model%02u.gguf", folder, (unsigned)n);
    f = fopen(path, "wb");
    if (!CHECK_MORE(f != NULL, path)) abort();
    while (at < head.bytes && memcmp(head.at + at, none, sizeof none - 1)) at++;
    make_bytes(&m, head.at, at - 8); /* the text's length stands before it */
    m.at[16] = (unsigned char)(m.at[16] + 5); /* values */
    make_value_text(&m, "tokenizer.chat_template", "<|start|>system<|channel|><|message|>[INST] <|im_start|> USER: ");
    make_value_text(&m, "tokenizer.ggml.pre", rules[n % 4]);
    make_array(&m, "tokenizer.ggml.tokens", GGUF_STRING, 4);
    make_text(&m, "<|start|>"), make_text(&m, "h"), make_text(&m, "e"), make_text(&m, "he");
    make_array(&m, "tokenizer.ggml.token_type", GGUF_I32, 4);
    for (i = 0; i < 4; i++) make_little(&m, i ? 1 : 3, 4);
    make_array(&m, "tokenizer.ggml.merges", GGUF_STRING, 1);
    make_text(&m, "h e");
    make_value_text(&m, none, "gpt2");
    at += sizeof none - 1 + 4 + 8 + 4; /* its type, "none" */
    make_bytes(&m, head.at + at, head.bytes - at);
    CHECK(fwrite(m.at, 1, m.bytes, f) == m.bytes);
    fclose(f);
    free(lines);
    free(head.at);
    free(m.at);
}

int main(void)
{
    static sequences s;
    uint32_t i;
    setvbuf(stdout, NULL, _IOLBF, 0);
    start_random();
    for (i = 0; i < sizeof models / sizeof *models && getenv("GGUFTEST_KEEP"); i++)
        if (models[i].shape.layers < 4) keep_head(&models[i].shape, getenv("GGUFTEST_KEEP"), i);
    if (getenv("GGUFTEST_KEEP")) return check_end();
    check_columns();
    if (!small_device() || (!device && !fine(ptxcu_open(&device, NULL)))) return 1;
    fine(ptxcu_stream_create(device, &stream));
    for (i = 0; i < sizeof models / sizeof *models; i++) {
        llama_options o;
        if (models[i].shape.layers > 20) continue;
        check_refusals(&models[i].shape, models[i].what);
        memset(&o, 0, sizeof o);
        memset(&s, 0, sizeof s);
        o.batch = s.batch = 1;
        o.prompt_tokens = 4;
        o.max_seq = 16;
        s.steps = 1;
        random_tokens(&s, 0, 6, models[i].shape.vocab);
        check_shape(&models[i].shape, &o, &s, models[i].what);
    }
    fine(ptxcu_stream_destroy(device, stream));
    ptxcu_close(device);
    return check_end();
}
