/* llama.h - runs a language model from a GGUF file on the device, one operation at a time. The launches of a
   token are listed once; a step queues the list, or launches a graph captured from it. models.h says which
   models are supported and what they compute.

   Include it after ptxgen_kernels.h and ptxgen_cuda.h. Functions return 0, or 1 with *why.

       llama m;
       llama_options o = {1, 512};                      // batch, positions; temperature 0: likeliest token
       llama_open(&m, cu, &g, file, &o, NULL, &why);
       llama_begin(&m, prompts, lengths, stream, &why); // tokens of each sequence
       llama_share_prefix(&m, n, stream, &why);         // where all prompts begin with the same n tokens
       llama_prompt(&m, NULL, stream, &why);            // feeds them, up to 512 at a time; chooses the next
       llama_step(&m, choose, stream, &why);            // feeds a token of each; choose 1: chooses the next
       llama_record(&m, stream, &why);                  // from now on steps are launches of a graph
       ... ptxcu_download(cu, next, m.step.tokens, ...) // tokens of the next step: the prompt's, or chosen
       llama_verify(&m, drafts, n, ...);                // feeds 2 to 8 tokens of each in one step, see below;
                                                        // llama_verify_tree: some may be alternatives
       llama_persistent_open, _launch, _end, _close     // or: one launch for all tokens, see below
       llama_close(&m);

   Tokens, positions and lengths advance in device memory: nothing on the host changes from step to step.
   Without llama_prompt, steps feed the prompts too, a token of each sequence at a time.

       step     embed -> x
       a layer  q, k, v = W norm(x) + bias; q and k are normalised and rotated; k, v are written to the
                caches; attention; x += W attention; gate, up = W norm(x); x += W (silu(gate) up)
       latents  instead of k and v, a normalised latent and rotated elements are written to the caches; q of
                each head times W_k; attention over the latents; its result times W_v of each head
       experts  instead of gate, up and W: scores = W norm(x); experts are chosen for each row, choices sorted
                by expert; grouped products with the experts' gate, up and W; x += the weighted sum
       choose   logits = W norm(x); the next token of each sequence
       advance  the next token (the prompt's, while it lasts), the next position

   An RMS norm before a product is a part of that product's launches. LayerNorm, norms after a product, norms
   of q and k, activations without a gate and the cap of logits have their own launches.

   A pass feeds a part of the prompts: embed and the layers for many rows of x, attention by flash_prefill.
   choose and advance follow once, after the last pass. */
#ifndef EXAMPLES_LLAMA_H
#define EXAMPLES_LLAMA_H

#include "models.h"
#include "ranks.h"

#define LLAMA_ADVANCE_WORDS 8
#define LLAMA_CAP_WORDS 2
#define LLAMA_JOIN_WORDS 6

/* An operation with plan and arguments; or a collective of the ranks: a sum in place (to 0), or a gather. */
typedef struct llama_launch {
    ptxcu_program *program; /* NULL: a collective of the ranks */
    ptx_plan plan;
    union {
        ptxk_embed_args embed;
        ptxk_gemm_args gemm;
        ptxk_norm_args norm;
        ptxk_rope_args rope;
        ptxk_kv_scatter_args scatter;
        ptxk_flash_decode_args attention;
        ptxk_flash_prefill_args prefill;
        ptxk_flash_mla_args latent;
        ptxk_activation_args activation;
        ptxk_sample_args sample;
        ptxk_route_args route;
        ptxk_combine_args combine;
        uint64_t advance[LLAMA_ADVANCE_WORDS];
        uint64_t cap[LLAMA_CAP_WORDS];
        uint64_t join[LLAMA_JOIN_WORDS];
        struct {
            uint64_t from, to, count;
        } ranks;
    } args;
} llama_launch;

/* Launches in order, and the buffers that pass values between them, with a row for each token. */
typedef struct llama_list {
    llama_launch *launch;
    uint32_t count, capacity;
    uint32_t rows, row_capacity;              /* rows of this list; rows for which there is memory */
    ptxcu_buffer memory, workspace;           /* allocated; the others are parts of memory */
    uint64_t memory_used;                     /* bytes */
    uint64_t counters_bytes, workspace_bytes; /* maximum of all launches: bytes that must be 0, others */
    ptxcu_buffer x, h, q, k, v, attention, gate, up; /* f32 [rows, ...]; h: norm(x), or what a norm reads */
    ptxcu_buffer q_rounded, q_address;               /* q in the type of prompt attention; u64: its address */
    ptxcu_buffer q_latent;                           /* of latents: f32 [rows, q_latent]; */
    ptxcu_buffer q_absorbed, latent_output, values;  /* f32 [heads, rows, ...] */
    ptxcu_buffer heads_offsets, heads_rows;        /* gemm's offsets, u32 [heads + 1]; x_rows [heads, rows] */
    ptxcu_buffer heads_address;                    /* u64: address of `attention` */
    ptxcu_buffer tokens, positions, sequences;       /* u32 [rows] */
    ptxcu_buffer cache_positions;                    /* u32 [rows]: of a tree, positions in the caches */
    ptxcu_buffer lengths;                            /* u32 [batch]: of the sequences, with these rows; */
                                                     /* then [batch]: the same less m->shared */
    ptxcu_buffer prior, prior_lse;                   /* f32: attention to the shared tokens; its lse */
    ptxcu_buffer logits, chosen;                     /* f32 [rows, vocab]; u32 [rows] */
    ptxcu_buffer rank_part, gathered, whole_rows;    /* f32, of ranks: this part, all parts, whole rows */
    struct {                                         /* [0]: experts; [1]: the shared expert */
        ptxcu_buffer scores, choices, weights, offsets, rows, places, y;
    } expert[2];
} llama_list;

/* Rows of a pass that belong to one sequence: `count` rows from `row` on, positions from `position` on. */
typedef struct llama_span {
    uint32_t sequence, row, position, count;
} llama_span;

#define LLAMA_SEQUENCES 8     /* maximum number of sequences */
#define LLAMA_DRAFTS 8        /* ... of tokens of a sequence in llama_verify */
#define LLAMA_PROMPT_MAX 4096 /* ... of tokens of prompts in a pass */

typedef struct llama_options {
    uint32_t batch;    /* sequences: 1 ... 8 */
    uint32_t max_seq;  /* positions of each; 0: the model's context */
    uint32_t top_k;    /* of sampling, see ptxk_sample_args; 0: all */
    float temperature; /* 0: the likeliest token */
    float top_p;       /* 0: all */
    uint64_t seed;
    uint32_t kv_type;       /* of the caches: PTX_F16, PTX_BF16, PTX_F32, PTX_E4M3 (with a factor of 1),
                               PTXK_Q8_0; 0: PTX_F16 */
    uint32_t prompt_tokens; /* tokens of prompts that llama_prompt feeds in a pass, 1 ... 4096; 0: 512 */
    uint32_t page_size;     /* positions of a page of the caches: a power of two, 16 ... 65536; 0: no pages */
    struct ranks_group *ranks; /* an opened group, see "several ranks"; NULL: one rank */
} llama_options;

typedef struct llama {
    ptxcu *cu;
    llama_config config; /* with several ranks: heads, kv_heads and the ffns are this rank's */
    llama_options options;
    llama_tensor head;     /* the output matrix, which makes the logits: this rank's rows */
    llama_tensor *tensor;  /* the model's, then each layer's */
    uint64_t weight_bytes; /* of weights that a token reads: all matrices, of experts the chosen ones, and one
                              row of the embedding, unless it is the output matrix, too */
    llama_list step;       /* a token of each sequence; its tokens, positions and lengths are the state */
    llama_list pass;       /* a part of the prompts */
    llama_list draft;      /* several tokens of each sequence, see llama_verify_tree */
    uint32_t first_of_output; /* index of the step's first launch after the layers */
    ptx_plan plan;            /* of the launch that is being added, ... */
    ptxk_message message;     /* ... or why there is none */
    ptxcu_program *advance, *cap, *join;
    ptxcu_buffer weights, caches, memory; /* allocated; the others are parts of memory */
    ptxcu_buffer k_b;                     /* allocated: f32, see llama_make_k_b */
    gguf_tensor k_b_tensor;               /* stands for k_b as a tensor of the file */
    uint64_t memory_used;
    ptxcu_buffer prompts, prompt_lengths, ones; /* u32 [batch, max_seq], [batch], [batch] */
    ptxcu_buffer cache_table;                   /* u64 [layers, 2, batch]; q8_0: [layers, 4, batch] */
    ptxcu_buffer unshared_table;                /* the same, of the first position after the shared tokens */
    ptxcu_buffer masks;                         /* u32 [batch], all bits 1 */
    ptxcu_buffer branches;                      /* u32 [batch, LLAMA_DRAFTS], bits: drafts that one sees */
    ptxcu_buffer frequencies;         /* f64 [2, rope_dims / 2]; [1]: of layers with a window */
    ptxcu_buffer block_table;         /* u32 [batch, pages], where the caches are paged */
    uint32_t length[LLAMA_SEQUENCES]; /* of the prompts */
    uint32_t kept[LLAMA_SEQUENCES];   /* number of these tokens that are in the caches already */
    uint32_t shared;                  /* length of the common prefix that a step reads once; 0: none */
    int is_tree;                      /* the list `draft` is built for a tree */
    ptxcu_event event[2];             /* for progress */
    ptxcu_graph graph[2];             /* of a step without and with the choice of the next token */
} llama;

/* Called while weights are uploaded, and while prompts are fed. */
typedef void llama_progress(uint64_t done, uint64_t of);

static inline uint32_t llama_ranks(const llama *m) { return m->options.ranks ? m->options.ranks->count : 1; }
static inline uint32_t llama_rank(const llama *m) { return m->options.ranks ? m->options.ranks->rank : 0; }

static inline llama_tensor *llama_layer_tensor(const llama *m, uint32_t layer, enum llama_layer_name name) {
    return &m->tensor[LLAMA_MODEL_TENSORS + (size_t)layer * LLAMA_TENSORS_OF_A_LAYER + name];
}

/* -- several ranks --

   Tensor parallelism: each rank has some heads and a part of each feed-forward: the rows of the q, k, v, gate
   and up matrices that compute them, and the columns of the matrix W that multiplies them. The product with W
   is summed over the ranks, in place, once for each half of a layer; rank 0 adds x and the bias. Every rank
   has the whole embedding, all norms, and some rows of the output matrix. The logits are gathered: every rank
   chooses from the same logits, and so the same token. Ranks may share a head of k and v. */

/* This rank's share of `whole`, in whole units: returns its size; *first: where it begins. */
static inline uint32_t llama_share(const llama *m, uint32_t whole, uint32_t unit, uint32_t *first) {
    uint64_t units = whole / unit, rank = llama_rank(m), ranks = llama_ranks(m);
    *first = (uint32_t)(units * rank / ranks * unit);
    return (uint32_t)(units * (rank + 1) / ranks * unit) - *first;
}

static inline void llama_select_rows(llama_tensor *t, uint32_t first, uint32_t rows) {
    if (!t->from) return;
    t->first += first;
    if (llama_is_vector(t))
        t->columns = rows;
    else
        t->rows = rows;
}

static inline void llama_select_columns(llama_tensor *t, uint32_t first, uint32_t columns) {
    t->column = first;
    t->columns = columns;
}

/* Replaces *ffn, the inner size of the feed-forwards with last matrix `down`, by this rank's share of it. */
static inline int llama_share_ffn(const llama *m, enum llama_layer_name down, uint32_t *ffn, uint32_t *first,
                                  gguf_error *why) {
    uint32_t n, unit = 8;
    const llama_tensor *t = NULL;
    *first = 0;
    for (n = 0; n < m->config.layers; n++) {
        const llama_tensor *one = llama_layer_tensor(m, n, down);
        if (one->from && llama_column_unit(one) >= unit) t = one, unit = llama_column_unit(one);
    }
    if (!t) return 0;
    if (*ffn % unit || *ffn / unit < llama_ranks(m))
        return gguf_fail(why, t->from->offset, "%u columns of %s in %u ranks: parts are multiples of %u",
                         (unsigned)*ffn, gguf_format_name(t->from->format), (unsigned)llama_ranks(m),
                         (unsigned)unit);
    *ffn = llama_share(m, *ffn, unit, first);
    return 0;
}

/* Divides the rows of the output matrix, the same number for each rank, so that some may be beyond its end.
   If the embedding is the output matrix, each rank's rows begin at an aligned address in it. */
static inline int llama_split_head(llama *m, gguf_error *why) {
    llama_tensor *own = &m->tensor[m->tensor[LLAMA_OUTPUT].from ? LLAMA_OUTPUT : LLAMA_EMBEDDING];
    uint32_t ranks = llama_ranks(m), unit = 1, rows;
    while (unit * llama_row_bytes(own, own->columns) % 16) unit *= 2;
    rows = (m->config.vocab + ranks * unit - 1) / (ranks * unit) * unit;
    if ((uint64_t)rows * (ranks - 1) >= m->config.vocab)
        return gguf_fail(why, own->from->offset, "%u tokens in %u ranks: at least one of each",
                         (unsigned)m->config.vocab, (unsigned)ranks);
    if (own == &m->tensor[LLAMA_OUTPUT])
        llama_select_rows(own, llama_rank(m) * rows, rows);
    else
        own->rows = rows * ranks;
    llama_select_rows(&m->tensor[LLAMA_OUTPUT_BIAS], llama_rank(m) * rows, rows);
    m->head.rows = rows;
    return 0;
}

/* Reduces all tensors and sizes to this rank's part. */
static inline int llama_split_ranks(llama *m, gguf_error *why) {
    llama_config *c = &m->config;
    uint32_t ranks = llama_ranks(m), rank = llama_rank(m), d = c->head_dim, first[3], n, i;
    uint32_t q = c->heads / ranks, kv = c->kv_heads < ranks ? 1 : c->kv_heads / ranks;
    uint32_t kv_first = (uint32_t)((uint64_t)rank * c->kv_heads / ranks);
    if (ranks == 1) return 0;
    if (c->heads % ranks)
        return gguf_fail(why, GGUF_NOWHERE, "%u heads in %u ranks: no whole number for each",
                         (unsigned)c->heads, (unsigned)ranks);
    if (!c->latent && c->kv_heads % ranks
        && (ranks % c->kv_heads || c->architecture->qk_norm == LLAMA_QK_ROWS))
        return gguf_fail(why, GGUF_NOWHERE,
                         "%u heads of keys and values in %u ranks: no whole number for each",
                         (unsigned)c->kv_heads, (unsigned)ranks);
    if (llama_share_ffn(m, LLAMA_DOWN, &c->ffn, &first[0], why)
        || llama_share_ffn(m, LLAMA_DOWN_EXPERTS, &c->expert_ffn, &first[1], why)
        || llama_share_ffn(m, LLAMA_SHARED_DOWN, &c->shared_ffn, &first[2], why))
        return 1;
    for (n = 0; n < c->layers; n++)
        for (i = 0; i < LLAMA_TENSORS_OF_A_LAYER; i++) {
            llama_tensor *t = llama_layer_tensor(m, n, (enum llama_layer_name)i);
            if (!t->from || t->is_divided) continue;
            switch (i) {
            case LLAMA_Q:
            case LLAMA_Q_BIAS: llama_select_rows(t, rank * q * d, q * d); break;
            case LLAMA_Q_B: llama_select_rows(t, rank * q * d, q * d); break;
            case LLAMA_K:
            case LLAMA_V:
                if (c->latent) break; /* all heads share them */
                llama_select_rows(t, kv_first * d, kv * d);
                break;
            case LLAMA_K_BIAS:
            case LLAMA_V_BIAS: llama_select_rows(t, kv_first * d, kv * d); break;
            case LLAMA_KV_B: llama_select_rows(t, rank * (t->rows / ranks), t->rows / ranks); break;
            case LLAMA_K_B:
            case LLAMA_V_B: t->matrix = rank * q, t->matrices = q; break;
            case LLAMA_O:
                if (q * c->value_dim % llama_column_unit(t))
                    return gguf_fail(why, t->from->offset,
                                     "%u heads of %u in each of %u ranks: %s has blocks of %u columns",
                                     (unsigned)q, (unsigned)c->value_dim, (unsigned)ranks,
                                     gguf_format_name(t->from->format), (unsigned)llama_column_unit(t));
                llama_select_columns(t, rank * q * c->value_dim, q * c->value_dim);
                break;
            case LLAMA_GATE:
            case LLAMA_UP:
            case LLAMA_GATE_BIAS:
            case LLAMA_UP_BIAS: llama_select_rows(t, first[0], c->ffn); break;
            case LLAMA_GATE_EXPERTS:
            case LLAMA_UP_EXPERTS: llama_select_rows(t, first[1], c->expert_ffn); break;
            case LLAMA_SINKS: llama_select_rows(t, rank * q, q); break;
            case LLAMA_GATE_EXPERTS_BIAS:
            case LLAMA_UP_EXPERTS_BIAS: llama_select_columns(t, first[1], c->expert_ffn); break;
            case LLAMA_SHARED_GATE:
            case LLAMA_SHARED_UP: llama_select_rows(t, first[2], c->shared_ffn); break;
            case LLAMA_DOWN: llama_select_columns(t, first[0], c->ffn); break;
            case LLAMA_DOWN_EXPERTS: llama_select_columns(t, first[1], c->expert_ffn); break;
            case LLAMA_SHARED_DOWN: llama_select_columns(t, first[2], c->shared_ffn); break;
            case LLAMA_O_BIAS:
            case LLAMA_DOWN_BIAS:
            case LLAMA_DOWN_EXPERTS_BIAS:
                if (rank) t->from = NULL;
                break;
            default: break;
            }
        }
    c->heads = q;
    c->kv_heads = kv;
    return llama_split_head(m, why);
}

/* -- upload, caches, memory -- */

static inline int llama_cuda(const llama *m, ptxcu_code code, gguf_error *why) {
    return code == PTXCU_E_NONE ? 0 : gguf_fail(why, GGUF_NOWHERE, "%s", ptxcu_get_error(m->cu)->message);
}

/* Allocates a large buffer. The error message has its size, and the memory that is left. */
static inline int llama_allocate_large(llama *m, const char *what, uint64_t bytes, ptxcu_buffer *buffer,
                                       gguf_error *why) {
    size_t left = 0, all = 0;
    if (bytes <= SIZE_MAX && ptxcu_alloc(m->cu, (size_t)bytes, buffer) == PTXCU_E_NONE) return 0;
    ptxcu_memory_info(m->cu, &left, &all);
    return gguf_fail(why, GGUF_NOWHERE, "%s of %.1f GB, and the device has %.1f GB left", what,
                     1e-9 * (double)bytes, 1e-9 * (double)left);
}

