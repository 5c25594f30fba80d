/* gguf.c - a fuzz target: any bytes as a GGUF file. Whatever the reader accepts must lie in the file; a model
 * that it accepts must have all its tensors; a tokeniser that it accepts must take any text and give back its
 * bytes' number at least. */
#define _POSIX_C_SOURCE 200809L
#define PTXGEN_IMPLEMENTATION
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../../examples/llama.h"
#include "../../examples/tokeniser.h"
#include "../../examples/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
enum { LONG = 1 << 30 };

static void use_chat(const chat_template *chat, const tokeniser *t)
{
    chat_text c;
    gguf_text token = chat_missing(chat, t);
    if (token.bytes && tokeniser_find(t, token) != TOKEN_NONE) abort();
    memset(&c, 0, sizeof c);
    c.words = t;
    chat_ask(&c, chat, 1, "be brief", "hello");
    chat_frame(&c, chat->reply_end);
    chat_ask(&c, chat, 0, "", "again");
    if (c.bytes > c.room) abort();
    chat_free(&c);
}

static void use_tokeniser(const tokeniser *t, const char *text, size_t bytes)
{
    uint32_t *tokens = (uint32_t *)malloc(sizeof(uint32_t) * tokeniser_room(bytes));
    char *marks = (char *)malloc(bytes + 1), piece[64];
    size_t n, i;
    int marked;
    for (marked = 0; tokens && marks && marked < 2; marked++) {
        memset(marks, 1, bytes + 1);
        n = tokeniser_encode_marked(t, text, bytes, marked ? marks : NULL, tokens);
        if (n > tokeniser_room(bytes)) abort();
        for (i = 0; i < n; i++) {
            if (tokens[i] >= t->count) abort();
            if (tokeniser_piece(t, tokens[i], i == 0, piece, sizeof piece) > sizeof piece) abort();
        }
    }
    free(marks);
    free(tokens);
}

/* A refusal says why, and where in the file. */
static int told(const gguf_error *why, size_t bytes)
{
    return why->text[0] && (why->offset <= bytes || why->offset == GGUF_NOWHERE);
}

/* Whether a part of a tensor, a matrix or a vector, passes its end. */
static int outside(const llama_tensor *t)
{
    if (!llama_is_vector(t)) return t->first + (uint64_t)t->rows > t->from->size[1];
    return t->first + (uint64_t)t->columns > t->from->size[0];
}

/* The parts that a rank has of a model: inside its tensors, on the borders of blocks, but for rows of logits, which
 * are as many in each rank. */
static void use_rank(const gguf *g, size_t bytes, uint32_t rank, uint32_t ranks, uint32_t kv_type)
{
    ranks_group group;
    llama m;
    llama_options o;
    gguf_error why;
    size_t i;
    memset(&group, 0, sizeof group);
    memset(&o, 0, sizeof o);
    group.rank = rank;
    group.count = ranks;
    o.ranks = &group;
    o.batch = 1;
    o.kv_type = kv_type;
    if (llama_prepare(&m, g, &o, &why)) {
        if (!told(&why, bytes)) abort();
        return;
    }
    for (i = 0; i < LLAMA_MODEL_TENSORS + (size_t)m.config.layers * LLAMA_TENSORS_OF_A_LAYER; i++) {
        const llama_tensor *t = &m.tensor[i];
        uint64_t values = 1, block;
        if (!t->from || t->is_divided) continue;
        gguf_block(t->from->format, &values, &block);
        if (t->columns % values || t->column % values) abort();
        if ((uint64_t)t->matrix + t->matrices > t->from->size[2] * t->from->size[3]) abort();
        if (!llama_is_vector(t) && (uint64_t)t->column + t->columns > t->from->size[0]) abort();
        if (i != LLAMA_EMBEDDING && i != LLAMA_OUTPUT && i != LLAMA_OUTPUT_BIAS && outside(t)) abort();
    }
    free(m.tensor);
}

static void use_model(const gguf *g, size_t bytes)
{
    llama_config c;
    llama_tensor *all = NULL;
    gguf_error why;
    size_t i;
    if (!llama_read(&c, g, &why)) all = llama_find_tensors(&c, g, &why);
    if (!all) {
        if (!told(&why, bytes)) abort();
        return;
    }
    if (!c.head_dim || !c.kv_heads || c.heads % c.kv_heads || c.rope_dims > c.head_dim) abort();
    for (i = 0; i < LLAMA_MODEL_TENSORS + (size_t)c.layers * LLAMA_TENSORS_OF_A_LAYER; i++)
        if (all[i].from
            && (all[i].from->bytes > bytes || all[i].columns > all[i].from->size[0]
                || all[i].rows > all[i].from->size[1] || (all[i].is_part && outside(&all[i]))))
            abort();
    free(all);
    for (i = 0; i < 2; i++) { /* of four ranks, and of as many as the file chooses */
        uint32_t ranks = i ? 2 + c.vocab % (RANKS_MAX - 1) : 4;
        use_rank(g, bytes, c.hidden / 8 % ranks, ranks, i ? (uint32_t)PTXK_Q8_0 : (uint32_t)PTX_E4M3);
    }
}

static void use_words(const gguf *g, const uint8_t *data, size_t bytes, size_t file)
{
    gguf_error why;
    tokeniser t;
    const chat_template *chat = chat_recognise(g, &why);
    if (!chat && !told(&why, file)) abort();
    if (tokeniser_read(&t, g, &why)) return;
    use_tokeniser(&t, (const char *)data, bytes < 2000 ? bytes : 2000);
    use_tokeniser(&t, "hello, hello 12", 15);
    if (chat) use_chat(chat, &t);
    tokeniser_free(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    gguf g;
    gguf_error why;
    size_t i, sum = 0;
    int result = gguf_parse(&g, data, bytes, bytes + LONG, &why); /* the head of a long file */
    if (result == 0) {
        use_model(&g, bytes + LONG);
        use_words(&g, data, bytes, bytes + LONG);
        gguf_free(&g);
    }
    result = gguf_parse(&g, data, bytes / 2, bytes, &why);
    if (result == 0) gguf_free(&g);
    result = gguf_parse(&g, data, bytes, bytes, &why);
    if (result == 2 || (result == 1 && !told(&why, bytes))) abort();
    if (result) return 0;
    for (i = 0; i < g.tensors; i++) {
        const gguf_tensor *tensor = &g.tensor[i];
        if (tensor->offset > bytes || tensor->bytes > bytes - tensor->offset) abort();
        sum += tensor->bytes ? data[tensor->offset] + data[tensor->offset + tensor->bytes - 1] : 0;
    }
    if (sum > 600 * g.tensors) abort();
    use_model(&g, bytes);
    gguf_free(&g);
    return 0;
}
