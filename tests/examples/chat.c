/* chat.c - what stands around the messages of a chat (examples/chat.h): each template is recognised by what a file's
 * own says, and writes what that would. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "../check.h"
#include "../../examples/chat.h"
#include "../ggufmake.h"

/* What files say, cut down to what matters, and what becomes of: the system's S, the user's U, an answer A, the
 * user's V. <s> and </s> begin and end texts. */
static const struct {
    const char *name, *jinja, *want;
} cases[] = {
    {"phi4", "{{'<|im_start|>user<|im_sep|>' + message['content'] + '<|im_end|>'}}",
     "<|im_start|>system<|im_sep|>S<|im_end|><|im_start|>user<|im_sep|>U<|im_end|><|im_start|>assistant<|im_sep|>A"
     "<|im_end|><|im_start|>user<|im_sep|>V<|im_end|><|im_start|>assistant<|im_sep|>"},
    {"chatml", "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}",
     "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n"
     "<|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n"},
    {"llama3", "{{ '<|start_header_id|>' + role + '<|end_header_id|>\\n\\n' + content | trim + '<|eot_id|>' }}",
     "<|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nU<|eot_id|>"
     "<|start_header_id|>assistant<|end_header_id|>\n\nA<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nV"
     "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
    {"llama4", "{{- '<|header_start|>' + role + '<|header_end|>\\n\\n' }}{{ content }}{{ '<|eot|>' }}",
     "<|header_start|>system<|header_end|>\n\nS<|eot|><|header_start|>user<|header_end|>\n\nU<|eot|><|header_start|>"
     "assistant<|header_end|>\n\nA<|eot|><|header_start|>user<|header_end|>\n\nV<|eot|><|header_start|>assistant"
     "<|header_end|>\n\n"},
    {"gemma", "{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}",
     "<start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n<start_of_turn>user\nV"
     "<end_of_turn>\n<start_of_turn>model\n"},
    {"granite", "{{- '<|start_of_role|>user<|end_of_role|>' + message['content'] + '<|end_of_text|>\\n' }}",
     "<|start_of_role|>system<|end_of_role|>S<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>U<|end_of_text|>\n"
     "<|start_of_role|>assistant<|end_of_role|>A<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>V<|end_of_text|>\n"
     "<|start_of_role|>assistant<|end_of_role|>"},
    {"harmony", "{{- \"<|start|>assistant<|channel|>final<|message|>\" + message.content + \"<|return|>\" }}",
     "<|start|>system<|message|>S<|end|><|start|>user<|message|>U<|end|><|start|>assistantA<|end|>"
     "<|start|>user<|message|>V<|end|><|start|>assistant"},
    {"command-r", "{{ '<|START_OF_TURN_TOKEN|><|USER_TOKEN|>' }}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}",
     "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>S<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>U"
     "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>A<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|>"
     "<|USER_TOKEN|>V<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"},
    {"deepseek3",
     "{{'<\xef\xbd\x9cUser\xef\xbd\x9c>' + content}}{{'<\xef\xbd\x9c"
     "Assistant\xef\xbd\x9c>'}}",
     "S<\xef\xbd\x9cUser\xef\xbd\x9c>U<\xef\xbd\x9c"
     "Assistant\xef\xbd\x9c>A</s><\xef\xbd\x9cUser\xef\xbd\x9c>V<\xef\xbd\x9c"
     "Assistant\xef\xbd\x9c>"},
    {"mistral-v7", "{{ '[SYSTEM_PROMPT] ' + content + '[/SYSTEM_PROMPT]' }}{{ '[INST] ' + content + '[/INST]' }}",
     "[SYSTEM_PROMPT] S[/SYSTEM_PROMPT][INST] U[/INST]A</s>[INST] V[/INST]"},
    {"mistral-v7-tekken", "{{ '[SYSTEM_PROMPT]' + content + '[/SYSTEM_PROMPT]' }}{{ '[INST]' + content }}",
     "[SYSTEM_PROMPT]S[/SYSTEM_PROMPT][INST]U[/INST]A</s>[INST]V[/INST]"},
    {"llama2", "{{ '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' }}{{ bos_token + '[INST] ' + content + ' [/INST]' }}",
     "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST]A</s><s>[INST] V [/INST]"},
    {"mistral-v1", "{{ bos_token }}{{ ' [INST] ' + message['content'] + ' [/INST]' }}",
     " [INST] S\n\nU [/INST]A</s> [INST] V [/INST]"},
    {"mistral-v3-tekken", "{{- \"[INST]\" + message[\"content\"] + \"[/INST]\" }}",
     "[INST]S\n\nU[/INST]A</s>[INST]V[/INST]"},
    {"mistral-v3", "{{- \"[INST] \" + message[\"content\"] + \"[/INST]\" }}",
     "[INST] S\n\nU[/INST]A</s>[INST] V[/INST]"},
    {"phi4-mini", "{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{{ '<|assistant|>' }}",
     "<|system|>S<|end|><|user|>U<|end|><|assistant|>A<|end|><|user|>V<|end|><|assistant|>"},
    {"phi3", "{{'<|user|>\\n' + message['content'] + '<|end|>\\n<|assistant|>\\n'}}",
     "<|system|>\nS<|end|>\n<|user|>\nU<|end|>\n<|assistant|>\nA<|end|>\n<|user|>\nV<|end|>\n<|assistant|>\n"},
    {"zephyr", "{{ '<|user|>\\n' + message['content'] + eos_token }}{{ '<|assistant|>' }}",
     "<|system|>\nS</s>\n<|user|>\nU</s>\n<|assistant|>\nA</s>\n<|user|>\nV</s>\n<|assistant|>\n"},
    {"tulu", "{{ '<|user|>\\n' + message['content'] + '\\n' }}{{ '<|assistant|>\\n' + content + eos_token }}",
     "<|system|>\nS\n<|user|>\nU\n<|assistant|>\nA</s>\n<|user|>\nV\n<|assistant|>\n"},
    {"vicuna", "{{ 'USER: ' + message['content'] + '\\n' }}{{ 'ASSISTANT:' }}",
     "S\n\nUSER: U\nASSISTANT:A</s>\nUSER: V\nASSISTANT:"},
};

static int read_jinja(gguf *g, gguf_maker *m, const char *jinja)
{
    gguf_error why;
    make_start(m, 0, 2);
    make_value_text(m, "general.name", "x");
    make_value_text(m, jinja ? "tokenizer.chat_template" : "other", jinja ? jinja : "");
    return CHECK_MORE(gguf_parse(g, m->at, m->bytes, m->bytes, &why) == 0, why.text);
}

/* The first of a template's tokens that a tokeniser lacks. */
static void test_missing(void)
{
    static gguf_text pieces[] = {{"<|end|>", 7}, {"<|message|>", 11}, {"<|return|>", 10}, {"<|start|>", 9}};
    static uint32_t sorted[] = {0, 1, 2, 3};
    const chat_template *t = chat_find("harmony");
    tokeniser words;
    memset(&words, 0, sizeof words);
    words.token = pieces;
    words.sorted = sorted;
    words.count = 4;
    CHECK(chat_missing(t, &words).bytes == 0);
    words.count = 3;
    CHECK(gguf_is(chat_missing(t, &words), "<|start|>"));
    sorted[2] = 3;
    CHECK(gguf_is(chat_missing(t, &words), "<|return|>"));
}

/* A reply that has ended in <|return|> ends in <|end|> once a message follows; one that was cut off, too. */
static void test_kept_end(void)
{
    static gguf_text pieces[] = {{"<|call|>", 8}, {"<|end|>", 7}, {"<|im_end|>", 10}, {"<|return|>", 10}};
    static uint32_t sorted[] = {0, 1, 2, 3};
    tokeniser words;
    chat_text c;
    uint32_t last = 3;
    memset(&words, 0, sizeof words);
    memset(&c, 0, sizeof c);
    words.token = pieces;
    words.sorted = sorted;
    words.count = 4;
    c.words = &words;
    chat_close(&c, chat_find("harmony"), 0, &last);
    CHECK(last == 1 && !c.bytes);
    last = 0;
    chat_close(&c, chat_find("harmony"), 0, &last);
    CHECK(last == 0 && !c.bytes); /* another end stays */
    last = 2;
    chat_close(&c, chat_find("chatml"), 0, &last);
    CHECK(last == 2 && !c.bytes);
    chat_close(&c, chat_find("harmony"), 1, &last);
    CHECK(last == 2 && c.bytes == 7 && !memcmp(c.text, "<|end|>", 7) && c.marks[0]);
    chat_free(&c);
}

/* Files whose template is none of these, and files without one. */
static void test_unknown(void)
{
    gguf_maker m = {0};
    gguf g;
    gguf_error why;
    char names[300];
    if (read_jinja(&g, &m, "{{ 'Question: ' + message['content'] }}")) {
        CHECK(!chat_recognise(&g, &why));
        CHECK_MORE(strstr(why.text, "'tokenizer.chat_template' is none of those known here")
                       && strstr(why.text, "Question: ") && strstr(why.text, "--template"),
                   why.text);
        gguf_free(&g);
    }
    if (read_jinja(&g, &m, NULL)) {
        CHECK(!chat_recognise(&g, &why));
        CHECK_MORE(strstr(why.text, "there is no 'tokenizer.chat_template'"), why.text);
        gguf_free(&g);
    }
    m.bytes = 0;
    make_start(&m, 0, 1);
    make_value_u32(&m, "tokenizer.chat_template", 3);
    if (CHECK(!gguf_parse(&g, m.at, m.bytes, m.bytes, &why))) {
        CHECK(!chat_recognise(&g, &why));
        CHECK_MORE(strstr(why.text, "'tokenizer.chat_template' is no text"), why.text);
        gguf_free(&g);
    }
    test_missing();
    test_kept_end();
    CHECK(!chat_find("alpaca") && chat_find("llama3"));
    CHECK(strstr(chat_names(names), "phi4 chatml") && strstr(names, " vicuna"));
    free(m.at);
}

int main(void)
{
    static gguf_text pieces[2] = {{"<s>", 3}, {"</s>", 4}};
    static uint32_t sorted[2] = {1, 0};
    gguf_maker m = {0};
    tokeniser words;
    uint32_t last = 0;
    size_t i, k, own;
    memset(&words, 0, sizeof words);
    words.token = pieces;
    words.count = 2;
    words.eos = 1;
    words.sorted = sorted;
    CHECK(sizeof cases / sizeof *cases == CHAT_TEMPLATES);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        const chat_template *t = NULL;
        gguf g;
        gguf_error why;
        chat_text c;
        if (!read_jinja(&g, &m, cases[i].jinja)) continue;
        t = chat_recognise(&g, &why);
        gguf_free(&g);
        if (!CHECK_MORE(t && !strcmp(t->name, cases[i].name), t ? t->name : cases[i].name)) continue;
        CHECK(t == chat_find(cases[i].name));
        CHECK(!chat_missing(t, &words).bytes == !!(t->flags & CHAT_PLAIN)); /* these words have hardly any token */
        memset(&c, 0, sizeof c);
        c.words = &words;
        chat_ask(&c, t, 1, "S", "U");
        chat_message(&c, "A");
        chat_close(&c, t, 1, &last);
        chat_ask(&c, t, 0, "S", "V");
        chat_put(&c, "", 1, 0);
        CHECK(!c.failed && c.bytes == strlen(cases[i].want) + 1);
        CHECK_MORE(!strcmp(c.text, cases[i].want), c.text);
        for (k = own = 0; k + 1 < c.bytes; k++) own += !c.marks[k]; /* S U A V are not of the template */
        CHECK(own == 4);
        chat_free(&c);
        memset(&c, 0, sizeof c); /* without a message of the system */
        c.words = &words;
        chat_frame(&c, t->user[0]);
        chat_message(&c, "U");
        chat_frame(&c, t->user[1]);
        chat_frame(&c, t->reply);
        k = c.bytes;
        chat_ask(&c, t, 1, "", "U");
        CHECK(c.bytes == 2 * k && !memcmp(c.text, c.text + k, k));
        chat_free(&c);
    }
    test_unknown();
    free(m.at);
    return check_end();
}