static inline int llama_by_offset(const void *a, const void *b) {
    uint64_t x = (*(llama_tensor *const *)a)->from->offset, y = (*(llama_tensor *const *)b)->from->offset;
    return (x > y) - (x < y);
}

/* Multiplies f32 numbers in memory. */
static inline void llama_scale_floats(char *at, size_t bytes, double by) {
    size_t i;
    for (i = 0; i + 4 <= bytes && (by < 1 || by > 1); i += 4) {
        float x;
        memcpy(&x, at + i, 4);
        x = (float)((double)x * by);
        memcpy(at + i, &x, 4);
    }
}

/* Reads `bytes` bytes of a tensor, in the layout that it has on the device, from its byte `at` on. */
static inline int llama_read_bytes(FILE *file, const llama_tensor *t, uint64_t at, char *to, uint64_t bytes,
                                   gguf_error *why) {
    const gguf_tensor *f = t->from;
    uint64_t file_row_bytes = llama_row_bytes(t, f->size[0]), row_bytes = llama_row_bytes(t, t->columns);
    uint64_t first_byte = llama_row_bytes(t, llama_is_vector(t) ? t->first : t->column);
    uint64_t first = llama_is_vector(t) ? 0 : t->first, n;
    for (; bytes; at += n, to += n, bytes -= n) {
        uint64_t matrix = t->matrix + at / row_bytes / t->rows, row = first + at / row_bytes % t->rows,
                 within = at % row_bytes;
        uint64_t file_offset = f->offset + (matrix * f->size[1] + row) * file_row_bytes + first_byte + within;
        uint64_t rows = first + t->rows - row;           /* to this matrix's end */
        if (row >= f->size[1] || first_byte + within >= file_row_bytes) { /* beyond the file's tensor */
            n = row >= f->size[1] ? rows * row_bytes - within : row_bytes - within;
            if (n > bytes) n = bytes;
            memset(to, 0, (size_t)n);
            continue;
        }
        if (row + rows > f->size[1]) rows = f->size[1] - row;
        n = row_bytes == file_row_bytes ? rows * row_bytes - within : row_bytes - within;
        if (n > file_row_bytes - first_byte - within && row_bytes != file_row_bytes)
            n = file_row_bytes - first_byte - within;
        if (n > bytes) n = bytes;
        if (fseeko(file, (off_t)file_offset, SEEK_SET) || fread(to, 1, (size_t)n, file) != n)
            return gguf_fail(why, file_offset, "cannot be read");
    }
    return 0;
}

/* Reads the tensors in the order of the file, in pieces, and sends them to the device. */
static inline int llama_upload(llama *m, FILE *file, llama_progress *progress, gguf_error *why) {
    enum { PIECE = 1 << 22 };
    size_t all = LLAMA_MODEL_TENSORS + (size_t)m->config.layers * LLAMA_TENSORS_OF_A_LAYER, n = 0, i;
    llama_tensor **order = (llama_tensor **)malloc(all * sizeof *order);
    char *piece = (char *)malloc(PIECE);
    uint64_t total = 0, sent = 0, to = 0;
    int bad = !order || !piece ? gguf_fail(why, GGUF_NOWHERE, "no memory") : 0;
    for (i = 0; !bad && i < all; i++)
        if (m->tensor[i].from && !m->tensor[i].is_divided) {
            order[n++] = &m->tensor[i];
            total += (llama_tensor_bytes(&m->tensor[i]) + 255) & ~255ull;
        }
    if (!bad) {
        qsort(order, n, sizeof *order, llama_by_offset);
        bad = llama_allocate_large(m, "weights", total, &m->weights, why);
    }
    for (i = 0; !bad && i < n; i++) {
        uint64_t done = 0, bytes = llama_tensor_bytes(order[i]);
        order[i]->address = m->weights.address + to;
        while (!bad && done < bytes) {
            size_t part = bytes - done < PIECE ? (size_t)(bytes - done) : PIECE;
            bad = llama_read_bytes(file, order[i], done, piece, part, why);
            if (order[i] == &m->tensor[LLAMA_OUTPUT_NORM] || order[i] == &m->tensor[LLAMA_OUTPUT_NORM_BIAS]
                || order[i] == &m->tensor[LLAMA_OUTPUT_BIAS])
                llama_scale_floats(piece, part, m->config.logit_scale);
            if (!bad)
                bad = llama_cuda(m, ptxcu_upload(m->cu, m->weights, (size_t)(to + done), piece, part, NULL),
                                 why)
                      || llama_cuda(m, ptxcu_sync(m->cu), why);
            done += part;
            sent += part;
            if (progress) progress(sent, total);
        }
        to += (bytes + 255) & ~255ull;
    }
    if (progress && !bad) progress(total, total);
    free(order);
    free(piece);
    return bad;
}

/* Pages of a sequence; 0: the caches are not paged. */
static inline uint32_t llama_pages(const llama *m) {
    uint32_t size = m->options.page_size;
    return size ? m->options.max_seq / size + (m->options.max_seq % size != 0) : 0;
}

/* Whether caches have 8 bits; attention to prompts is then computed in f16. q8_0: the factors, f16, one for
   32 values, follow a layer's caches. */
static inline int llama_has_byte_caches(const llama *m) {
    return m->options.kv_type == PTX_E4M3 || m->options.kv_type == PTXK_Q8_0;
}

static inline uint32_t llama_prompt_type(const llama *m) {
    return llama_has_byte_caches(m) ? PTX_F16 : m->options.kv_type;
}

/* The number of address arrays of a layer: of K, of V, and in q8_0 of their factors. */
static inline uint32_t llama_cache_lists(const llama *m) { return m->options.kv_type == PTXK_Q8_0 ? 4 : 2; }

/* Elements of a head of K (which 0) or V (1) in the caches. Latents have no V: 0 is the latent, 1 the rotated
   elements. */
static inline uint32_t llama_cache_dim(const llama *m, uint32_t which) {
    const llama_config *c = &m->config;
    return !c->latent ? c->head_dim : which ? c->rope_dims : c->latent;
}

/* Bytes of one cache: of K or of V, of one layer and sequence. Those of a layer lie side by side, or are one
   pool of pages. */
static inline uint64_t llama_cache_bytes(const llama *m, uint32_t which) {
    uint64_t rows =
        m->options.page_size ? (uint64_t)llama_pages(m) * m->options.page_size : (uint64_t)m->options.max_seq;
    rows *= m->config.kv_heads;
    if (llama_has_byte_caches(m)) /* so that each sequence's factors are aligned */
        return (rows * llama_cache_dim(m, which) + 255) & ~255ull;
    return rows * llama_cache_dim(m, which) * (m->options.kv_type == PTX_F32 ? 4 : 2);
}

static inline uint64_t llama_layer_value_bytes(const llama *m, uint32_t which) {
    return (m->options.batch * llama_cache_bytes(m, which) + 255) & ~255ull;
}

static inline uint64_t llama_layer_cache_bytes(const llama *m, uint32_t which) {
    uint64_t factors = m->options.kv_type == PTXK_Q8_0 ? llama_layer_value_bytes(m, which) / 16 : 0;
    return llama_layer_value_bytes(m, which) + ((factors + 255) & ~255ull);
}

static inline uint64_t llama_cache_address(const llama *m, uint32_t layer, uint32_t which,
                                           uint32_t sequence) {
    uint64_t k = llama_layer_cache_bytes(m, 0);
    return m->caches.address + layer * (k + llama_layer_cache_bytes(m, 1)) + (which ? k : 0)
           + sequence * llama_cache_bytes(m, which);
}

static inline uint64_t llama_factors_address(const llama *m, uint32_t layer, uint32_t which,
                                             uint32_t sequence) {
    if (m->options.kv_type != PTXK_Q8_0) return 0;
    return llama_cache_address(m, layer, which, 0) + llama_layer_value_bytes(m, which)
           + sequence * llama_cache_bytes(m, which) / 16;
}

/* Takes the next part of memory. Before that is allocated, this only counts the bytes in *used. */
static inline ptxcu_buffer llama_take_memory(ptxcu_buffer memory, uint64_t *used, uint64_t count,
                                             uint64_t bytes) {
    ptxcu_buffer b;
    b.address = memory.address + *used;
    b.bytes = (size_t)(count * bytes);
    *used += (count * bytes + 255) & ~255ull;
    return b;
}

/* Divides a list's memory into its buffers, for row_capacity rows. A pass has no logits and no chosen
   tokens. */
static inline void llama_lay_out_list(const llama *m, llama_list *l) {
    const llama_config *c = &m->config;
    uint64_t rows = l->row_capacity, *used = &l->memory_used, heads = c->latent ? rows * c->heads : 0;
    uint64_t ffn = c->experts ? (uint64_t)c->chosen * c->expert_ffn : c->ffn;
    uint32_t i;
    int choose = l != &m->pass;
    uint64_t qk_row = c->architecture->qk_norm == LLAMA_QK_ROWS ? c->heads * c->head_dim : 0,
             rank_row = qk_row;
    if (c->shared_ffn > ffn) ffn = c->shared_ffn;
    if (c->dense_layers && c->ffn > ffn) ffn = c->ffn;
    if (choose && m->head.rows > rank_row) rank_row = m->head.rows;
    if (llama_ranks(m) == 1) rank_row = qk_row = 0;
    *used = 0;
#define LLAMA_TAKE(name, count, bytes) l->name = llama_take_memory(l->memory, used, count, bytes)
    LLAMA_TAKE(x, rows * c->hidden, 4);
    LLAMA_TAKE(h, rows * c->hidden, 4);
    LLAMA_TAKE(q, rows * c->heads * c->head_dim, 4);
    LLAMA_TAKE(k, rows * c->kv_heads * llama_cache_dim(m, 0), 4);
    LLAMA_TAKE(v, rows * c->kv_heads * llama_cache_dim(m, 1), 4);
    LLAMA_TAKE(attention, rows * c->heads * c->value_dim, 4);
    LLAMA_TAKE(q_latent, rows * c->q_latent, 4);
    LLAMA_TAKE(q_absorbed, heads * c->latent, 4);
    LLAMA_TAKE(latent_output, heads * c->latent, 4);
    LLAMA_TAKE(values, heads * c->value_dim, 4);
    LLAMA_TAKE(heads_rows, heads, 4);
    LLAMA_TAKE(heads_offsets, heads ? c->heads + 1 : 0, 4);
    LLAMA_TAKE(heads_address, heads ? 1 : 0, 8);
    LLAMA_TAKE(gate, rows * ffn, 4);
    LLAMA_TAKE(up, rows * ffn, 4);
    for (i = 0; i < 2; i++) {
        uint64_t experts = i ? c->shared_ffn != 0 : c->experts, chosen = i ? experts : c->chosen;
        LLAMA_TAKE(expert[i].scores, rows * experts, 4);
        LLAMA_TAKE(expert[i].choices, rows * chosen, 4);
        LLAMA_TAKE(expert[i].weights, rows * chosen, 4);
        LLAMA_TAKE(expert[i].offsets, experts ? experts + 1 : 0, 4);
        LLAMA_TAKE(expert[i].rows, rows * chosen, 4);
        LLAMA_TAKE(expert[i].places, rows * chosen, 4);
        LLAMA_TAKE(expert[i].y, rows * chosen * c->hidden, 4);
    }
    LLAMA_TAKE(tokens, rows, 4);
    LLAMA_TAKE(positions, rows, 4);
    LLAMA_TAKE(sequences, rows, 4);
    LLAMA_TAKE(cache_positions, rows, 4);
    LLAMA_TAKE(lengths, 2ull * m->options.batch, 4);
    LLAMA_TAKE(prior, l == &m->step && rows > 1 ? rows * c->heads * c->head_dim : 0, 4);
    LLAMA_TAKE(prior_lse, l == &m->step ? rows * c->heads : 0, 4);
    LLAMA_TAKE(chosen, choose ? rows : 0, 4);
    LLAMA_TAKE(logits, choose ? rows * c->vocab : 0, 4);
    LLAMA_TAKE(rank_part, rows * rank_row, 4);
    LLAMA_TAKE(gathered, llama_ranks(m) * rows * rank_row, 4);
    LLAMA_TAKE(whole_rows, llama_ranks(m) * rows * qk_row, 4);
    LLAMA_TAKE(q_rounded, choose ? 0 : rows * c->heads * c->head_dim, 2);
    LLAMA_TAKE(q_address, choose ? 0 : 1, 8);
}

static inline void llama_lay_out_memory(llama *m) {
    const llama_config *c = &m->config;
    uint64_t batch = m->options.batch, *used = &m->memory_used;
    *used = 0;
    m->prompts = llama_take_memory(m->memory, used, batch * m->options.max_seq, 4);
    m->prompt_lengths = llama_take_memory(m->memory, used, batch, 4);
    m->ones = llama_take_memory(m->memory, used, batch, 4);
    m->cache_table = llama_take_memory(m->memory, used, llama_cache_lists(m) * batch * c->layers, 8);
    m->unshared_table = llama_take_memory(m->memory, used, llama_cache_lists(m) * batch * c->layers, 8);
    m->masks = llama_take_memory(m->memory, used, batch, 4);
    m->branches = llama_take_memory(m->memory, used, batch * LLAMA_DRAFTS, 4);
    m->frequencies = llama_take_memory(m->memory, used, c->rope_dims, 8);
    m->block_table = llama_take_memory(m->memory, used, batch * llama_pages(m), 4);
}

/* Reads the factors that divide frequencies, to be freed; NULL: there are none, or no memory (*bad). */
static inline float *llama_rope_factors(const llama *m, FILE *file, int *bad, gguf_error *why) {
    const llama_config *c = &m->config;
    int is_long = c->original_context && m->options.max_seq > c->original_context;
    const gguf_tensor *from =
        m->tensor[c->original_context ? is_long ? LLAMA_ROPE_LONG : LLAMA_ROPE_SHORT : LLAMA_ROPE_FACTORS]
            .from;
    float *factor;
    uint32_t i;
    if (!from) return NULL;
    factor = (float *)malloc((size_t)from->bytes);
    if (!factor || fseeko(file, (off_t)from->offset, SEEK_SET)
        || fread(factor, 1, (size_t)from->bytes, file) != from->bytes)
        *bad = gguf_fail(why, from->offset, "cannot be read");
    for (i = 0; !*bad && i < c->rope_dims / 2; i++)
        if (!(factor[i] > 0 && factor[i] < 1e30f))
            *bad = gguf_fail(why, from->offset + 4 * i, "a frequency is divided by %g", (double)factor[i]);
    return factor;
}

static inline int llama_fill_tables(llama *m, FILE *file, gguf_error *why) {
    const llama_config *c = &m->config;
    uint32_t lists = llama_cache_lists(m);
    uint64_t entries = (uint64_t)lists * m->options.batch * c->layers, i;
    uint64_t *table = (uint64_t *)malloc((size_t)entries * 8);
    uint32_t pages = llama_pages(m) * m->options.batch, *block = (uint32_t *)malloc((pages + 1ull) * 4);
    uint32_t pairs = c->rope_dims / 2;
    double *frequency = (double *)malloc(((size_t)c->rope_dims + 1) * 8);
    int bad = !table || !frequency || !block ? gguf_fail(why, GGUF_NOWHERE, "no memory") : 0;
    float *factor = bad ? NULL : llama_rope_factors(m, file, &bad, why);
    for (i = 0; !bad && i < entries; i++) {
        uint32_t sequence = (uint32_t)(i % m->options.batch), row = (uint32_t)(i / m->options.batch);
        uint32_t list = row % lists, layer = row / lists;
        table[i] = list < 2 ? llama_cache_address(m, layer, list, sequence)
                            : llama_factors_address(m, layer, list - 2, sequence);
    }
    for (i = 0; !bad && i < pages; i++) /* pages of sequences alternate, as if allocated when needed */
        block[i] = (uint32_t)(i % llama_pages(m) * m->options.batch + i / llama_pages(m));
    for (i = 0; !bad && i < pairs; i++) {
        double by = factor ? (double)factor[i] : 1;
        frequency[i] = llama_frequency(c, (uint32_t)i, by, 0);
        frequency[pairs + i] = llama_frequency(c, (uint32_t)i, by, c->local_theta > 0);
    }
    bad = bad || llama_cuda(m, ptxcu_upload(m->cu, m->cache_table, 0, table, (size_t)entries * 8, NULL), why)
          || llama_cuda(m, ptxcu_upload(m->cu, m->frequencies, 0, frequency, c->rope_dims * 8ull, NULL), why)
          || llama_cuda(m, ptxcu_fill32(m->cu, m->ones, 0, 1, m->options.batch, NULL), why)
          || llama_cuda(m, ptxcu_fill32(m->cu, m->masks, 0, ~0u, m->options.batch, NULL), why)
          || (pages && llama_cuda(m, ptxcu_upload(m->cu, m->block_table, 0, block, pages * 4ull, NULL), why))
          || llama_cuda(m, ptxcu_sync(m->cu), why);
    free(table);
    free(block);
    free(frequency);
    free(factor);
    return bad;
}

/* -- kernels of its own -- */

/* A kernel that caps logits: z = cap tanh(z / cap), one thread each. Arguments: their address; u32 logits of
   a row, f32 cap. Grid: x along a row, y rows. */
static inline ptx_module *llama_build_cap_kernel(ptxcu *cu) {
    ptx_module *m;
    ptx_kernel *k;
    ptx_val args, at, z, cap, n, i;
    ptxcu_module_new(cu, &m);
    k = ptx_entry(m, "cap");
    args = ptx_param_bytes(k, "args", LLAMA_CAP_WORDS * 8, 8);
    n = ptx_ld(k, PTX_U32, ptx_at(args, 8));
    cap = ptx_ld(k, PTX_F32, ptx_at(args, 12));
    at = ptx_ctaid_x(k);
    z = ptx_ntid_x(k);
    i = ptx_tid_x(k);
    i = ptx_mad(k, at, z, i);
    z = ptx_setp(k, PTX_LT, i, n);
    ptx_if(k, z);
    at = ptx_ld(k, PTX_U64, ptx_at(args, 0));
    at = ptx_ptr(at, PTX_GLOBAL);
    i = ptx_cvt(k, PTX_U64, i);
    z = ptx_ctaid_y(k);
    i = ptx_mad_wide(k, z, n, i);
    at = ptx_ptr_add(k, at, i, 4);
    z = ptx_ld(k, PTX_F32, ptx_at(at, 0));
    z = ptx_div(k, z, cap);
    z = ptx_tanh(k, z);
    z = ptx_mul(k, z, cap);
    ptx_st(k, PTX_F32, ptx_at(at, 0), z);
    ptx_end(k);
    ptx_ret(k);
    return m;
}

