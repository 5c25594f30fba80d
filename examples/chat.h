/* chat.h - what stands around messages, by the template that a model was trained with.

   A GGUF file carries its template as a program in Jinja (tokenizer.chat_template). Nothing here runs that:
   the usual ones are recognised by what only they hold, and are written by a table. Control tokens of a
   template are marked (see tokeniser_encode_marked); a message that holds their text stays text. */
#ifndef EXAMPLES_CHAT_H
#define EXAMPLES_CHAT_H

#include "tokeniser.h"

/* What stands around a message of the system, of the user and of the model. INSIDE: the system's stands
   within the first message of the user. PLAIN: what stands in brackets may be text; elsewhere it is a token.
   ALIKE: a reply with a message behind it ends as the user's messages do. between: behind the end of a reply,
   before the user's next message. \1 and \2 are the tokens of the file that begin and that end texts. */
enum { CHAT_INSIDE = 1, CHAT_PLAIN = 2, CHAT_ALIKE = 4 };
typedef struct chat_template {
    const char *name;
    const char *holds[2], *lacks; /* in the file's template; NULL: nothing */
    int flags;
    const char *system[2], *user[2], *reply, *reply_end, *between;
} chat_template;

/* In the order in which they are tried. */
/* clang-format off */
static const chat_template chat_templates[] = {
    {"phi4", {"<|im_start|>", "<|im_sep|>"}, NULL, 0, {"<|im_start|>system<|im_sep|>", "<|im_end|>"},
     {"<|im_start|>user<|im_sep|>", "<|im_end|>"}, "<|im_start|>assistant<|im_sep|>", "<|im_end|>", ""},
    {"chatml", {"<|im_start|>", NULL}, NULL, 0, {"<|im_start|>system\n", "<|im_end|>\n"},
     {"<|im_start|>user\n", "<|im_end|>\n"}, "<|im_start|>assistant\n", "<|im_end|>", "\n"},
    {"llama3", {"<|start_header_id|>", "<|eot_id|>"}, NULL, 0,
     {"<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"},
     {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"},
     "<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>", ""},
    {"llama4", {"<|header_start|>", "<|eot|>"}, NULL, 0,
     {"<|header_start|>system<|header_end|>\n\n", "<|eot|>"},
     {"<|header_start|>user<|header_end|>\n\n", "<|eot|>"}, "<|header_start|>assistant<|header_end|>\n\n",
     "<|eot|>", ""},
    {"gemma", {"<start_of_turn>", NULL}, NULL, CHAT_INSIDE, {"", "\n\n"},
     {"<start_of_turn>user\n", "<end_of_turn>\n"}, "<start_of_turn>model\n", "<end_of_turn>", "\n"},
    {"granite", {"<|start_of_role|>", NULL}, NULL, 0,
     {"<|start_of_role|>system<|end_of_role|>", "<|end_of_text|>\n"},
     {"<|start_of_role|>user<|end_of_role|>", "<|end_of_text|>\n"},
     "<|start_of_role|>assistant<|end_of_role|>", "<|end_of_text|>", "\n"},
    {"harmony", {"<|start|>", "<|channel|>"}, NULL, CHAT_ALIKE, {"<|start|>system<|message|>", "<|end|>"},
     {"<|start|>user<|message|>", "<|end|>"}, "<|start|>assistant", "<|return|>", ""},
    {"command-r", {"<|START_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>"}, NULL, 0,
     {"<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", "<|END_OF_TURN_TOKEN|>"},
     {"<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|END_OF_TURN_TOKEN|>"},
     "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>", ""},
    {"deepseek3", {"<\xef\xbd\x9c" "Assistant\xef\xbd\x9c>", NULL}, NULL, 0, {"", ""},
     {"<\xef\xbd\x9cUser\xef\xbd\x9c>", ""}, "<\xef\xbd\x9c" "Assistant\xef\xbd\x9c>", "\2", ""},
    {"mistral-v7", {"[SYSTEM_PROMPT] ", NULL}, NULL, 0, {"[SYSTEM_PROMPT] ", "[/SYSTEM_PROMPT]"},
     {"[INST] ", "[/INST]"}, "", "\2", ""},
    {"mistral-v7-tekken", {"[SYSTEM_PROMPT]", NULL}, NULL, 0, {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"},
     {"[INST]", "[/INST]"}, "", "\2", ""},
    {"llama2", {"[INST]", "<<SYS>>"}, NULL, CHAT_INSIDE | CHAT_PLAIN, {"<<SYS>>\n", "\n<</SYS>>\n\n"},
     {"\1[INST] ", " [/INST]"},
     "", "\2", ""},
    {"mistral-v1", {" [INST]", NULL}, NULL, CHAT_INSIDE | CHAT_PLAIN, {"", "\n\n"}, {" [INST] ",
     " [/INST]"}, "", "\2", ""},
    {"mistral-v3-tekken", {"\"[INST]\"", NULL}, NULL, CHAT_INSIDE, {"", "\n\n"}, {"[INST]", "[/INST]"}, "",
     "\2", ""},
    {"mistral-v3", {"[INST]", NULL}, NULL, CHAT_INSIDE | CHAT_PLAIN, {"", "\n\n"}, {"[INST] ", "[/INST]"},
     "", "\2", ""},
    {"phi4-mini", {"'<|' + message['role'] + '|>' + message['content']", "<|end|>"}, NULL, 0,
     {"<|system|>", "<|end|>"}, {"<|user|>", "<|end|>"}, "<|assistant|>", "<|end|>", ""},
    {"phi3", {"<|assistant|>", "<|end|>"}, NULL, 0,
     {"<|system|>\n", "<|end|>\n"}, {"<|user|>\n", "<|end|>\n"},
     "<|assistant|>\n", "<|end|>", "\n"},
    {"zephyr", {"<|user|>\\n' + message['content'] + eos_token", NULL}, NULL, CHAT_PLAIN, {"<|system|>\n",
     "\2\n"},
     {"<|user|>\n", "\2\n"}, "<|assistant|>\n", "\2", "\n"},
    {"tulu", {"<|user|>\\n", "<|assistant|>\\n"}, "[gMASK]", CHAT_PLAIN, {"<|system|>\n", "\n"},
     {"<|user|>\n", "\n"},
     "<|assistant|>\n", "\2", "\n"},
    {"vicuna", {"USER: ", "ASSISTANT:"}, NULL, CHAT_PLAIN, {"", "\n\n"}, {"USER: ", "\n"}, "ASSISTANT:",
     "\2", "\n"}};
/* clang-format on */
enum { CHAT_TEMPLATES = sizeof chat_templates / sizeof *chat_templates };

/* Their names, with spaces between them, for messages: of 250 bytes. */
static inline const char *chat_names(char *room) {
    size_t n = 0, i;
    room[0] = 0;
    for (i = 0; i < CHAT_TEMPLATES && n < 250; i++)
        n += (size_t)snprintf(room + n, 250 - n, "%s%s", i ? " " : "", chat_templates[i].name);
    return room;
}

static inline const chat_template *chat_find(const char *name) {
    size_t i;
    for (i = 0; i < CHAT_TEMPLATES; i++)
        if (!strcmp(chat_templates[i].name, name)) return &chat_templates[i];
    return NULL;
}

static inline int chat_holds(gguf_text text, const char *word) {
    size_t n = strlen(word), i;
    for (i = 0; i + n <= text.bytes; i++)
        if (!memcmp(text.at + i, word, n)) return 1;
    return 0;
}

/* The template of the file, or NULL with *why. */
static inline const chat_template *chat_recognise(const gguf *g, gguf_error *why) {
    static const char key[] = "tokenizer.chat_template";
    gguf_text text;
    size_t i;
    if (!gguf_get_text(g, key, &text)) {
        gguf_fail(why, gguf_place(g, key),
                  gguf_find(g, key) ? "'%s' is no text: choose one by --template"
                                    : "there is no '%s': choose one by --template",
                  key);
        return NULL;
    }
    for (i = 0; i < CHAT_TEMPLATES; i++) {
        const chat_template *t = &chat_templates[i];
        if ((!t->holds[0] || chat_holds(text, t->holds[0])) && (!t->holds[1] || chat_holds(text, t->holds[1]))
            && !(t->lacks && chat_holds(text, t->lacks)))
            return t;
    }
    gguf_fail(why, gguf_place(g, key),
              "'%s' is none of those known here, it begins '%.*s': choose one by --template", key,
              gguf_shown(text) < 60 ? gguf_shown(text) : 60, text.at);
    return NULL;
}

/* What a template writes in brackets and the tokeniser does not have, though it is no text there; of no
   bytes: nothing. */
static inline gguf_text chat_missing(const chat_template *t, const tokeniser *words) {
    const char *const frames[] = {t->system[0], t->system[1], t->user[0],
                                  t->user[1],   t->reply,     t->reply_end};
    gguf_text token = {"", 0};
    size_t i;
    for (i = 0; i < 6 && !(t->flags & CHAT_PLAIN); i++) {
        const char *at = frames[i];
        while ((at = strpbrk(at, "<[")) != NULL) {
            token.at = at;
            token.bytes = strcspn(at, ">]") + 1;
            if (tokeniser_find(words, token) == TOKEN_NONE) return token;
            at += token.bytes;
        }
    }
    token.bytes = 0;
    return token;
}

/* A text, and of each byte whether control tokens are looked for there. */
typedef struct chat_text {
    const tokeniser *words;
    char *text, *marks;
    size_t bytes, room;
    int failed; /* no memory */
} chat_text;

static inline void chat_free(chat_text *c) {
    free(c->text);
    free(c->marks);
    memset(c, 0, sizeof *c);
}

static inline void chat_put(chat_text *c, const char *text, size_t bytes, int marked) {
    if (c->bytes + bytes > c->room) {
        size_t room = 2 * (c->bytes + bytes) + 256;
        char *more = (char *)realloc(c->text, room), *marks;
        if (more) c->text = more;
        marks = (char *)realloc(c->marks, room);
        if (marks) c->marks = marks;
        if (!more || !marks) {
            c->failed = 1;
            return;
        }
        c->room = room;
    }
    if (!bytes) return;
    memcpy(c->text + c->bytes, text, bytes);
    memset(c->marks + c->bytes, marked, bytes);
    c->bytes += bytes;
}

static inline void chat_message(chat_text *c, const char *text) { chat_put(c, text, strlen(text), 0); }

/* A part of a template. */
static inline void chat_frame(chat_text *c, const char *text) {
    for (; *text; text++) {
        uint32_t token = *text == 1 ? c->words->bos : *text == 2 ? c->words->eos : TOKEN_NONE;
        if (token != TOKEN_NONE)
            chat_put(c, c->words->token[token].at, c->words->token[token].bytes, 1);
        else if (*text > 2 || *text < 0)
            chat_put(c, text, 1, 1);
    }
}

/* Adds a message of the user, and what the reply begins with. first: with the system's message, or NULL. */
static inline void chat_ask(chat_text *c, const chat_template *t, int first, const char *system,
                            const char *message) {
    int speaks = first && system && *system;
    if (!first) chat_frame(c, t->between);
    if (t->flags & CHAT_INSIDE) chat_frame(c, t->user[0]);
    if (speaks) {
        chat_frame(c, t->system[0]);
        chat_message(c, system);
        chat_frame(c, t->system[1]);
    }
    if (!(t->flags & CHAT_INSIDE)) chat_frame(c, t->user[0]);
    chat_message(c, message);
    chat_frame(c, t->user[1]);
    chat_frame(c, t->reply);
}

static inline uint32_t chat_token(const char *name, const tokeniser *words) {
    gguf_text text;
    text.at = name;
    text.bytes = strlen(name);
    return *name == 2 ? words->eos : tokeniser_find(words, text);
}

/* The token that ends a reply; TOKEN_NONE: the tokeniser has none. */
static inline uint32_t chat_end(const chat_template *t, const tokeniser *words) {
    return chat_token(t->reply_end, words);
}

/* Ends a reply in front of the next message. *last: its last token, in whose place another may stand from now
   on. cut: it is no end. */
static inline void chat_close(chat_text *c, const chat_template *t, int cut, uint32_t *last) {
    const char *end = t->flags & CHAT_ALIKE ? t->user[1] : t->reply_end;
    if (cut)
        chat_frame(c, end);
    else if (t->flags & CHAT_ALIKE && *last == chat_end(t, c->words))
        *last = chat_token(end, c->words);
}

#endif