/* A kernel that joins parts of rows, or copies one: y[row, part * n + i] = x[part, row, i], one thread each.
   Arguments: addresses of x and y; u32 n, elements of a row of y; u32 row strides of x and y; u64 stride from
   part to part of x. Grid: x along n, y rows, z parts. */
static inline ptx_module *llama_build_join_kernel(ptxcu *cu) {
    ptx_module *m;
    ptx_kernel *k;
    ptx_val args, at, row, part, n, i, j, z;
    ptxcu_module_new(cu, &m);
    k = ptx_entry(m, "spread");
    args = ptx_param_bytes(k, "args", LLAMA_JOIN_WORDS * 8, 8);
    n = ptx_ld(k, PTX_U32, ptx_at(args, 16));
    at = ptx_ctaid_x(k);
    z = ptx_ntid_x(k);
    i = ptx_tid_x(k);
    i = ptx_mad(k, at, z, i);
    row = ptx_ctaid_y(k);
    part = ptx_ctaid_z(k);
    j = ptx_mad(k, part, n, i);
    z = ptx_setp(k, PTX_LT, i, n);
    ptx_if(k, z);
    at = ptx_ld(k, PTX_U32, ptx_at(args, 20));
    z = ptx_setp(k, PTX_LT, j, at);
    ptx_if(k, z);
    at = ptx_ld(k, PTX_U32, ptx_at(args, 24));
    i = ptx_cvt(k, PTX_U64, i);
    i = ptx_mad_wide(k, row, at, i);
    at = ptx_ld(k, PTX_U64, ptx_at(args, 32));
    z = ptx_cvt(k, PTX_U64, part);
    i = ptx_mad(k, z, at, i);
    at = ptx_ld(k, PTX_U64, ptx_at(args, 0));
    at = ptx_ptr(at, PTX_GLOBAL);
    at = ptx_ptr_add(k, at, i, 4);
    i = ptx_ld(k, PTX_F32, ptx_at(at, 0));
    at = ptx_ld(k, PTX_U32, ptx_at(args, 28));
    j = ptx_cvt(k, PTX_U64, j);
    j = ptx_mad_wide(k, row, at, j);
    at = ptx_ld(k, PTX_U64, ptx_at(args, 8));
    at = ptx_ptr(at, PTX_GLOBAL);
    at = ptx_ptr_add(k, at, j, 4);
    ptx_st(k, PTX_F32, ptx_at(at, 0), i);
    ptx_end(k);
    ptx_end(k);
    ptx_ret(k);
    return m;
}

/* A kernel that advances sequences, one thread each. Arguments: addresses of tokens, chosen, positions,
   lengths, prompts and prompt_lengths; max_seq, m->shared. */

/* The i-th of these addresses. */
static inline ptx_val llama_pointer(ptx_kernel *k, ptx_val args, unsigned i) {
    ptx_val p = ptx_ld(k, PTX_U64, ptx_at(args, (int64_t)i * 8));
    return ptx_ptr(p, PTX_GLOBAL);
}

static inline ptx_module *llama_build_advance_kernel(ptxcu *cu) {
    ptx_module *m;
    ptx_kernel *k;
    ptx_val args, b, at, prompt, chosen, next, length, within, stride;
    ptxcu_module_new(cu, &m);
    k = ptx_entry(m, "advance");
    args = ptx_param_bytes(k, "args", LLAMA_ADVANCE_WORDS * 8, 8);
    b = ptx_tid_x(k);
    /* the next position, and whether it lies in the prompt */
    at = llama_pointer(k, args, 2);
    at = ptx_ptr_add(k, at, b, 4);
    next = ptx_ld(k, PTX_U32, ptx_at(at, 0));
    next = ptx_add(k, next, ptx_u32(1));
    ptx_st(k, PTX_U32, ptx_at(at, 0), next);
    at = llama_pointer(k, args, 3);
    at = ptx_ptr_add(k, at, b, 4);
    length = ptx_add(k, next, ptx_u32(1));
    ptx_st(k, PTX_U32, ptx_at(at, 0), length);
    stride = ptx_ntid_x(k);
    at = ptx_ptr_add(k, at, stride, 4);
    stride = ptx_ld(k, PTX_U32, ptx_at(args, 56));
    length = ptx_sub(k, length, stride);
    ptx_st(k, PTX_U32, ptx_at(at, 0), length);
    at = llama_pointer(k, args, 5);
    at = ptx_ptr_add(k, at, b, 4);
    length = ptx_ld(k, PTX_U32, ptx_at(at, 0));
    within = ptx_setp(k, PTX_LT, next, length);
    /* the token: the prompt's there, or the chosen one */
    stride = ptx_ld(k, PTX_U32, ptx_at(args, 48));
    at = ptx_mad(k, b, stride, next);
    prompt = llama_pointer(k, args, 4);
    prompt = ptx_ptr_add(k, prompt, at, 4);
    chosen = llama_pointer(k, args, 1);
    chosen = ptx_ptr_add(k, chosen, b, 4);
    at = ptx_selp(k, prompt, chosen, within);
    next = ptx_ld(k, PTX_U32, ptx_at(at, 0));
    at = llama_pointer(k, args, 0);
    at = ptx_ptr_add(k, at, b, 4);
    ptx_st(k, PTX_U32, ptx_at(at, 0), next);
    ptx_ret(k);
    return m;
}

/* -- the list of launches -- */

static inline int llama_check_plan(const llama *m, ptx_code code, gguf_error *why) {
    return code == PTX_E_NONE ? 0 : gguf_fail(why, GGUF_NOWHERE, "%s", m->message.text);
}

/* The workspace of a launch of m->plan. All launches of a list share one allocation. In it, the bytes that
   must be 0, which each launch leaves 0, end at the same address for all launches; the other bytes follow. */
static inline uint64_t llama_workspace(const llama *m, const llama_list *l) {
    return l->workspace.address + l->counters_bytes - ((m->plan.zero_bytes + 255) & ~255ull);
}

/* Appends a launch of m->plan. Returns its arguments, all zero, or NULL. */
static inline void *llama_add(llama *m, llama_list *l, ptxcu_program *program, gguf_error *why) {
    llama_launch *one;
    uint64_t counters = (m->plan.zero_bytes + 255) & ~255ull, others = m->plan.workspace_bytes;
    others -= m->plan.zero_bytes;
    if (counters > l->counters_bytes) l->counters_bytes = counters;
    if (others > l->workspace_bytes) l->workspace_bytes = others;
    if (l->count == l->capacity) {
        uint32_t capacity = l->capacity ? 2 * l->capacity : 64;
        void *more = realloc(l->launch, capacity * sizeof *l->launch);
        if (!more) {
            gguf_fail(why, GGUF_NOWHERE, "no memory");
            return NULL;
        }
        l->launch = (llama_launch *)more;
        l->capacity = capacity;
    }
    one = &l->launch[l->count++];
    memset(one, 0, sizeof *one);
    one->plan = m->plan;
    one->program = program;
    return &one->args;
}

/* Appends a launch of the operation `name`. `code`, m->plan and m->message are the results of planning it. */
static inline void *llama_add_operation(llama *m, llama_list *l, const char *name, const void *desc,
                                        ptx_code code, gguf_error *why) {
    ptxcu_program *program;
    if (llama_check_plan(m, code, why)
        || llama_cuda(m, ptxcu_operation(m->cu, ptxk_operation_find(name), desc, &program), why))
        return NULL;
    return llama_add(m, l, program, why);
}

/* Plans an operation and appends its launch. Returns its arguments, to be filled in, or NULL. */
#define LLAMA_ADD(name, desc, shape)                                                                         \
    (ptxk_##name##_args *)llama_add_operation(                                                               \
        m, l, #name, &(desc), ptxk_##name##_plan(&(desc), &(shape), &m->plan, &m->message), why)

/* Appends a sum over all ranks, in place. */
static inline int llama_add_sum(llama *m, llama_list *l, uint64_t at, uint64_t count, gguf_error *why) {
    llama_launch *one;
    if (llama_ranks(m) == 1) return 0;
    memset(&m->plan, 0, sizeof m->plan);
    if (!llama_add(m, l, NULL, why)) return 1;
    one = &l->launch[l->count - 1];
    one->args.ranks.from = at;
    one->args.ranks.count = count;
    return 0;
}

/* y[row, part * n + i] = x[part, row, i], see llama_build_join_kernel; a row of y has `total` elements. */
static inline int llama_add_join(llama *m, llama_list *l, uint32_t n, uint32_t parts, uint64_t x,
                                 uint32_t x_row, uint64_t x_part, uint64_t y, uint32_t total,
                                 gguf_error *why) {
    enum { THREADS = 256 };
    ptx_launch *one = &m->plan.launch[0];
    uint64_t *a;
    memset(&m->plan, 0, sizeof m->plan);
    m->plan.launches = 1;
    one->grid[0] = (n + THREADS - 1) / THREADS;
    one->grid[1] = l->rows;
    one->grid[2] = parts;
    one->block[0] = THREADS;
    one->block[1] = one->block[2] = 1;
    m->plan.args_bytes = LLAMA_JOIN_WORDS * sizeof *a;
    a = (uint64_t *)llama_add(m, l, m->join, why);
    if (!a) return 1;
    a[0] = x;
    a[1] = y;
    a[2] = (uint64_t)total << 32 | n;
    a[3] = (uint64_t)total << 32 | x_row;
    a[4] = x_part;
    return 0;
}

/* to[row, rank * n + i] = from[row, i] of each rank; a row of `to` has `total` elements. */
static inline int llama_add_gather(llama *m, llama_list *l, uint64_t from, uint32_t n, uint64_t to,
                                   uint32_t total, gguf_error *why) {
    uint32_t ranks = llama_ranks(m);
    int direct = l->rows == 1 && n * ranks == total;
    llama_launch *one;
    memset(&m->plan, 0, sizeof m->plan);
    if (!llama_add(m, l, NULL, why)) return 1;
    one = &l->launch[l->count - 1];
    one->args.ranks.from = from;
    one->args.ranks.to = direct ? to : l->gathered.address;
    one->args.ranks.count = (uint64_t)l->rows * n;
    return !direct
           && llama_add_join(m, l, n, ranks, l->gathered.address, n, (uint64_t)l->rows * n, to, total, why);
}

/* eps of the norms of x, which device memory holds divided by residual_scale: see models.h. */
static inline float llama_stream_eps(const llama *m) {
    return (float)(m->config.eps / (m->config.residual_scale * m->config.residual_scale));
}

/* y = W x + bias */
typedef struct llama_product {
    const llama_tensor *w, *bias; /* bias NULL, or a tensor that may be missing */
    uint64_t y;
} llama_product;

static inline int llama_has_bias(const llama_product *p) { return p->bias && p->bias->from; }

/* Whether one launch can compute these products: all must have a bias, or none. */
static inline int llama_fits_one_launch(const llama_product *p, uint32_t count) {
    uint32_t i;
    for (i = 1; i < count; i++)
        if (llama_has_bias(&p[i]) != llama_has_bias(p)) return 0;
    return 1;
}

/* Whether a gated pair is worth one launch: tiles of two formats have at most 32 columns. */
static inline int llama_fuses_gated_pair(const llama_tensor *gate, const llama_tensor *up, uint32_t columns) {
    return gate->from->format == up->from->format || columns <= 32;
}

/* The input of a product: x, or, if gamma is not 0, the RMS norm of x with these weights. */
typedef struct llama_input {
    uint64_t x, gamma;
} llama_input;

/* One to three products with the same x; residual is added unless it is 0. gate: 0, or PTXK_GEMM_SWIGLU,
   _GEGLU or _CLAMPED for a gated pair. The weights are read once for all rows. */
static inline int llama_add_products(llama *m, llama_list *l, const llama_product *p, uint32_t count,
                                     uint32_t gate, llama_input in, uint64_t residual, gguf_error *why) {
    const ptxcu_device *device = ptxcu_device_info(m->cu);
    ptxk_gemm_desc desc = {0};
    ptxk_gemm_shape shape = {0};
    ptxk_gemm_args *a;
    uint32_t i;
    llama_format(p[0].w->from->format, &desc.format);
    if (count > 1) llama_format(p[1].w->from->format, &desc.second);
    if (count > 2) llama_format(p[2].w->from->format, &desc.third);
    desc.x_type = desc.output_type = PTX_F32;
    desc.columns = ptxk_gemm_columns(l->rows);
    desc.precision = PTXK_GEMM_EXACT;
    desc.flags = gate | (uint32_t)(in.gamma ? PTXK_GEMM_NORM | PTXK_GEMM_GAMMA : 0)
                 | (uint32_t)(residual ? PTXK_GEMM_RESIDUAL : 0)
                 | (uint32_t)(llama_has_bias(p) ? PTXK_GEMM_BIAS : 0);
    shape.m = l->rows;
    shape.n = p[0].w->rows;
    shape.k = p[0].w->columns;
    if (count > 1) shape.second_n = p[1].w->rows;
    if (count > 2) shape.third_n = p[2].w->rows;
    shape.sm_count = device->sm_count;
    shape.target = device->target;
    a = LLAMA_ADD(gemm, desc, shape);
    if (!a) {
        if (why->offset == GGUF_NOWHERE) why->offset = p[0].w->from->offset; /* mostly its columns */
        return 1;
    }
    for (i = 0; i < count; i++) {
        a->matrix[i].weights = p[i].w->address;
        a->matrix[i].bias = llama_has_bias(p) ? p[i].bias->address : 0;
        a->matrix[i].y = p[i].y;
        a->matrix[i].n = p[i].w->rows;
    }
    a->x = in.x;
    a->gamma = in.gamma;
    a->residual = residual;
    a->workspace = llama_workspace(m, l);
    a->m = shape.m;
    a->k = shape.k;
    a->eps = llama_stream_eps(m);
    return 0;
}

static inline int llama_add_product(llama *m, llama_list *l, const llama_tensor *w, const llama_tensor *bias,
                                    llama_input in, uint64_t residual, uint64_t y, gguf_error *why) {
    llama_product p;
    p.w = w;
    p.bias = bias;
    p.y = y;
    return llama_add_products(m, l, &p, 1, 0, in, residual, why);
}

static inline int llama_add_embedding(llama *m, llama_list *l, gguf_error *why) {
    const llama_tensor *w = &m->tensor[LLAMA_EMBEDDING];
    ptxk_embed_desc desc = {0};
    ptxk_embed_shape shape = {0};
    ptxk_embed_args *a;
    desc.n = m->config.hidden;
    llama_format(w->from->format, &desc.format);
    desc.y_type = PTX_F32;
    desc.scale = (float)(m->config.embedding_scale / m->config.residual_scale);
    shape.tokens = l->rows;
    a = LLAMA_ADD(embed, desc, shape);
    if (!a) {
        if (why->offset == GGUF_NOWHERE) why->offset = w->from->offset;
        return 1;
    }
    a->table = w->address;
    a->ids = l->tokens.address;
    a->y = l->x.address;
    a->rows = m->config.vocab;
    a->tokens = l->rows;
    return 0;
}

/* y = norm(x), or if `adds` y += norm(x), for `rows` rows of n elements. beta may be NULL, or missing. */
static inline int llama_add_norm(llama *m, llama_list *l, uint32_t kind, uint32_t n, uint32_t rows,
                                 uint64_t x, const llama_tensor *gamma, const llama_tensor *beta, float eps,
                                 int adds, uint64_t y, gguf_error *why) {
    ptxk_norm_desc desc = {0};
    ptxk_norm_shape shape = {0};
    ptxk_norm_args *a;
    desc.n = n;
    desc.kind = kind;
    desc.x_type = desc.y_type = desc.weight_type = PTX_F32;
    desc.flags = (uint32_t)(beta && beta->from ? PTXK_NORM_BETA : 0) | (uint32_t)(adds ? PTXK_NORM_ADD : 0);
    shape.rows = rows;
    a = LLAMA_ADD(norm, desc, shape);
    if (!a) return 1;
    a->x = x;
    a->y = y;
    a->gamma = gamma->address;
    a->beta = beta && beta->from ? beta->address : 0;
    a->rows = rows;
    a->eps = eps;
    return 0;
}

/* A norm of x before products, which read *in. RMS norms are left to the products, except with PARALLEL. */
static inline int llama_add_norm_before(llama *m, llama_list *l, const llama_tensor *gamma,
                                        const llama_tensor *beta, llama_input *in, gguf_error *why) {
    const llama_architecture *a = m->config.architecture;
    in->x = l->x.address;
    in->gamma = gamma->from ? gamma->address : 0;
    if (!gamma->from || (a->norm == LLAMA_RMS && a->norm_places != LLAMA_PARALLEL)) return 0;
    in->x = l->h.address;
    in->gamma = 0;
    return llama_add_norm(m, l, a->norm == LLAMA_RMS ? PTXK_NORM_RMS : PTXK_NORM_LAYER, m->config.hidden,
                          l->rows, l->x.address, gamma, beta, llama_stream_eps(m), 0, in->x, why);
}

/* x += W in, or, if the model has norms after products, x += norm(W in). Of several ranks only rank 0 adds x.
   If both halves of a layer read the same x (PARALLEL), the ranks are summed once, after the second half. */
static inline int llama_add_to_stream(llama *m, llama_list *l, const llama_tensor *w,
                                      const llama_tensor *bias, const llama_tensor *gamma, llama_input in,
                                      int half, gguf_error *why) {
    uint64_t x = l->x.address, h = l->h.address, count = (uint64_t)l->rows * m->config.hidden;
    int is_parallel = m->config.architecture->norm_places == LLAMA_PARALLEL;
    if (!gamma->from)
        return llama_add_product(m, l, w, bias, in, llama_rank(m) == 0 || (is_parallel && half) ? x : 0, x,
                                 why)
               || (!(is_parallel && !half) && llama_add_sum(m, l, x, count, why));
    return llama_add_product(m, l, w, bias, in, 0, h, why) || llama_add_sum(m, l, h, count, why)
           || llama_add_norm(m, l,
                             m->config.architecture->norm == LLAMA_RMS ? PTXK_NORM_RMS : PTXK_NORM_LAYER,
                             m->config.hidden, l->rows, h, gamma, NULL, (float)m->config.eps, 1, x, why);
}

/* Normalises q or k at x, each head or the whole row, if the model has such a norm. */
static inline int llama_add_qk_norm(llama *m, llama_list *l, const llama_tensor *gamma, uint64_t x,
                                    uint32_t heads, gguf_error *why) {
    int rows = m->config.architecture->qk_norm == LLAMA_QK_ROWS;
    uint32_t parts = rows ? 1 : heads, n = m->config.head_dim * heads;
    if (!gamma->from) return 0;
    if (rows && llama_ranks(m) > 1) { /* each rank has a part of the row */
        uint64_t row = l->whole_rows.address;
        return llama_add_gather(m, l, x, n, row, gamma->columns, why)
               || llama_add_norm(m, l, PTXK_NORM_RMS, gamma->columns, l->rows, row, gamma, NULL,
                                 (float)m->config.eps, 0, row, why)
               || llama_add_join(m, l, n, 1, row + 4ull * n * llama_rank(m), gamma->columns, 0, x, n, why);
    }
    return llama_add_norm(m, l, PTXK_NORM_RMS, m->config.head_dim * heads / parts, l->rows * parts, x, gamma,
                          NULL, (float)m->config.eps, 0, x, why);
}

static inline int llama_add_rope(llama *m, llama_list *l, uint32_t layer, uint64_t x, uint32_t heads,
                                 uint32_t head_dim, gguf_error *why) {
    ptxk_rope_desc desc = {0};
    ptxk_rope_shape shape = {0};
    ptxk_rope_args *a;
    if (!llama_is_rotated(&m->config, layer)) return 0;
    desc.heads = heads;
    desc.head_dim = head_dim;
    desc.dims = m->config.rope_dims;
    desc.pairs = m->config.rope_pairs;
    desc.type = PTX_F32;
    shape.tokens = l->rows;
    a = LLAMA_ADD(rope, desc, shape);
    if (!a) return 1;
    a->x = x;
    a->positions = l->positions.address;
    a->frequencies =
        m->frequencies.address + (llama_is_local(&m->config, layer) ? m->config.rope_dims / 2 * 8ull : 0);
    a->tokens = l->rows;
    return 0;
}

/* The window of a layer; 0: none, or one of max_seq and more. */
static inline uint32_t llama_window(const llama *m, uint32_t layer) {
    uint32_t window = llama_layer_window(&m->config, layer);
    return window < m->options.max_seq ? window : 0;
}

static inline float llama_score_scale(const llama *m, uint32_t layer) {
    return (float)(llama_is_local(&m->config, layer) ? m->config.local_score_scale : m->config.score_scale);
}

/* The caches K (which 0) or V (1) of a layer as an argument of kernels: a table of addresses, or a pool. */
static inline uint64_t llama_caches_argument(const llama *m, uint32_t layer, uint32_t which) {
    if (m->options.page_size) return llama_cache_address(m, layer, which, 0);
    return m->cache_table.address
           + ((uint64_t)llama_cache_lists(m) * layer + which) * m->options.batch * 8;
}

/* The same for their factors; 0: no factors (e4m3: all 1). */
static inline uint64_t llama_factors_argument(const llama *m, uint32_t layer, uint32_t which) {
    if (m->options.kv_type != PTXK_Q8_0) return 0;
    return m->options.page_size ? llama_factors_address(m, layer, which, 0)
                                : llama_caches_argument(m, layer, 2 + which);
}

/* Writes k and v into the layer's caches; with latents only k (which 0) or v (1). */
static inline int llama_add_cache_write(llama *m, llama_list *l, uint32_t layer, uint32_t which,
                                        gguf_error *why) {
    const llama_config *c = &m->config;
    ptxk_kv_scatter_desc desc = {0};
    ptxk_kv_scatter_shape shape = {0};
    ptxk_kv_scatter_args *a;
    desc.kv_heads = c->kv_heads;
    desc.head_dim = llama_cache_dim(m, which);
    desc.source_type = PTX_F32;
    desc.cache_type = m->options.kv_type;
    desc.page_size = m->options.page_size;
    desc.flags = c->latent ? PTXK_SCATTER_SINGLE : 0;
    shape.tokens = l->rows;
    a = LLAMA_ADD(kv_scatter, desc, shape);
    if (!a) return 1;
    a->k = which ? l->v.address : l->k.address;
    a->v = l->v.address;
    a->k_caches = llama_caches_argument(m, layer, which);
    a->v_caches = llama_caches_argument(m, layer, 1);
    a->k_factors = llama_factors_argument(m, layer, which);
    a->v_factors = llama_factors_argument(m, layer, 1);
    a->positions = l == &m->draft && m->is_tree ? l->cache_positions.address : l->positions.address;
    a->sequences = l == &m->step ? 0 : l->sequences.address;
    a->sequence_step = 1;
    a->tokens = l->rows;
    a->batch = m->options.batch;
    a->max_seq = m->options.max_seq;
    if (m->options.page_size) {
        a->block_table = m->block_table.address;
        a->max_pages = llama_pages(m);
        a->pool_pages = a->max_pages * m->options.batch;
    } else {
        a->head_stride = (uint64_t)m->options.max_seq * desc.head_dim;
        a->row_stride = desc.head_dim;
    }
    return 0;
}

/* Attention of the newest tokens, of each sequence the same number. A shared prefix is read once, by its own
   launch (is_prefix 1), to which the sequences are queries of one sequence. is_suffix: the other launch, for
   what follows a shared prefix. */
static inline int llama_add_decode_part(llama *m, llama_list *l, uint32_t layer, int is_prefix,
                                        gguf_error *why) {
    const llama_config *c = &m->config;
    const llama_tensor *sinks = llama_layer_tensor(m, layer, LLAMA_SINKS);
    int shares = m->shared && l == &m->step && !llama_window(m, layer), is_suffix = shares && !is_prefix;
    int branches = l == &m->draft && m->is_tree;
    uint64_t table_offset = is_suffix ? m->unshared_table.address - m->cache_table.address : 0;
    ptxk_flash_decode_desc desc = {0};
    ptxk_flash_decode_shape shape = {0};
    ptxk_flash_decode_args *a;
    desc.heads = c->heads;
    desc.kv_heads = c->kv_heads;
    desc.head_dim = c->head_dim;
    desc.kv_type = m->options.kv_type;
    desc.q_type = desc.out_type = PTX_F32;
    desc.queries = is_prefix ? m->options.batch : l->rows / m->options.batch;
    desc.scale = llama_score_scale(m, layer);
    desc.window = llama_window(m, layer);
    desc.soft_cap = (float)c->attention_cap;
    desc.page_size = m->options.page_size;
    desc.flags = (uint32_t)(is_prefix     ? PTXK_FLASH_TREE | PTXK_FLASH_LSE
                            : sinks->from ? PTXK_FLASH_SINK
                                          : 0)
                 | (uint32_t)(is_suffix ? PTXK_FLASH_PRIOR : 0) | (uint32_t)(branches ? PTXK_FLASH_TREE : 0);
    shape.batch = is_prefix ? 1 : m->options.batch;
    shape.max_seq = m->options.max_seq;
    shape.max_len = is_prefix ? m->shared : is_suffix ? m->options.max_seq - m->shared : m->options.max_seq;
    shape.sm_count = ptxcu_device_info(m->cu)->sm_count;
    shape.cluster = ptxcu_device_info(m->cu)->max_cluster;
    shape.target = ptxcu_device_info(m->cu)->target;
    a = LLAMA_ADD(flash_decode, desc, shape);
    if (!a) return 1;
    a->q = l->q.address;
    a->k_caches = llama_caches_argument(m, layer, 0) + table_offset;
    a->v_caches = llama_caches_argument(m, layer, 1) + table_offset;
    if (m->options.kv_type == PTXK_Q8_0) {
        a->k_factors = llama_factors_argument(m, layer, 0) + table_offset;
        a->v_factors = llama_factors_argument(m, layer, 1) + table_offset;
    }
    a->lengths = l->lengths.address + (is_suffix ? 4ull * m->options.batch : 0);
    a->sinks = sinks->address;
    a->tree = m->branches.address;
    a->out = l->attention.address;
    if (is_prefix) {
        a->lengths = 0;
        a->length = m->shared;
        a->tree = m->masks.address;
        a->out = l->prior.address;
        a->lse = l->prior_lse.address;
    }
    a->prior = l->prior.address;
    a->prior_lse = l->prior_lse.address;
    a->workspace = llama_workspace(m, l);
    a->max_seq = m->options.max_seq;
    if (m->options.page_size) {
        a->block_table = m->block_table.address;
        a->max_pages = llama_pages(m);
        a->pool_pages = a->max_pages * m->options.batch;
    }
    return 0;
}

static inline int llama_add_decode_attention(llama *m, llama_list *l, uint32_t layer, gguf_error *why) {
    int shares = m->shared && l == &m->step && !llama_window(m, layer);
    return (shares && llama_add_decode_part(m, l, layer, 1, why))
           || llama_add_decode_part(m, l, layer, 0, why);
}

/* Converts q to the type of prompt attention: kv_scatter writes it as the cache of one sequence. */
static inline int llama_add_q_conversion(llama *m, llama_list *l, gguf_error *why) {
    ptxk_kv_scatter_desc desc = {0};
    ptxk_kv_scatter_shape shape = {0};
    ptxk_kv_scatter_args *a;
    desc.kv_heads = m->config.heads;
    desc.head_dim = m->config.head_dim;
    desc.source_type = PTX_F32;
    desc.cache_type = llama_prompt_type(m);
    desc.flags = PTXK_SCATTER_SINGLE;
    shape.tokens = l->rows;
    a = LLAMA_ADD(kv_scatter, desc, shape);
    if (!a) return 1;
    a->k = l->q.address;
    a->k_caches = l->q_address.address;
    a->position_step = 1;
    a->head_stride = m->config.head_dim;
    a->row_stride = (uint64_t)m->config.heads * m->config.head_dim;
    a->tokens = a->max_seq = l->rows;
    a->batch = 1;
    return 0;
}

/* Attention of each span's tokens over the keys of its sequence up to the last of them. */
static inline int llama_add_prefill_attention(llama *m, llama_list *l, uint32_t layer, const llama_span *span,
                                              uint32_t spans, gguf_error *why) {
    const llama_config *c = &m->config;
    const llama_tensor *sinks = llama_layer_tensor(m, layer, LLAMA_SINKS);
    uint64_t row = (uint64_t)c->heads * c->head_dim, q = l->q.address;
    ptxk_flash_prefill_desc desc = {0};
    desc.heads = c->heads;
    desc.kv_heads = c->kv_heads;
    desc.head_dim = c->head_dim;
    desc.type = llama_prompt_type(m);
    desc.kv_type = llama_has_byte_caches(m) ? m->options.kv_type : 0;
    desc.out_type = PTX_F32;
    desc.flags = PTXK_PREFILL_CAUSAL | (uint32_t)(sinks->from ? PTXK_PREFILL_SINK : 0);
    desc.window = llama_window(m, layer);
    desc.scale = llama_score_scale(m, layer);
    desc.soft_cap = (float)c->attention_cap;
    desc.page_size = m->options.page_size;
    if (desc.type != PTX_F32) {
        if (llama_add_q_conversion(m, l, why)) return 1;
        q = l->q_rounded.address;
    }
    for (; spans--; span++) {
        ptxk_flash_prefill_shape shape = {0};
        ptxk_flash_prefill_args *a;
        shape.target = ptxcu_device_info(m->cu)->target;
        shape.batch = 1;
        shape.q_len = span->count;
        shape.kv_len = span->position + span->count;
        a = LLAMA_ADD(flash_prefill, desc, shape);
        if (!a) return 1;
        a->q = q + span->row * row * (desc.type == PTX_F32 ? 4 : 2);
        a->k = llama_cache_address(m, layer, 0, m->options.page_size ? 0 : span->sequence);
        a->v = llama_cache_address(m, layer, 1, m->options.page_size ? 0 : span->sequence);
        a->k_factors = llama_factors_address(m, layer, 0, m->options.page_size ? 0 : span->sequence);
        a->v_factors = llama_factors_address(m, layer, 1, m->options.page_size ? 0 : span->sequence);
        a->sinks = sinks->address;
        a->out = l->attention.address + 4 * span->row * row;
        a->q_head_stride = a->out_head_stride = c->head_dim;
        a->q_row_stride = a->out_row_stride = row;
        a->batch = 1;
        a->q_len = shape.q_len;
        a->kv_len = shape.kv_len;
        if (m->options.page_size) {
            a->block_table = m->block_table.address + 4ull * span->sequence * llama_pages(m);
            a->max_pages = llama_pages(m);
            a->pool_pages = a->max_pages * m->options.batch;
        } else {
            a->k_head_stride = a->v_head_stride = (uint64_t)m->options.max_seq * c->head_dim;
            a->k_row_stride = a->v_row_stride = c->head_dim;
        }
    }
    return 0;
}

/* gate = silu(gate) up, gelu(gate) up, or gelu(gate) */
static inline int llama_add_activation(llama *m, llama_list *l, uint32_t rows, uint32_t n, gguf_error *why) {
    ptxk_activation_desc desc = {0};
    ptxk_activation_shape shape = {0};
    ptxk_activation_args *a;
    desc.kind = m->config.architecture->activation == LLAMA_SWIGLU    ? PTXK_SILU
                : m->config.architecture->activation == LLAMA_CLAMPED ? PTXK_SWIGLU_CLAMPED
                                                                      : PTXK_GELU;
    desc.gated = m->config.architecture->activation != LLAMA_GELU;
    desc.x_type = desc.y_type = PTX_F32;
    shape.rows = rows;
    shape.n = n;
    a = LLAMA_ADD(activation, desc, shape);
    if (!a) return 1;
    a->x = a->y = l->gate.address;
    a->up = l->up.address;
    a->rows = shape.rows;
    a->n = shape.n;
    return 0;
}

/* logits = cap tanh(logits / cap), if the model has a cap */
static inline int llama_add_cap(llama *m, llama_list *l, gguf_error *why) {
    enum { THREADS = 256 };
    ptx_launch *one = &m->plan.launch[0];
    uint64_t *a;
    float cap = (float)m->config.final_cap;
    uint32_t bits;
    if (!(cap > 0)) return 0;
    memcpy(&bits, &cap, sizeof bits);
    memset(&m->plan, 0, sizeof m->plan);
    m->plan.launches = 1;
    one->grid[0] = (m->config.vocab + THREADS - 1) / THREADS;
    one->grid[1] = l->rows;
    one->block[0] = THREADS;
    one->grid[2] = one->block[1] = one->block[2] = 1;
    m->plan.args_bytes = LLAMA_CAP_WORDS * sizeof *a;
    a = (uint64_t *)llama_add(m, l, m->cap, why);
    if (!a) return 1;
    a[0] = l->logits.address;
    a[1] = (uint64_t)bits << 32 | m->config.vocab;
    return 0;
}

/* The logits of each row of x, and a token chosen from them. */
static inline int llama_add_choice(llama *m, llama_list *l, gguf_error *why) {
    uint64_t logits = l->logits.address, rank_logits = llama_ranks(m) > 1 ? l->rank_part.address : logits;
    ptxk_sample_desc desc = {0};
    ptxk_sample_shape shape = {0};
    ptxk_sample_args *a;
    llama_input in;
    if (llama_add_norm_before(m, l, &m->tensor[LLAMA_OUTPUT_NORM], &m->tensor[LLAMA_OUTPUT_NORM_BIAS], &in,
                              why)
        || llama_add_product(m, l, &m->head, &m->tensor[LLAMA_OUTPUT_BIAS], in, 0, rank_logits, why)
        || (rank_logits != logits
            && llama_add_gather(m, l, rank_logits, m->head.rows, logits, m->config.vocab, why))
        || llama_add_cap(m, l, why))
        return 1;
    desc.type = PTX_F32;
    desc.method = m->options.temperature > 0 ? PTXK_SAMPLE_DRAW : PTXK_SAMPLE_ARGMAX;
    shape.rows = l->rows;
    shape.n = m->config.vocab;
    a = LLAMA_ADD(sample, desc, shape);
    if (!a) return 1;
    a->logits = l->logits.address;
    a->positions = l->positions.address;
    a->tokens = l->chosen.address;
    a->seed = m->options.seed;
    a->rows = shape.rows;
    a->n = shape.n;
    a->top_k = m->options.top_k;
    a->top_p = m->options.top_p;
    a->temperature = m->options.temperature;
    return 0;
}

static inline int llama_add_advance(llama *m, llama_list *l, gguf_error *why) {
    uint64_t *a;
    ptx_launch *one = &m->plan.launch[0];
    memset(&m->plan, 0, sizeof m->plan);
    m->plan.launches = 1;
    one->grid[0] = one->grid[1] = one->grid[2] = one->block[1] = one->block[2] = 1;
    one->block[0] = m->options.batch;
    m->plan.args_bytes = LLAMA_ADVANCE_WORDS * sizeof *a;
    a = (uint64_t *)llama_add(m, l, m->advance, why);
    if (!a) return 1;
    a[0] = l->tokens.address;
    a[1] = l->chosen.address;
    a[2] = l->positions.address;
    a[3] = l->lengths.address;
    a[4] = m->prompts.address;
    a[5] = m->prompt_lengths.address;
    a[6] = m->options.max_seq;
    a[7] = m->shared;
    return 0;
}

/* q, k and v, together where one operation can compute them. */
static inline int llama_add_qkv(llama *m, llama_list *l, uint32_t n, llama_input in, gguf_error *why) {
    llama_product p[3];
    uint32_t i;
    for (i = 0; i < 3; i++) {
        p[i].w = llama_layer_tensor(m, n, (enum llama_layer_name)(LLAMA_Q + i));
        p[i].bias = llama_layer_tensor(m, n, (enum llama_layer_name)(LLAMA_Q_BIAS + i));
        p[i].y = i == 0 ? l->q.address : i == 1 ? l->k.address : l->v.address;
    }
    if (m->config.q_latent) {
        p[0].w = llama_layer_tensor(m, n, LLAMA_Q_A);
        p[0].y = l->q_latent.address;
    }
    if (llama_fits_one_launch(p, 3)) return llama_add_products(m, l, p, 3, 0, in, 0, why);
    for (i = 0; i < 3; i++)
        if (llama_add_products(m, l, &p[i], 1, 0, in, 0, why)) return 1;
    return 0;
}

/* The flag of gemm for the model's gated activation. */
static inline uint32_t llama_gate_flag(const llama *m) {
    uint32_t activation = m->config.architecture->activation;
    return activation == LLAMA_SWIGLU    ? PTXK_GEMM_SWIGLU
           : activation == LLAMA_CLAMPED ? PTXK_GEMM_CLAMPED
                                         : PTXK_GEMM_GEGLU;
}

/* gate = the input of a feed-forward's last product */
static inline int llama_add_gate_up(llama *m, llama_list *l, uint32_t n, llama_input in, gguf_error *why) {
    uint32_t activation = m->config.architecture->activation;
    uint32_t gate = llama_gate_flag(m), i;
    enum llama_layer_name first = llama_is_mixture(&m->config, n) ? LLAMA_SHARED_GATE : LLAMA_GATE;
    llama_product p[2];
    for (i = 0; i < 2; i++) {
        p[i].w = llama_layer_tensor(m, n, (enum llama_layer_name)(first + i));
        p[i].bias = llama_layer_tensor(m, n, (enum llama_layer_name)(LLAMA_GATE_BIAS + i));
        p[i].y = i == 0 ? l->gate.address : l->up.address;
    }
    if (activation == LLAMA_GELU) {
        p[1].y = l->gate.address;
        return llama_add_products(m, l, &p[1], 1, 0, in, 0, why)
               || llama_add_activation(m, l, l->rows, p[1].w->rows, why);
    }
    if (llama_fits_one_launch(p, 2) && llama_fuses_gated_pair(p[0].w, p[1].w, l->rows))
        return llama_add_products(m, l, p, 2, gate, in, 0, why);
    return llama_add_products(m, l, &p[0], 1, 0, in, 0, why)
           || llama_add_products(m, l, &p[1], 1, 0, in, 0, why)
           || llama_add_activation(m, l, l->rows, p[1].w->rows, why);
}

/* -- experts -- */

/* How experts are chosen. balance: address of a layer's bias for the choice, or 0. Without experts: all 0. */
static inline ptxk_route_desc llama_route(const llama *m, uint64_t balance) {
    const llama_config *c = &m->config;
    ptxk_route_desc desc = {0};
    if (!c->experts) return desc;
    desc.experts = c->experts;
    desc.chosen = c->chosen;
    desc.kind = c->route_kind;
    desc.flags = c->route_flags | (uint32_t)(balance ? PTXK_ROUTE_BIAS : 0);
    desc.scale = (float)c->route_scale;
    if (!(desc.scale < 1 || desc.scale > 1)) desc.scale = 0;
    desc.groups = c->groups;
    desc.chosen_groups = c->chosen_groups;
    return desc;
}

/* Chooses experts for each row; the scores are the product with `router`. bias, balance: NULL, or a tensor
   that may be missing. shared 1: the one shared expert, whose weight is the sigmoid of its score. */
static inline int llama_add_route(llama *m, llama_list *l, const llama_tensor *router,
                                  const llama_tensor *bias, const llama_tensor *balance, int shared,
                                  llama_input in, gguf_error *why) {
    ptxk_route_desc desc = {0};
    ptxk_route_shape shape = {0};
    ptxk_route_args *a;
    if (llama_add_product(m, l, router, bias, in, 0, l->expert[shared].scores.address, why)) return 1;
    if (shared)
        desc.experts = desc.chosen = 1, desc.kind = PTXK_ROUTE_SIGMOID;
    else
        desc = llama_route(m, balance ? balance->address : 0);
    shape.tokens = l->rows;
    a = LLAMA_ADD(route, desc, shape);
    if (!a) return 1;
    a->scores = l->expert[shared].scores.address;
    a->bias = balance ? balance->address : 0;
    a->choices = l->expert[shared].choices.address;
    a->weights = l->expert[shared].weights.address;
    a->offsets = l->expert[shared].offsets.address;
    a->rows = l->expert[shared].rows.address;
    a->places = l->expert[shared].places.address;
    a->tokens = l->rows;
    return 0;
}

/* One or two grouped products with the experts' matrices w of a layer, and their biases if there are any. y
   has a row for each choice. x_count: rows of x, to which choices refer; 0: x has a row for each choice. */
static inline int llama_add_grouped_products(llama *m, llama_list *l, const llama_tensor *const *w,
                                             const uint64_t *y, uint32_t count, uint32_t gate, llama_input in,
                                             uint32_t x_count, gguf_error *why) {
    const llama_config *c = &m->config;
    const llama_tensor *const bias[2] = {w[0] + LLAMA_GATE_EXPERTS_BIAS - LLAMA_GATE_EXPERTS,
                                         w[count - 1] + LLAMA_GATE_EXPERTS_BIAS - LLAMA_GATE_EXPERTS};
    ptxk_gemm_desc desc = {0};
    ptxk_gemm_shape shape = {0};
    ptxk_gemm_args *a;
    uint32_t i;
    llama_format(w[0]->from->format, &desc.format);
    if (count > 1) llama_format(w[1]->from->format, &desc.second);
    desc.x_type = desc.output_type = PTX_F32;
    desc.precision = PTXK_GEMM_EXACT;
    desc.flags = gate | PTXK_GEMM_GROUPED | (uint32_t)(in.gamma ? PTXK_GEMM_NORM | PTXK_GEMM_GAMMA : 0)
                 | (uint32_t)(bias[0]->from ? PTXK_GEMM_BIAS : 0);
    shape.m = l->rows * c->chosen;
    desc.columns = ptxk_gemm_columns(2 * shape.m / c->experts); /* twice the mean of an expert's rows */
    if (desc.columns > 64) desc.columns = 64;
    shape.n = w[0]->rows;
    shape.k = w[0]->columns;
    if (count > 1) shape.second_n = w[1]->rows;
    shape.groups = c->experts;
    shape.sm_count = ptxcu_device_info(m->cu)->sm_count;
    shape.target = ptxcu_device_info(m->cu)->target;
    a = LLAMA_ADD(gemm, desc, shape);
    if (!a) {
        if (why->offset == GGUF_NOWHERE) why->offset = w[0]->from->offset;
        return 1;
    }
    for (i = 0; i < count; i++) {
        a->matrix[i].weights = w[i]->address;
        a->matrix[i].bias = bias[i]->address;
        a->matrix[i].y = y[i];
        a->matrix[i].n = w[i]->rows;
    }
    a->x = in.x;
    a->gamma = in.gamma;
    a->workspace = llama_workspace(m, l);
    a->m = shape.m;
    a->k = shape.k;
    a->eps = llama_stream_eps(m);
    a->offsets = l->expert[0].offsets.address;
    a->x_rows = x_count ? l->expert[0].rows.address : 0;
    a->groups = c->experts;
    a->x_count = x_count;
    return 0;
}

/* x += the weighted sum of the outputs of the chosen experts, or of the shared one. Of several ranks only
   rank 0 adds the old x. */
static inline int llama_add_combine(llama *m, llama_list *l, int shared, gguf_error *why) {
    int adds = llama_rank(m) == 0 || (m->config.shared_ffn && !m->config.latent && !shared);
    ptxk_combine_desc desc = {0};
    ptxk_combine_shape shape = {0};
    ptxk_combine_args *a;
    desc.chosen = shared ? 1 : m->config.chosen;
    desc.x_type = desc.y_type = PTX_F32;
    desc.flags = adds ? PTXK_COMBINE_ADD : 0;
    shape.tokens = l->rows;
    shape.n = m->config.hidden;
    a = LLAMA_ADD(combine, desc, shape);
    if (!a) return 1;
    a->x = l->expert[shared].y.address;
    a->weights = l->expert[shared].weights.address;
    a->places = l->expert[shared].places.address;
    a->y = l->x.address;
    a->tokens = shape.tokens;
    a->n = shape.n;
    return 0;
}

/* The mixture of experts of a layer. x changes only after all products have read it. */
static inline int llama_add_experts(llama *m, llama_list *l, uint32_t n, llama_input in, gguf_error *why) {
#define LLAMA_OF(name) llama_layer_tensor(m, n, LLAMA_##name)
    const llama_tensor *w[3];
    uint64_t y[3];
    uint32_t rows = l->rows * m->config.chosen;
    llama_input inner;
    w[0] = LLAMA_OF(GATE_EXPERTS);
    w[1] = LLAMA_OF(UP_EXPERTS);
    w[2] = LLAMA_OF(DOWN_EXPERTS);
    y[0] = l->gate.address;
    y[1] = l->up.address;
    y[2] = l->expert[0].y.address;
    inner.x = l->gate.address;
    inner.gamma = 0;
    if (llama_add_route(m, l, LLAMA_OF(ROUTER), LLAMA_OF(ROUTER_BIAS), LLAMA_OF(EXPERTS_BALANCE), 0, in, why))
        return 1;
    if (llama_fuses_gated_pair(w[0], w[1], 2 * rows / m->config.experts)) {
        if (llama_add_grouped_products(m, l, w, y, 2, llama_gate_flag(m), in, l->rows, why)) return 1;
    } else if (llama_add_grouped_products(m, l, w, y, 1, 0, in, l->rows, why)
               || llama_add_grouped_products(m, l, w + 1, y + 1, 1, 0, in, l->rows, why)
               || llama_add_activation(m, l, rows, w[0]->rows, why)) {
        return 1;
    }
    if (llama_add_grouped_products(m, l, w + 2, y + 2, 1, 0, inner, 0, why)) return 1;
    if (m->config.shared_ffn && !LLAMA_OF(SHARED_ROUTER)->from) /* its gate and up are the last to read x */
        return llama_add_gate_up(m, l, n, in, why) || llama_add_combine(m, l, 0, why)
               || llama_add_product(m, l, LLAMA_OF(SHARED_DOWN), NULL, inner, l->x.address, l->x.address, why)
               || llama_add_sum(m, l, l->x.address, (uint64_t)l->rows * m->config.hidden, why);
    if (m->config.shared_ffn
        && (llama_add_route(m, l, LLAMA_OF(SHARED_ROUTER), NULL, NULL, 1, in, why)
            || llama_add_gate_up(m, l, n, in, why)
            || llama_add_product(m, l, LLAMA_OF(SHARED_DOWN), NULL, inner, 0, l->expert[1].y.address, why)
            || llama_add_combine(m, l, 1, why)))
        return 1;
    return llama_add_combine(m, l, 0, why)
           || llama_add_sum(m, l, l->x.address, (uint64_t)l->rows * m->config.hidden, why);
#undef LLAMA_OF
}

/* The attention of a layer, up to the product with W_o. */
static inline int llama_add_plain_attention(llama *m, llama_list *l, uint32_t n, llama_input in,
                                            const llama_span *span, uint32_t spans, gguf_error *why) {
#define LLAMA_OF(name) llama_layer_tensor(m, n, LLAMA_##name)
    const llama_config *c = &m->config;
    uint64_t q = l->q.address, k = l->k.address;
    return llama_add_qkv(m, l, n, in, why) || llama_add_qk_norm(m, l, LLAMA_OF(Q_NORM), q, c->heads, why)
           || llama_add_qk_norm(m, l, LLAMA_OF(K_NORM), k, c->kv_heads, why)
           || llama_add_rope(m, l, n, q, c->heads, c->head_dim, why)
           || llama_add_rope(m, l, n, k, c->kv_heads, c->head_dim, why)
           || llama_add_cache_write(m, l, n, 0, why)
           || (span ? llama_add_prefill_attention(m, l, n, span, spans, why)
                    : llama_add_decode_attention(m, l, n, why));
#undef LLAMA_OF
}

/* -- latents -- */

/* A product of each head h with its own matrix: y[h,r,:] = W_h x[h,r,:], for all rows of all heads. gathered:
   x is [rows, heads, x_stride] instead. stride: bytes from W_h to W_h+1; 0: dense. */
static inline int llama_add_head_products(llama *m, llama_list *l, const llama_tensor *w, uint64_t stride,
                                          uint64_t x, uint32_t x_stride, int gathered, uint64_t y,
                                          gguf_error *why) {
    ptxk_gemm_desc desc = {0};
    ptxk_gemm_shape shape = {0};
    ptxk_gemm_args *a;
    llama_format(w->from->format, &desc.format);
    desc.x_type = desc.output_type = PTX_F32;
    desc.precision = PTXK_GEMM_EXACT;
    desc.flags = PTXK_GEMM_GROUPED;
    desc.columns = ptxk_gemm_columns(l->rows);
    if (desc.columns > 64) desc.columns = 64;
    shape.m = l->rows * m->config.heads;
    shape.n = w->rows;
    shape.k = w->columns;
    shape.groups = m->config.heads;
    shape.sm_count = ptxcu_device_info(m->cu)->sm_count;
    shape.target = ptxcu_device_info(m->cu)->target;
    a = LLAMA_ADD(gemm, desc, shape);
    if (!a) {
        if (why->offset == GGUF_NOWHERE) why->offset = w->from->offset;
        return 1;
    }
    a->matrix[0].weights = w->address;
    a->matrix[0].y = y;
    a->matrix[0].n = shape.n;
    a->group_stride[0] = stride;
    a->x = x;
    a->x_stride = x_stride;
    a->workspace = llama_workspace(m, l);
    a->m = a->x_count = shape.m;
    a->k = shape.k;
    a->offsets = l->heads_offsets.address;
    a->x_rows = gathered ? l->heads_rows.address : 0;
    a->groups = shape.groups;
    return 0;
}

/* Attention over latents, of `queries` tokens of each of `batch` sequences, from sequence `first` and row
   `row` on. length: of the sequence; 0: see l->lengths. */
static inline int llama_add_latent_rows(llama *m, llama_list *l, uint32_t layer, uint32_t first,
                                        uint32_t batch, uint32_t row, uint32_t queries, uint32_t length,
                                        gguf_error *why) {
    const llama_config *c = &m->config;
    ptxk_flash_mla_desc desc = {0};
    ptxk_flash_mla_shape shape = {0};
    ptxk_flash_mla_args *a;
    desc.heads = c->heads;
    desc.latent = c->latent;
    desc.rope = c->rope_dims;
    desc.kv_type = m->options.kv_type;
    desc.q_type = desc.out_type = PTX_F32;
    desc.tile = ptxk_flash_mla_tile(c->heads, queries);
    desc.page_size = m->options.page_size;
    desc.scale = llama_score_scale(m, layer);
    shape.batch = batch;
    shape.queries = queries;
    shape.max_len = length;
    shape.max_seq = m->options.max_seq;
    shape.sm_count = ptxcu_device_info(m->cu)->sm_count;
    shape.target = ptxcu_device_info(m->cu)->target;
    a = LLAMA_ADD(flash_mla, desc, shape);
    if (!a) return 1;
    a->q = l->q_absorbed.address + 4ull * row * c->latent;
    a->out = l->latent_output.address + 4ull * row * c->latent;
    a->q_row_stride = a->out_row_stride = c->latent;
    a->q_head_stride = a->out_head_stride = (uint64_t)l->rows * c->latent;
    a->q_rope = l->q.address + 4ull * ((uint64_t)row * c->heads * c->head_dim + c->head_dim - c->rope_dims);
    a->rope_row_stride = (uint64_t)c->heads * c->head_dim;
    a->rope_head_stride = c->head_dim;
    a->c_caches = llama_caches_argument(m, layer, 0) + (m->options.page_size ? 0 : 8ull * first);
    a->r_caches = llama_caches_argument(m, layer, 1) + (m->options.page_size ? 0 : 8ull * first);
    if (m->options.kv_type == PTXK_Q8_0) {
        a->c_factors = llama_factors_argument(m, layer, 0) + (m->options.page_size ? 0 : 8ull * first);
        a->r_factors = llama_factors_argument(m, layer, 1) + (m->options.page_size ? 0 : 8ull * first);
    }
    a->lengths = length ? 0 : l->lengths.address;
    a->length = length;
    a->workspace = llama_workspace(m, l);
    a->batch = batch;
    a->queries = queries;
    a->max_seq = m->options.max_seq;
    if (m->options.page_size) {
        a->block_table = m->block_table.address + 4ull * first * llama_pages(m);
        a->max_pages = llama_pages(m);
        a->pool_pages = a->max_pages * m->options.batch;
    }
    return 0;
}

/* Transposes [heads, rows, value_dim] to [rows, heads, value_dim]: kv_scatter moves the rows. */
static inline int llama_add_transpose(llama *m, llama_list *l, gguf_error *why) {
    ptxk_kv_scatter_desc desc = {0};
    ptxk_kv_scatter_shape shape = {0};
    ptxk_kv_scatter_args *a;
    desc.kv_heads = 1;
    desc.head_dim = m->config.value_dim;
    desc.source_type = desc.cache_type = PTX_F32;
    desc.flags = PTXK_SCATTER_SINGLE;
    shape.tokens = l->rows * m->config.heads;
    a = LLAMA_ADD(kv_scatter, desc, shape);
    if (!a) return 1;
    a->k = l->values.address;
    a->k_caches = l->heads_address.address;
    a->positions = l->heads_rows.address;
    a->row_stride = desc.head_dim;
    a->head_stride = (uint64_t)shape.tokens * desc.head_dim;
    a->tokens = a->max_seq = shape.tokens;
    a->batch = 1;
    return 0;
}

/* The attention of a layer over latents, up to the product with W_o. */
static inline int llama_add_latent_attention(llama *m, llama_list *l, uint32_t n, llama_input in,
                                             const llama_span *span, uint32_t spans, gguf_error *why) {
#define LLAMA_OF(name) llama_layer_tensor(m, n, LLAMA_##name)
    const llama_config *c = &m->config;
    const llama_tensor *value = LLAMA_OF(V_B);
    uint32_t plain = c->head_dim - c->rope_dims, batch = m->options.batch, i;
    uint64_t head_bytes = LLAMA_OF(KV_B)->from ? llama_tensor_bytes(LLAMA_OF(KV_B)) / c->heads : 0;
    llama_input q;
    q.x = l->q_latent.address;
    q.gamma = LLAMA_OF(Q_A_NORM)->address;
    if (llama_add_qkv(m, l, n, in, why)
        || (c->q_latent && llama_add_product(m, l, LLAMA_OF(Q_B), NULL, q, 0, l->q.address, why))
        || llama_add_norm(m, l, PTXK_NORM_RMS, c->latent, l->rows, l->k.address, LLAMA_OF(KV_A_NORM), NULL,
                          (float)c->eps, 0, l->k.address, why)
        || llama_add_rope(m, l, n, l->q.address + 4ull * plain, c->heads, c->head_dim, why)
        || llama_add_rope(m, l, n, l->v.address, 1, c->rope_dims, why)
        || llama_add_cache_write(m, l, n, 0, why) || llama_add_cache_write(m, l, n, 1, why)
        || llama_add_head_products(m, l, LLAMA_OF(K_B), 0, l->q.address, c->head_dim, 1,
                                   l->q_absorbed.address, why))
        return 1;
    if (!span && llama_add_latent_rows(m, l, n, 0, batch, 0, l->rows / batch, 0, why)) return 1;
    for (i = 0; span && i < spans; i++)
        if (llama_add_latent_rows(m, l, n, span[i].sequence, 1, span[i].row, span[i].count,
                                  span[i].position + span[i].count, why))
            return 1;
    return llama_add_head_products(m, l, value, head_bytes, l->latent_output.address, c->latent, 0,
                                   l->values.address, why)
           || llama_add_transpose(m, l, why);
#undef LLAMA_OF
}

/* The launches of a layer. span: those of a pass; NULL: all sequences have the same number of tokens. */
static inline int llama_add_layer(llama *m, llama_list *l, uint32_t n, const llama_span *span, uint32_t spans,
                                  gguf_error *why) {
#define LLAMA_OF(name) llama_layer_tensor(m, n, LLAMA_##name)
    const llama_config *c = &m->config;
    llama_input in, inner;
    inner.gamma = 0;
    inner.x = l->attention.address;
    if (llama_add_norm_before(m, l, LLAMA_OF(ATTENTION_NORM), LLAMA_OF(ATTENTION_NORM_BIAS), &in, why))
        return 1;
    if (c->latent ? llama_add_latent_attention(m, l, n, in, span, spans, why)
                  : llama_add_plain_attention(m, l, n, in, span, spans, why))
        return 1;
    if (llama_add_to_stream(m, l, LLAMA_OF(O), LLAMA_OF(O_BIAS), LLAMA_OF(POST_ATTENTION_NORM), inner, 0,
                            why))
        return 1;
    inner.x = l->gate.address;
    if (c->architecture->norm_places != LLAMA_PARALLEL
        && llama_add_norm_before(m, l, LLAMA_OF(FFN_NORM), LLAMA_OF(FFN_NORM_BIAS), &in, why))
        return 1;
    if (llama_is_mixture(c, n)) return llama_add_experts(m, l, n, in, why);
    return llama_add_gate_up(m, l, n, in, why)
           || llama_add_to_stream(m, l, LLAMA_OF(DOWN), LLAMA_OF(DOWN_BIAS), LLAMA_OF(POST_FFN_NORM), inner,
                                  1, why);
#undef LLAMA_OF
}

/* Adds the launches for l->rows tokens: embedding and layers; choice, but for a pass; advance, for a step. */
static inline int llama_add_launches(llama *m, llama_list *l, const llama_span *span, uint32_t spans,
                                     gguf_error *why) {
    uint32_t n;
    l->count = 0;
    if (llama_add_embedding(m, l, why)) return 1;
    for (n = 0; n < m->config.layers; n++)
        if (llama_add_layer(m, l, n, span, spans, why)) return 1;
    if (l == &m->pass) return 0;
    if (l == &m->step) m->first_of_output = l->count;
    return llama_add_choice(m, l, why) || (l == &m->step && llama_add_advance(m, l, why));
}

/* Allocates a larger workspace, all 0. */
static inline int llama_grow_workspace(llama *m, llama_list *l, gguf_error *why) {
    uint64_t bytes = l->counters_bytes + l->workspace_bytes;
    if (llama_cuda(m, ptxcu_sync(m->cu), why)) return 1;
    ptxcu_free(m->cu, l->workspace);
    memset(&l->workspace, 0, sizeof l->workspace);
    return llama_allocate_large(m, "a workspace", bytes, &l->workspace, why)
           || llama_cuda(m, ptxcu_fill8(m->cu, l->workspace, 0, 0, (size_t)bytes, NULL), why)
           || llama_cuda(m, ptxcu_sync(m->cu), why);
}

/* Makes room for the values of `rows` tokens. */
static inline int llama_reserve_rows(llama *m, llama_list *l, uint32_t rows, gguf_error *why) {
    if (rows <= l->row_capacity) return 0;
    if (llama_cuda(m, ptxcu_sync(m->cu), why)) return 1;
    ptxcu_free(m->cu, l->memory);
    memset(&l->memory, 0, sizeof l->memory);
    l->row_capacity = rows;
    llama_lay_out_list(m, l);
    if (llama_allocate_large(m, "values between layers", l->memory_used, &l->memory, why)) {
        l->row_capacity = 0;
        return 1;
    }
    llama_lay_out_list(m, l);
    if (l != &m->pass) return 0;
    return llama_cuda(m, ptxcu_upload(m->cu, l->q_address, 0, &l->q_rounded.address, 8, NULL), why)
           || llama_cuda(m, ptxcu_sync(m->cu), why);
}

/* Uploads the groups of llama_add_head_products: row h * rows + r of a product is head h of row r of q. */
static inline int llama_upload_head_groups(llama *m, llama_list *l, gguf_error *why) {
    uint32_t heads = m->config.heads, n = heads * l->rows, i, *table;
    int bad;
    if (!m->config.latent) return 0;
    table = (uint32_t *)malloc(4ull * (n + heads + 1));
    if (!table) return gguf_fail(why, GGUF_NOWHERE, "no memory");
    for (i = 0; i < n; i++) table[i] = i % l->rows * heads + i / l->rows;
    for (i = 0; i <= heads; i++) table[n + i] = i * l->rows;
    bad = llama_cuda(m, ptxcu_upload(m->cu, l->heads_rows, 0, table, 4ull * n, NULL), why)
          || llama_cuda(m, ptxcu_upload(m->cu, l->heads_offsets, 0, table + n, 4ull * (heads + 1), NULL), why)
          || llama_cuda(m, ptxcu_upload(m->cu, l->heads_address, 0, &l->attention.address, 8, NULL), why)
          || llama_cuda(m, ptxcu_sync(m->cu), why);
    free(table);
    return bad;
}

/* Builds a list for `rows` tokens: allocates memory if there is too little, and adds the launches. If these
   need a larger workspace, adds them again, because its address is in their arguments. */
static inline int llama_build_list(llama *m, llama_list *l, uint32_t rows, const llama_span *span,
                                   uint32_t spans, gguf_error *why) {
    int bad = llama_reserve_rows(m, l, rows, why);
    l->rows = rows;
    bad = bad || llama_upload_head_groups(m, l, why) || llama_add_launches(m, l, span, spans, why);
    if (!bad && l->workspace.bytes < l->counters_bytes + l->workspace_bytes)
        bad = llama_grow_workspace(m, l, why) || llama_add_launches(m, l, span, spans, why);
    if (bad) l->rows = 0; /* the list is not complete */
    return bad;
}

static inline void llama_close_list(llama *m, llama_list *l) {
    ptxcu_free(m->cu, l->memory);
    ptxcu_free(m->cu, l->workspace);
    free(l->launch);
}

static inline void llama_close(llama *m) {
    ptxcu_graph_destroy(m->cu, m->graph[0]);
    ptxcu_graph_destroy(m->cu, m->graph[1]);
    ptxcu_event_destroy(m->cu, m->event[0]);
    ptxcu_event_destroy(m->cu, m->event[1]);
    ptxcu_unload(m->cu, m->advance);
    ptxcu_unload(m->cu, m->cap);
    ptxcu_unload(m->cu, m->join);
    llama_close_list(m, &m->step);
    llama_close_list(m, &m->pass);
    llama_close_list(m, &m->draft);
    ptxcu_free(m->cu, m->weights);
    ptxcu_free(m->cu, m->k_b);
    ptxcu_free(m->cu, m->caches);
    ptxcu_free(m->cu, m->memory);
    free(m->tensor);
    memset(m, 0, sizeof *m);
}

/* Sets m->head to the output matrix: a separate one, or the embedding. */
static inline void llama_set_head(llama *m) {
    const llama_tensor *output = &m->tensor[LLAMA_OUTPUT];
    uint32_t rows = m->head.rows;
    m->head = output->from ? *output : m->tensor[LLAMA_EMBEDDING];
    if (llama_ranks(m) == 1 || output->from) return;
    m->head.rows = rows;
    m->head.address += (uint64_t)rows * llama_rank(m) * llama_row_bytes(&m->head, m->head.columns);
}

/* For older files, where one matrix attn_kv_b makes keys and values from the latent. attn_k_b of a head, as
   newer files have it, is the transpose of its rows for the keys, [plain, latent], here in f32; attn_v_b is
   its rows for the values. */
static inline int llama_make_k_b(llama *m, gguf_error *why) {
    const llama_config *c = &m->config;
    uint32_t plain = c->head_dim - c->rope_dims, rows = c->heads * (plain + c->value_dim), n, h, i, j;
    uint64_t bytes = 4ull * c->heads * plain * c->latent;
    ptxcu_buffer ids = {0}, all = {0};
    uint32_t *id = (uint32_t *)malloc(4ull * rows);
    float *from = (float *)malloc(4ull * rows * c->latent), *to = (float *)malloc((size_t)bytes);
    int bad = !id || !from || !to ? gguf_fail(why, GGUF_NOWHERE, "no memory") : 0;
    if (!bad && rows > 65535)
        bad = gguf_fail(why, GGUF_NOWHERE, "%u rows of keys and values", (unsigned)rows);
    for (i = 0; !bad && i < rows; i++) id[i] = i;
    bad = bad || llama_allocate_large(m, "matrices of keys", bytes * c->layers, &m->k_b, why)
          || llama_cuda(m, ptxcu_alloc(m->cu, 4ull * rows, &ids), why)
          || llama_cuda(m, ptxcu_alloc(m->cu, 4ull * rows * c->latent, &all), why)
          || llama_cuda(m, ptxcu_upload(m->cu, ids, 0, id, 4ull * rows, NULL), why);
    m->k_b_tensor.format = GGUF_FORMAT_F32;
    for (n = 0; !bad && n < c->layers; n++) {
        llama_tensor *w = llama_layer_tensor(m, n, LLAMA_KV_B), *k_b = llama_layer_tensor(m, n, LLAMA_K_B);
        llama_tensor *v_b = llama_layer_tensor(m, n, LLAMA_V_B);
        ptxk_embed_desc desc = {0};
        ptxk_embed_shape shape = {0};
        ptxk_embed_args args = {0};
        ptxcu_program *program;
        desc.n = c->latent;
        llama_format(w->from->format, &desc.format);
        desc.y_type = PTX_F32;
        shape.tokens = args.rows = args.tokens = rows;
        args.table = w->address;
        args.ids = ids.address;
        args.y = all.address;
        bad = llama_check_plan(m, ptxk_embed_plan(&desc, &shape, &m->plan, &m->message), why)
              || llama_cuda(m, ptxcu_operation(m->cu, ptxk_operation_find("embed"), &desc, &program), why)
              || llama_cuda(m, ptxcu_run(m->cu, program, &m->plan, &args, sizeof args, NULL), why)
              || llama_cuda(m, ptxcu_download(m->cu, from, all, 0, 4ull * rows * c->latent, NULL), why)
              || llama_cuda(m, ptxcu_sync(m->cu), why);
        for (h = 0; !bad && h < c->heads; h++)
            for (j = 0; j < c->latent; j++)
                for (i = 0; i < plain; i++)
                    to[((size_t)h * c->latent + j) * plain + i] =
                        from[((size_t)h * (plain + c->value_dim) + i) * c->latent + j];
        bad = bad || llama_cuda(m, ptxcu_upload(m->cu, m->k_b, bytes * n, to, (size_t)bytes, NULL), why)
              || llama_cuda(m, ptxcu_sync(m->cu), why);
        k_b->from = &m->k_b_tensor;
        k_b->columns = plain;
        k_b->rows = c->latent;
        k_b->address = m->k_b.address + bytes * n;
        v_b->from = w->from;
        v_b->columns = c->latent;
        v_b->rows = c->value_dim;
        v_b->address = w->address + plain * llama_row_bytes(w, c->latent);
        m->weight_bytes += bytes - (uint64_t)c->heads * plain * llama_row_bytes(w, c->latent);
    }
    ptxcu_free(m->cu, ids);
    ptxcu_free(m->cu, all);
    free(id);
    free(from);
    free(to);
    return bad;
}

static inline int llama_load(llama *m, FILE *file, llama_progress *progress, gguf_error *why) {
    uint64_t layer = llama_layer_cache_bytes(m, 0) + llama_layer_cache_bytes(m, 1);
    ptx_module *advance, *cap, *join;
    int bad;
    if (layer > (uint64_t)SIZE_MAX / 2 / m->config.layers)
        return gguf_fail(why, GGUF_NOWHERE, "caches past 2^63 bytes");
    llama_lay_out_memory(m);
    if (llama_upload(m, file, progress, why)
        || (m->config.latent && !m->config.has_split_kv_b && llama_make_k_b(m, why))
        || llama_allocate_large(m, "keys and values", m->config.layers * layer, &m->caches, why)
        || llama_cuda(m, ptxcu_alloc(m->cu, (size_t)m->memory_used, &m->memory), why))
        return 1;
    llama_set_head(m);
    llama_lay_out_memory(m);
    advance = llama_build_advance_kernel(m->cu);
    cap = llama_build_cap_kernel(m->cu);
    join = llama_build_join_kernel(m->cu);
    bad = llama_cuda(m, ptxcu_load(m->cu, advance, &m->advance), why)
          || (m->config.final_cap > 0 && llama_cuda(m, ptxcu_load(m->cu, cap, &m->cap), why))
          || (llama_ranks(m) > 1 && llama_cuda(m, ptxcu_load(m->cu, join, &m->join), why));
    ptx_module_free(join);
    ptx_module_free(advance);
    ptx_module_free(cap);
    return bad || llama_fill_tables(m, file, why)
           || llama_build_list(m, &m->step, m->options.batch, NULL, 0, why)
           || llama_cuda(m, ptxcu_event_create(m->cu, &m->event[0]), why)
           || llama_cuda(m, ptxcu_event_create(m->cu, &m->event[1]), why);
}

/* Whether tensor number i holds something of each expert. */
static inline int llama_is_of_experts(size_t i) {
    size_t name = i < LLAMA_MODEL_TENSORS ? 0 : (i - LLAMA_MODEL_TENSORS) % LLAMA_TENSORS_OF_A_LAYER;
    return name >= LLAMA_GATE_EXPERTS && name <= LLAMA_DOWN_EXPERTS_BIAS;
}

/* Bytes of weights that a token reads, see llama.weight_bytes. */
static inline uint64_t llama_count_weight_bytes(const llama *m) {
    size_t i;
    uint64_t bytes = 0;
    for (i = 0; i < LLAMA_MODEL_TENSORS + (size_t)m->config.layers * LLAMA_TENSORS_OF_A_LAYER; i++) {
        const llama_tensor *t = &m->tensor[i];
        if (!t->from || t->is_divided || i == LLAMA_ROPE_FACTORS || i == LLAMA_ROPE_SHORT
            || i == LLAMA_ROPE_LONG)
            continue;
        bytes += i == LLAMA_EMBEDDING && m->tensor[LLAMA_OUTPUT].from ? llama_row_bytes(t, t->columns)
                 : i == LLAMA_EMBEDDING && llama_ranks(m) > 1 ? m->head.rows * llama_row_bytes(t, t->columns)
                 : llama_is_of_experts(i) ? llama_tensor_bytes(t) / m->config.experts * m->config.chosen
                                          : llama_tensor_bytes(t);
    }
    return bytes;
}

/* The part of llama_open that needs no device. After success m->tensor must be freed. */
static inline int llama_prepare(llama *m, const gguf *g, const llama_options *options, gguf_error *why) {
    int bad = 1;
    memset(m, 0, sizeof *m);
    m->options = *options;
    if (llama_read(&m->config, g, why)) return 1;
    m->tensor = llama_find_tensors(&m->config, g, why);
    if (!m->tensor) return 1;
    if (!m->options.max_seq) m->options.max_seq = m->config.context;
    if (!m->options.kv_type) m->options.kv_type = PTX_F16;
    if (!m->options.prompt_tokens) m->options.prompt_tokens = 512;
    if (m->options.batch < 1 || m->options.batch > LLAMA_SEQUENCES)
        gguf_fail(why, GGUF_NOWHERE, "a batch of %u, must be 1 to 8", (unsigned)options->batch);
    else if (m->config.latent && m->options.kv_type == PTX_F32)
        gguf_fail(why, GGUF_NOWHERE, "caches of latents are f16, bf16, e4m3 or q8_0");
    else if (m->config.latent && m->options.kv_type == PTXK_Q8_0 && m->config.rope_dims % 32)
        gguf_fail(why, GGUF_NOWHERE, "caches in q8_0: the rotated elements of a key must be 32 or 64");
    else if (m->options.prompt_tokens > LLAMA_PROMPT_MAX)
        gguf_fail(why, GGUF_NOWHERE, "prompts are fed %u tokens at a time, must be 1 to %u",
                  (unsigned)options->prompt_tokens, (unsigned)LLAMA_PROMPT_MAX);
    else
        bad = llama_split_ranks(m, why);
    if (bad) {
        free(m->tensor);
        m->tensor = NULL;
        return 1;
    }
    m->weight_bytes = llama_count_weight_bytes(m);
    return 0;
}

/* Loads a model. The file may be closed afterwards; g must live until llama_close: tensors point into it. */
static inline int llama_open(llama *m, ptxcu *handle, const gguf *g, FILE *file, const llama_options *options,
                             llama_progress *progress, gguf_error *why) {
    if (llama_prepare(m, g, options, why)) return 1;
    m->cu = handle;
    if (!llama_load(m, file, progress, why)) return 0;
    llama_close(m);
    return 1;
}

/* -- running -- */

static inline int llama_set_shared(llama *m, uint32_t shared, ptxcu_stream stream, gguf_error *why);

/* Starts sequences: prompts[b * max_seq ...] are the tokens of sequence b, lengths[b] >= 1 of them. The first
   kept[b] < lengths[b] have been fed before, as prompt or as chosen tokens, and are in the caches: the
   sequence continues after them. */
static inline int llama_resume(llama *m, const uint32_t *prompts, const uint32_t *lengths,
                               const uint32_t *kept, ptxcu_stream stream, gguf_error *why) {
    uint32_t tokens[LLAMA_SEQUENCES], filled[2 * LLAMA_SEQUENCES], b, i;
    llama_list *l = &m->step;
    if (m->shared && llama_set_shared(m, 0, stream, why)) return 1;
    for (b = 0; b < m->options.batch; b++) {
        const uint32_t *prompt = prompts + (size_t)b * m->options.max_seq;
        if (lengths[b] < 1 || lengths[b] > m->options.max_seq)
            return gguf_fail(why, GGUF_NOWHERE, "a prompt of %u tokens, must be 1 to %u",
                             (unsigned)lengths[b], (unsigned)m->options.max_seq);
        if (kept[b] >= lengths[b])
            return gguf_fail(why, GGUF_NOWHERE, "a prompt of %u tokens, of which %u have been fed",
                             (unsigned)lengths[b], (unsigned)kept[b]);
        for (i = 0; i < lengths[b]; i++)
            if (prompt[i] >= m->config.vocab)
                return gguf_fail(why, GGUF_NOWHERE, "token %u is none", (unsigned)prompt[i]);
        tokens[b] = prompt[kept[b]];
        filled[b] = filled[m->options.batch + b] = kept[b] + 1;
        m->length[b] = lengths[b];
        m->kept[b] = kept[b];
    }
    for (b = 0; b < m->options.batch; b++)
        if (llama_cuda(m,
                       ptxcu_upload(m->cu, m->prompts, (size_t)b * m->options.max_seq * 4,
                                    prompts + (size_t)b * m->options.max_seq, lengths[b] * 4ull, stream),
                       why))
            return 1;
    return llama_cuda(m, ptxcu_upload(m->cu, m->prompt_lengths, 0, lengths, m->prompt_lengths.bytes, stream),
                      why)
           || llama_cuda(m, ptxcu_upload(m->cu, l->tokens, 0, tokens, l->tokens.bytes, stream), why)
           || llama_cuda(m, ptxcu_upload(m->cu, l->positions, 0, m->kept, l->positions.bytes, stream), why)
           || llama_cuda(m, ptxcu_upload(m->cu, l->lengths, 0, filled, l->lengths.bytes, stream), why)
           || llama_cuda(m, ptxcu_stream_sync(m->cu, stream), why);
}

/* The same from the beginning. */
static inline int llama_begin(llama *m, const uint32_t *prompts, const uint32_t *lengths, ptxcu_stream stream,
                              gguf_error *why) {
    static const uint32_t none[LLAMA_SEQUENCES] = {0};
    return llama_resume(m, prompts, lengths, none, stream, why);
}

/* Sets the state of sequence b: `position` tokens have been fed, and the next step takes `token`. */
static inline int llama_set_state(llama *m, uint32_t b, uint32_t token, uint32_t position,
                                  ptxcu_stream stream, gguf_error *why) {
    uint32_t filled = position + 1;
    llama_list *l = &m->step;
    return llama_cuda(m, ptxcu_upload(m->cu, l->tokens, b * 4u, &token, 4, stream), why)
           || llama_cuda(m, ptxcu_upload(m->cu, l->positions, b * 4u, &position, 4, stream), why)
           || llama_cuda(m, ptxcu_upload(m->cu, l->lengths, b * 4u, &filled, 4, stream), why)
           || llama_cuda(m, ptxcu_stream_sync(m->cu, stream), why);
}

/* Queues a collective of the ranks. */
static inline int llama_queue_ranks(const llama *m, const llama_launch *one, ptxcu_stream stream,
                                    gguf_error *why) {
    ranks_group *r = m->options.ranks;
    size_t count = (size_t)one->args.ranks.count;
    int bad = one->args.ranks.to ? ranks_gather(r, one->args.ranks.from, one->args.ranks.to, count, stream)
                                 : ranks_sum(r, one->args.ranks.from, count, stream);
    return bad ? gguf_fail(why, GGUF_NOWHERE, "%s", r->error) : 0;
}

/* Queues launches first ... end - 1 of a list. */
static inline int llama_queue_launches(llama *m, const llama_list *l, uint32_t first, uint32_t end,
                                       ptxcu_stream stream, gguf_error *why) {
    uint32_t i;
    for (i = first; i < end; i++) {
        const llama_launch *one = &l->launch[i];
        if (!one->program) {
            if (llama_queue_ranks(m, one, stream, why)) return 1;
            continue;
        }
        if (llama_cuda(
                m, ptxcu_run(m->cu, one->program, &one->plan, &one->args, one->plan.args_bytes, stream), why))
            return 1;
    }
    return 0;
}

/* Queues the launches of a token. choose 0: no logits, no choice, while every sequence's next token is the
   prompt's. */
static inline int llama_queue_step(llama *m, int choose, ptxcu_stream stream, gguf_error *why) {
    const llama_list *l = &m->step;
    return llama_queue_launches(m, l, 0, choose ? l->count : m->first_of_output, stream, why)
           || (!choose && llama_queue_launches(m, l, l->count - 1, l->count, stream, why));
}

/* From here on steps are launches of a graph. The stream must not be NULL. */
static inline int llama_record(llama *m, ptxcu_stream stream, gguf_error *why) {
    int choose;
    for (choose = 0; choose < 2; choose++) {
        int bad =
            llama_cuda(m, ptxcu_graph_begin(m->cu, stream), why) || llama_queue_step(m, choose, stream, why);
        if (llama_cuda(m, ptxcu_graph_end(m->cu, stream, &m->graph[choose]), why) || bad) return 1;
    }
    return 0;
}

static inline int llama_step(llama *m, int choose, ptxcu_stream stream, gguf_error *why) {
    if (!m->graph[choose != 0]) return llama_queue_step(m, choose, stream, why);
    return llama_cuda(m, ptxcu_graph_launch(m->cu, m->graph[choose != 0], stream), why);
}

/* -- prompts: many tokens in a pass -- */

/* Finds the spans of the next `rows` tokens, after `fed` tokens of all prompts. Returns their number. */
static inline uint32_t llama_find_spans(const llama *m, uint64_t fed, uint32_t rows, llama_span *span) {
    uint32_t b, n = 0, row = 0;
    for (b = 0; b < m->options.batch && row < rows; b++) {
        uint32_t left = m->length[b] - m->kept[b];
        if (fed >= left) {
            fed -= left;
            continue;
        }
        span[n].sequence = b;
        span[n].row = row;
        span[n].position = m->kept[b] + (uint32_t)fed;
        span[n].count = left - (uint32_t)fed;
        if (span[n].count > rows - row) span[n].count = rows - row;
        row += span[n++].count;
        fed = 0;
    }
    return n;
}

/* Uploads the tokens of a pass, their positions and sequences. host: room for 2 * rows numbers, in use until
   the stream has been synchronised. */
static inline int llama_fill_pass(llama *m, const llama_span *span, uint32_t spans, uint32_t *host,
                                  ptxcu_stream stream, gguf_error *why) {
    llama_list *l = &m->pass;
    uint32_t i, n;
    for (n = 0; n < spans; n++) {
        for (i = 0; i < span[n].count; i++) {
            host[span[n].row + i] = span[n].position + i;
            host[l->rows + span[n].row + i] = span[n].sequence;
        }
        if (llama_cuda(m,
                       ptxcu_copy(m->cu, l->tokens, span[n].row * 4ull, m->prompts,
                                  ((size_t)span[n].sequence * m->options.max_seq + span[n].position) * 4,
                                  span[n].count * 4ull, stream),
                       why))
            return 1;
    }
    return llama_cuda(m, ptxcu_upload(m->cu, l->positions, 0, host, l->rows * 4ull, stream), why)
           || llama_cuda(m, ptxcu_upload(m->cu, l->sequences, 0, host + l->rows, l->rows * 4ull, stream),
                         why);
}

/* Queues the launches of a pass. To show progress, waits for each part while the next one runs. */
static inline int llama_queue_pass(llama *m, uint64_t fed, uint64_t all, llama_progress *progress,
                                   ptxcu_stream stream, gguf_error *why) {
    enum { PART = 8 };
    const llama_list *l = &m->pass;
    uint32_t i, part = 0;
    for (i = 0; i < l->count; i += PART, part++) {
        uint32_t end = l->count - i < PART ? l->count : i + PART;
        if (llama_queue_launches(m, l, i, end, stream, why)
            || (progress && llama_cuda(m, ptxcu_event_record(m->cu, m->event[part & 1], stream), why))
            || (progress && part && llama_cuda(m, ptxcu_event_sync(m->cu, m->event[~part & 1]), why)))
            return 1;
        if (progress) progress(fed * l->count + (uint64_t)l->rows * i, all * l->count);
    }
    return 0;
}

/* Feeds the tokens of all sequences from kept to length, and copies x of each last token to the step's x. */
static inline int llama_feed(llama *m, llama_progress *progress, ptxcu_stream stream, gguf_error *why) {
    llama_span span[LLAMA_SEQUENCES];
    llama_list *step = &m->step;
    uint64_t all = 0, fed = 0, row = 4ull * m->config.hidden;
    uint32_t b, n, *host;
    int bad = 0;
    for (b = 0; b < m->options.batch; b++) all += m->length[b] - m->kept[b];
    host = (uint32_t *)malloc(8ull * m->options.prompt_tokens);
    if (!host) return gguf_fail(why, GGUF_NOWHERE, "no memory");
    for (; !bad && fed < all; fed += m->pass.rows) {
        uint32_t rows =
            all - fed < m->options.prompt_tokens ? (uint32_t)(all - fed) : m->options.prompt_tokens;
        uint32_t spans = llama_find_spans(m, fed, rows, span);
        bad = llama_build_list(m, &m->pass, rows, span, spans, why)
              || llama_fill_pass(m, span, spans, host, stream, why)
              || llama_queue_pass(m, fed, all, progress, stream, why);
        for (n = 0; !bad && n < spans; n++)
            if (span[n].position + span[n].count == m->length[span[n].sequence])
                bad = llama_cuda(m,
                                 ptxcu_copy(m->cu, step->x, (size_t)(span[n].sequence * row), m->pass.x,
                                            (size_t)((span[n].row + span[n].count - 1) * row), (size_t)row,
                                            stream),
                                 why);
        bad = bad || llama_cuda(m, ptxcu_stream_sync(m->cu, stream), why);
    }
    if (bad) ptxcu_stream_sync(m->cu, stream); /* the stream may still read `host` */
    if (progress && !bad) progress(all, all);
    free(host);
    return bad;
}

/* Feeds the prompts of llama_begin, options.prompt_tokens tokens in a pass, which reads the weights once.
   Then chooses the token after each prompt, which the next step takes. Only the last token of a prompt has
   logits. progress: called with the work done and in all, or NULL. Waits for the stream. */
static inline int llama_prompt(llama *m, llama_progress *progress, ptxcu_stream stream, gguf_error *why) {
    llama_list *step = &m->step;
    uint32_t last[LLAMA_SEQUENCES], b;
    int bad;
    for (b = 0; b < m->options.batch; b++) {
        if (!m->length[b]) return gguf_fail(why, GGUF_NOWHERE, "no prompts: llama_begin comes first");
        last[b] = m->length[b] - 1;
    }
    bad = llama_feed(m, progress, stream, why)
          || llama_cuda(m, ptxcu_upload(m->cu, step->positions, 0, last, step->positions.bytes, stream), why)
          || llama_queue_launches(m, step, m->first_of_output, step->count, stream, why);
    if (!bad) return llama_cuda(m, ptxcu_stream_sync(m->cu, stream), why);
    ptxcu_stream_sync(m->cu, stream);
    return 1;
}

/* -- a prefix that sequences share -- */

/* Bytes of so many positions of one head in a cache (which 0, 1) or in its factors (2, 3). */
static inline uint64_t llama_position_bytes(const llama *m, uint32_t which, uint64_t positions) {
    uint64_t values = positions * m->config.head_dim;
    if (which > 1) return values / 16;
    return llama_has_byte_caches(m) ? values : values * (m->options.kv_type == PTX_F32 ? 4 : 2);
}

/* Builds the launches of steps again, and their graphs, for a common prefix of `shared` tokens; 0: none. */
static inline int llama_set_shared(llama *m, uint32_t shared, ptxcu_stream stream, gguf_error *why) {
    uint32_t lists = llama_cache_lists(m), sequence, layer, list;
    uint64_t entries = (uint64_t)lists * m->options.batch * m->config.layers, i = 0;
    uint64_t *table = (uint64_t *)malloc((size_t)entries * 8);
    int recorded = m->graph[0] != NULL, bad;
    if (!table) return gguf_fail(why, GGUF_NOWHERE, "no memory");
    for (layer = 0; layer < m->config.layers; layer++)
        for (list = 0; list < lists; list++)
            for (sequence = 0; sequence < m->options.batch; sequence++)
                table[i++] = (list < 2 ? llama_cache_address(m, layer, list, sequence)
                                       : llama_factors_address(m, layer, list - 2, sequence))
                             + llama_position_bytes(m, list, shared);
    m->shared = shared;
    bad = llama_cuda(m, ptxcu_upload(m->cu, m->unshared_table, 0, table, (size_t)entries * 8, stream), why)
          || llama_cuda(m, ptxcu_stream_sync(m->cu, stream), why)
          || llama_build_list(m, &m->step, m->options.batch, NULL, 0, why);
    free(table);
    if (bad || !recorded) return bad;
    for (i = 0; i < 2; i++) {
        ptxcu_graph_destroy(m->cu, m->graph[i]);
        m->graph[i] = NULL;
    }
    return llama_record(m, stream, why);
}

/* How many of the first `tokens` tokens sequences can share. The prompts of llama_begin must all begin with
   these tokens and be longer. Paged caches and caches of latents cannot be shared. */
static inline uint32_t llama_can_share(const llama *m, uint32_t tokens) {
    if (m->options.batch < 2 || m->options.page_size || m->config.latent) return 0;
    return tokens & ~15u; /* whole vectors of each cache and its factors */
}

/* Feeds the first n tokens of all prompts once, after llama_begin; n is from llama_can_share. Until the next
   llama_begin, steps read their keys and values once for all sequences, in layers without a window. */
static inline int llama_share_prefix(llama *m, uint32_t n, ptxcu_stream stream, gguf_error *why) {
    uint32_t length[LLAMA_SEQUENCES], lists = llama_cache_lists(m), b, layer, list, head;
    int bad;
    if (!n) return 0;
    if (n != llama_can_share(m, n))
        return gguf_fail(why, GGUF_NOWHERE, "%u tokens cannot be shared", (unsigned)n);
    memcpy(length, m->length, sizeof length);
    for (b = 0; b < m->options.batch; b++) {
        if (n >= length[b])
            return gguf_fail(why, GGUF_NOWHERE, "%u shared tokens, and a prompt has %u", (unsigned)n,
                             (unsigned)length[b]);
        m->kept[b] = b ? n : 0;
        m->length[b] = n;
    }
    bad = llama_feed(m, NULL, stream, why);
    memcpy(m->length, length, sizeof length);
    m->kept[0] = n;
    for (layer = 0; layer < m->config.layers; layer++)
        for (list = 0; list < lists; list++)
            for (head = 0; head < m->config.kv_heads; head++)
                for (b = 1; !bad && b < m->options.batch; b++) {
                    uint64_t at = llama_position_bytes(m, list, (uint64_t)head * m->options.max_seq)
                                  - m->caches.address;
                    uint64_t from = list < 2 ? llama_cache_address(m, layer, list, 0)
                                             : llama_factors_address(m, layer, list - 2, 0);
                    uint64_t to = list < 2 ? llama_cache_address(m, layer, list, b)
                                           : llama_factors_address(m, layer, list - 2, b);
                    bad = llama_cuda(m,
                                     ptxcu_copy(m->cu, m->caches, (size_t)(to + at), m->caches,
                                                (size_t)(from + at),
                                                (size_t)llama_position_bytes(m, list, n), stream),
                                     why);
                }
    return bad || llama_set_shared(m, n, stream, why);
}

/* -- drafts: several tokens of each sequence verified in one step -- */

/* Whether drafts may be a tree: not where attention has a window, or reads latents. */
static inline int llama_can_branch(const llama *m) {
    uint32_t n;
    for (n = 0; n < m->config.layers && !llama_window(m, n); n++) continue;
    return n == m->config.layers && !m->config.latent;
}

/* Feeds n tokens of each sequence b, 2 to 8, in one step (speculative decoding). Row 0 is the token that the
   next step would take. Rows 1 to n - 1 are drafts, guesses of the tokens after it: drafts[b * (n - 1) ...].
   Row i follows row parent[i - 1], which is below i; parent NULL: row i - 1. Row b * n + i of m->draft.logits
   are the logits after row i. A draft is accepted if its token is the one chosen from the logits of the row
   that it follows. line[b * n ...]: the tokens chosen from row 0 and from each accepted draft in turn. The
   first gained[b] of these, 1 to n, are appended to the sequence: all but the last are in its caches, and the
   next step takes the last. The known[b] tokens after them are those that further steps will choose; steps
   must feed them again, since their drafts are not at their positions in the caches (in a chain known is 0).
   chosen: the tokens chosen from all rows, or NULL. Each sequence needs n free positions. Waits for the
   stream. */
static inline int llama_verify_tree(llama *m, const uint32_t *drafts, const uint32_t *parent, uint32_t n,
                                    uint32_t *line, uint32_t *gained, uint32_t *known, uint32_t *chosen,
                                    ptxcu_stream stream, gguf_error *why) {
    enum { ROWS = LLAMA_SEQUENCES * LLAMA_DRAFTS };
    llama_list *l = &m->draft, *step = &m->step;
    uint32_t batch = m->options.batch, rows = n * batch, b, i, j, made;
    uint32_t token[LLAMA_SEQUENCES], at[LLAMA_SEQUENCES], length[LLAMA_SEQUENCES];
    uint32_t tokens[ROWS], positions[ROWS], cache_positions[ROWS], sequences[ROWS], sees[ROWS], all[ROWS];
    int bad;
    if (n < 2 || n > LLAMA_DRAFTS)
        return gguf_fail(why, GGUF_NOWHERE, "%u tokens to verify, must be 2 to %u", (unsigned)n,
                         (unsigned)LLAMA_DRAFTS);
    if (parent && !llama_can_branch(m))
        return gguf_fail(why, GGUF_NOWHERE, "a tree of drafts, and attention with a window or to latents");
    for (i = 1; parent && i < n; i++)
        if (parent[i - 1] >= i)
            return gguf_fail(why, GGUF_NOWHERE, "draft %u follows row %u, must follow one before its own",
                             (unsigned)i, (unsigned)parent[i - 1]);
    if (llama_cuda(m, ptxcu_download(m->cu, token, step->tokens, 0, batch * 4u, stream), why)
        || llama_cuda(m, ptxcu_download(m->cu, at, step->positions, 0, batch * 4u, stream), why)
        || llama_cuda(m, ptxcu_stream_sync(m->cu, stream), why))
        return 1;
    for (b = 0; b < batch; b++) {
        if (at[b] + 1 < m->length[b])
            return gguf_fail(why, GGUF_NOWHERE, "sequence %u is at token %u of a prompt of %u", (unsigned)b,
                             (unsigned)at[b], (unsigned)m->length[b]);
        if (n > m->options.max_seq || at[b] > m->options.max_seq - n)
            return gguf_fail(why, GGUF_NOWHERE, "%u tokens from position %u of sequence %u, of %u positions",
                             (unsigned)n, (unsigned)at[b], (unsigned)b, (unsigned)m->options.max_seq);
        for (i = 0; i < n; i++) {
            uint32_t row = b * n + i, parent_row = !i ? 0 : b * n + (parent ? parent[i - 1] : i - 1);
            tokens[row] = i ? drafts[b * (n - 1) + i - 1] : token[b];
            positions[row] = i ? positions[parent_row] + 1 : at[b];
            cache_positions[row] = at[b] + i;
            sees[row] = (i ? sees[parent_row] : 0) | 1u << i;
            sequences[row] = b;
            if (tokens[row] >= m->config.vocab)
                return gguf_fail(why, GGUF_NOWHERE, "token %u is none", (unsigned)tokens[row]);
        }
        length[b] = at[b] + n;
    }
    if (m->is_tree != (parent != NULL)) l->rows = 0;
    m->is_tree = parent != NULL;
    bad =
        (rows != l->rows && llama_build_list(m, l, rows, NULL, 0, why))
        || llama_cuda(m, ptxcu_upload(m->cu, l->tokens, 0, tokens, rows * 4u, stream), why)
        || llama_cuda(m, ptxcu_upload(m->cu, l->positions, 0, positions, rows * 4u, stream), why)
        || llama_cuda(m, ptxcu_upload(m->cu, l->cache_positions, 0, cache_positions, rows * 4u, stream), why)
        || llama_cuda(m, ptxcu_upload(m->cu, l->sequences, 0, sequences, rows * 4u, stream), why)
        || llama_cuda(m, ptxcu_upload(m->cu, m->branches, 0, sees, rows * 4u, stream), why)
        || llama_cuda(m, ptxcu_upload(m->cu, l->lengths, 0, length, batch * 4u, stream), why)
        || llama_queue_launches(m, l, 0, l->count, stream, why)
        || llama_cuda(m, ptxcu_download(m->cu, all, l->chosen, 0, rows * 4u, stream), why)
        || llama_cuda(m, ptxcu_stream_sync(m->cu, stream), why);
    if (bad) {
        ptxcu_stream_sync(m->cu, stream); /* what was queued before may still read these arrays */
        return 1;
    }
    for (b = 0; b < batch; b++) {
        const uint32_t *row = all + b * n;
        for (i = 0, made = 0, gained[b] = 0; i < n;) {
            line[b * n + made++] = row[i];
            if (i + 1 == made) gained[b] = made; /* rows 0 to i are at their positions in the caches */
            for (j = i + 1; j < n; j++)
                if ((parent ? parent[j - 1] : j - 1) == i && tokens[b * n + j] == row[i]) break;
            i = j;
        }
        known[b] = made - gained[b];
        token[b] = line[b * n + gained[b] - 1];
        at[b] += gained[b];
        length[b] = at[b] + 1;
    }
    if (chosen) memcpy(chosen, all, rows * sizeof *all);
    bad = llama_cuda(m, ptxcu_upload(m->cu, step->tokens, 0, token, batch * 4u, stream), why)
          || llama_cuda(m, ptxcu_upload(m->cu, step->positions, 0, at, batch * 4u, stream), why)
          || llama_cuda(m, ptxcu_upload(m->cu, step->lengths, 0, length, batch * 4u, stream), why)
          || llama_cuda(m, ptxcu_stream_sync(m->cu, stream), why);
    if (bad) ptxcu_stream_sync(m->cu, stream);
    return bad;
}

/* The same for a chain: each draft follows the one before it. chosen[b * n + i] is the token chosen after the
   first i + 1 tokens; the first gained[b] are appended. With temperature 0 these are the tokens that steps
   would choose; drawn tokens have other random numbers, with the same probabilities. */
static inline int llama_verify(llama *m, const uint32_t *drafts, uint32_t n, uint32_t *chosen,
                               uint32_t *gained, ptxcu_stream stream, gguf_error *why) {
    uint32_t line[LLAMA_SEQUENCES * LLAMA_DRAFTS], known[LLAMA_SEQUENCES];
    return llama_verify_tree(m, drafts, NULL, n, line, gained, known, chosen, stream, why);
}

/* -- the same in one launch for many tokens: ptxk_decoder -- */

typedef struct llama_persistent {
    ptxcu_program *program;
    ptx_plan plan;
    ptxk_decoder_args args;
    ptxcu_buffer layers, workspace;
    ptxk_decoder_state *state; /* host memory that the device writes while it runs */
    uint32_t *stop;            /* set it to 1 while the launch runs: it ends after the current token */
    uint32_t *tokens;          /* [batch, n], written as they are chosen */
    uint32_t n;
} llama_persistent;

static inline ptxk_decoder_matrix llama_matrix(const llama_tensor *w, const llama_tensor *bias,
                                               uint32_t *formats) {
    ptxk_decoder_matrix d;
    memset(&d, 0, sizeof d);
    if (!w->from) return d;
    d.weights = w->address;
    llama_format(w->from->format, &d.format);
    if (bias && bias->from) d.bias = bias->address;
    *formats |= PTXK_SET(d.format);
    return d;
}

static inline void llama_persistent_close(llama *m, llama_persistent *p) {
    ptxcu_free(m->cu, p->layers);
    ptxcu_free(m->cu, p->workspace);
    ptxcu_host_free(m->cu, p->state);
    memset(p, 0, sizeof *p);
}

/* Fills in the layers: *copy in host memory, for the check, to be freed even on error, and p->layers. */
static inline int llama_persistent_layers(llama *m, llama_persistent *p, ptxk_decoder_layer **copy,
                                          uint32_t *formats, gguf_error *why) {
    size_t bytes = m->config.layers * sizeof(ptxk_decoder_layer);
    ptxk_decoder_layer *layer = *copy = (ptxk_decoder_layer *)calloc(m->config.layers, sizeof *layer);
    uint32_t n;
    int bad = layer ? 0 : gguf_fail(why, GGUF_NOWHERE, "no memory");
#define LLAMA_OF(name) llama_layer_tensor(m, n, LLAMA_##name)
#define LLAMA_BIASED(name) llama_matrix(LLAMA_OF(name), LLAMA_OF(name##_BIAS), formats)
#define LLAMA_SHARED(name)                                                                                   \
    (m->config.experts ? llama_matrix(LLAMA_OF(SHARED_##name), NULL, formats) : LLAMA_BIASED(name))
    for (n = 0; !bad && n < m->config.layers; n++) {
        layer[n].attention_norm = llama_layer_tensor(m, n, LLAMA_ATTENTION_NORM)->address;
        layer[n].ffn_norm = llama_layer_tensor(m, n, LLAMA_FFN_NORM)->address;
        layer[n].k_cache = llama_cache_address(m, n, 0, 0);
        layer[n].v_cache = llama_cache_address(m, n, 1, 0);
        layer[n].q = LLAMA_BIASED(Q);
        layer[n].k = LLAMA_BIASED(K);
        layer[n].v = LLAMA_BIASED(V);
        layer[n].output = LLAMA_BIASED(O);
        layer[n].gate = LLAMA_SHARED(GATE);
        layer[n].up = LLAMA_SHARED(UP);
        layer[n].down = LLAMA_SHARED(DOWN);
        layer[n].q_norm = LLAMA_OF(Q_NORM)->address;
        layer[n].k_norm = LLAMA_OF(K_NORM)->address;
        layer[n].sinks = LLAMA_OF(SINKS)->address;
        layer[n].sees_all = llama_window(m, n) == 0;
        layer[n].router = LLAMA_BIASED(ROUTER);
        layer[n].shared_router = llama_matrix(LLAMA_OF(SHARED_ROUTER), NULL, formats);
        layer[n].expert_gate = LLAMA_BIASED(GATE_EXPERTS);
        layer[n].expert_up = LLAMA_BIASED(UP_EXPERTS);
        layer[n].expert_down = LLAMA_BIASED(DOWN_EXPERTS);
        layer[n].balance = LLAMA_OF(EXPERTS_BALANCE)->address;
    }
#undef LLAMA_OF
#undef LLAMA_BIASED
#undef LLAMA_SHARED
    bad = bad || llama_cuda(m, ptxcu_alloc(m->cu, bytes, &p->layers), why)
          || llama_cuda(m, ptxcu_upload(m->cu, p->layers, 0, layer, bytes, NULL), why)
          || llama_cuda(m, ptxcu_sync(m->cu), why);
    return bad;
}

/* What the persistent kernel lacks for this model; NULL: nothing. */
static inline const char *llama_persistent_lacks(const llama *m) {
    const llama_config *c = &m->config;
    const llama_architecture *a = c->architecture;
    uint32_t n;
    if (llama_ranks(m) > 1) return "several ranks";
    if (m->options.page_size) return "caches of pages";
    if (llama_has_byte_caches(m)) return "caches of 8 bits";
    if (c->latent) return "latents";
    if (c->experts && c->chosen * m->options.batch > 32) return "more than 32 choices of all sequences";
    if (a->norm != LLAMA_RMS) return "LayerNorm";
    if (a->norm_places & LLAMA_AFTER) return "norms behind products";
    if (a->norm_places == LLAMA_PARALLEL) return "attention and feed-forward side by side";
    if (a->qk_norm == LLAMA_QK_ROWS) return "norms of whole rows of q and k";
    if (a->activation == LLAMA_GELU) return "a feed-forward without a gate";
    if (c->attention_cap > 0 || c->final_cap > 0) return "soft caps";
    if (a->qk_norm && (c->residual_scale < 1 || c->residual_scale > 1))
        return "a scaled residual beside norms of q and k";
    for (n = 0; n < c->layers; n++) {
        if (llama_is_local(c, n) && c->local_theta > 0) return "layers that are rotated in another way";
        if (!llama_is_rotated(c, n)) return "layers that are not rotated";
    }
    return NULL;
}

/* Prepares a launch that generates n tokens of each sequence that llama_begin has started, or fewer where
   one of end_count end tokens (at most PTXK_DECODER_ENDS) comes first. */
static inline int llama_persistent_open(llama *m, llama_persistent *p, uint32_t n, const uint32_t *end_tokens,
                                        uint32_t end_count, gguf_error *why) {
    const llama_config *c = &m->config;
    const llama_tensor *output = &m->tensor[m->tensor[LLAMA_OUTPUT].from ? LLAMA_OUTPUT : LLAMA_EMBEDDING];
    ptxk_decoder_layer *layers;
    ptxk_decoder_desc desc;
    ptxk_decoder_shape shape;
    void *host = NULL;
    uint32_t i;
    int bad;
    memset(p, 0, sizeof *p);
    memset(&desc, 0, sizeof desc);
    if (llama_persistent_lacks(m))
        return gguf_fail(why, GGUF_NOWHERE, "the persistent kernel does not have: %s",
                         llama_persistent_lacks(m));
    p->n = n;
    p->args.embedding = llama_matrix(&m->tensor[LLAMA_EMBEDDING], NULL, &desc.formats);
    p->args.output = llama_matrix(output, &m->tensor[LLAMA_OUTPUT_BIAS], &desc.formats);
    bad = llama_persistent_layers(m, p, &layers, &desc.formats, why);
    desc.hidden = c->hidden;
    desc.ffn = c->experts ? c->shared_ffn : c->ffn;
    desc.heads = c->heads;
    desc.kv_heads = c->kv_heads;
    desc.head_dim = c->head_dim;
    desc.vocab = c->vocab;
    desc.batch = m->options.batch;
    desc.kv_type = m->options.kv_type;
    desc.rope_dims = c->rope_dims;
    desc.rope_pairs = c->rope_pairs;
    desc.scale = (float)c->score_scale;
    desc.head_norms = c->architecture->qk_norm != 0;
    for (i = 0; i < c->layers; i++)
        if (llama_window(m, i)) desc.window = llama_window(m, i);
    desc.embedding_scale = (float)(c->embedding_scale / c->residual_scale);
    if (!(desc.embedding_scale < 1 || desc.embedding_scale > 1)) desc.embedding_scale = 0;
    desc.activation = c->architecture->activation == LLAMA_GEGLU     ? PTXK_GELU
                      : c->architecture->activation == LLAMA_CLAMPED ? PTXK_SWIGLU_CLAMPED
                                                                     : PTXK_SILU;
    desc.sinks = LLAMA_HAS_SINKS(c->architecture);
    desc.expert_ffn = c->expert_ffn;
    desc.shared_router = c->shared_ffn != 0;
    desc.route = llama_route(m, layers ? layers[c->layers - 1].balance : 0);
    memset(&shape, 0, sizeof shape);
    shape.layers = c->layers;
    shape.max_seq = m->options.max_seq;
    shape.sm_count = ptxcu_device_info(m->cu)->sm_count;
    if (bad || llama_check_plan(m, ptxk_decoder_plan(&desc, &shape, &p->plan, &m->message), why)
        || llama_cuda(m, ptxcu_operation(m->cu, ptxk_operation_find("decoder"), &desc, &p->program), why)
        || llama_cuda(m, ptxcu_alloc(m->cu, (size_t)p->plan.workspace_bytes, &p->workspace), why)
        || llama_cuda(m, ptxcu_host_alloc(m->cu, sizeof *p->state + 64 + 4ull * n * desc.batch, &host),
                      why)) {
        free(layers);
        llama_persistent_close(m, p);
        return 1;
    }
    memset(host, 0, sizeof *p->state + 64);
    p->state = (ptxk_decoder_state *)host;
    p->stop = (uint32_t *)(p->state + 1);
    p->tokens = p->stop + 16;
    p->args.layers = p->layers.address;
    p->args.frequencies = m->frequencies.address;
    p->args.final_norm = m->tensor[LLAMA_OUTPUT_NORM].address;
    p->args.prompt = m->prompts.address;
    p->args.prompt_lengths = m->prompt_lengths.address;
    p->args.positions = m->step.positions.address;
    p->args.logits = m->step.logits.address;
    p->args.tokens = (uint64_t)(uintptr_t)p->tokens;
    p->args.state = (uint64_t)(uintptr_t)p->state;
    p->args.stop = (uint64_t)(uintptr_t)p->stop;
    p->args.workspace = p->workspace.address;
    p->args.seed = m->options.seed;
    p->args.layer_count = c->layers;
    p->args.max_seq = p->args.prompt_stride = m->options.max_seq;
    p->args.tokens_stride = p->args.n = n;
    p->args.end_count = end_count;
    for (i = 0; i < end_count && i < PTXK_DECODER_ENDS; i++) p->args.end_tokens[i] = end_tokens[i];
    p->args.top_k = m->options.top_k;
    p->args.temperature = m->options.temperature;
    p->args.top_p = m->options.top_p;
    p->args.eps = llama_stream_eps(m);
    bad = llama_check_plan(m, ptxk_decoder_check(&desc, &p->args, layers, &m->message), why);
    free(layers);
    if (bad) llama_persistent_close(m, p);
    return bad;
}

/* Queues the launch. p->state and p->tokens may be read while it runs; llama_persistent_end waits for it. */
static inline int llama_persistent_launch(llama *m, llama_persistent *p, ptxcu_stream stream,
                                          gguf_error *why) {
    return llama_cuda(m, ptxcu_run(m->cu, p->program, &p->plan, &p->args, sizeof p->args, stream), why);
}

/* Waits for the launch, and reports its error; without one, p->state->status says how it ended (DONE,
   STOPPED, FULL). Each sequence then continues after its new tokens, by steps or by another such launch; a
   sequence without new tokens is unchanged. */
static inline int llama_persistent_end(llama *m, llama_persistent *p, ptxcu_stream stream, gguf_error *why) {
    const ptxk_decoder_state *state = p->state;
    uint32_t b;
    if (llama_cuda(m, ptxcu_stream_sync(m->cu, stream), why)) return 1;
    if (state->status == PTXK_DECODER_STARVED)
        return gguf_fail(why, GGUF_NOWHERE, "block %u starved at token %u, layer %u: '%s' waited for tile %u",
                         state->block, state->position, state->layer, ptxk_decoder_step_name(state->step),
                         state->tile);
    if (state->status == PTXK_DECODER_REFUSED)
        return gguf_fail(why, GGUF_NOWHERE, "sequence %u does not fit: %s", state->tile,
                         ptxk_decoder_step_name(state->step));
    for (b = 0; b < m->options.batch; b++) {
        if (!state->written[b]) continue;
        if (llama_set_state(m, b, p->tokens[(size_t)b * p->n + state->written[b] - 1], state->length[b],
                            stream, why))
            return 1;
    }
    return llama_cuda(m, ptxcu_stream_sync(m->cu, stream), why);
}

/* Prepares the next launch to continue sequences from their state after steps, or after another such launch:
   n more tokens of each, at most as many as p was opened for. All must be past their prompts. */
static inline int llama_persistent_resume(llama *m, llama_persistent *p, uint32_t n, ptxcu_stream stream,
                                          gguf_error *why) {
    uint32_t position[4], prompt[4], b;
    if (llama_cuda(m, ptxcu_download(m->cu, position, m->step.positions, 0, m->step.positions.bytes, stream),
                   why)
        || llama_cuda(m, ptxcu_download(m->cu, prompt, m->prompt_lengths, 0, m->step.positions.bytes, stream),
                      why)
        || llama_cuda(m, ptxcu_stream_sync(m->cu, stream), why))
        return 1;
    for (b = 0; b < m->options.batch; b++)
        if (position[b] + 1 < prompt[b])
            return gguf_fail(why, GGUF_NOWHERE, "sequence %u is at token %u of a prompt of %u", (unsigned)b,
                             (unsigned)position[b], (unsigned)prompt[b]);
    if (n > p->n)
        return gguf_fail(why, GGUF_NOWHERE, "%u tokens, opened for %u", (unsigned)n, (unsigned)p->n);
    memset(p->state, 0, sizeof *p->state);
    *p->stop = 0;
    p->args.prompt = m->step.tokens.address;
    p->args.prompt_stride = 1;
    p->args.prompt_lengths = m->ones.address;
    p->args.n = n;
    return 0;
}

#endif
