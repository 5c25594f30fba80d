/* unicode.h - classes of Unicode characters, as the words of byte pair encodings are cut by them. */
#ifndef EXAMPLES_UNICODE_H
#define EXAMPLES_UNICODE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    UNICODE_OTHER,       /* O: controls, formats, private use */
    UNICODE_UPPER,       /* U: upper case and title case */
    UNICODE_LOWER,       /* L */
    UNICODE_TEXT,        /* T: letters without case, modifiers */
    UNICODE_MARK,        /* M */
    UNICODE_DIGIT,       /* N: numbers of any kind */
    UNICODE_SPACE,       /* S: white space */
    UNICODE_TURNS,       /* X: upper and lower case by turns; not a class of a character */
    UNICODE_PUNCTUATION, /* P */
    UNICODE_SYMBOL       /* Y */
};

/* All characters from U+0000 on, in runs of one class: its letter, then how many in base 36; without a number
   one. Unicode 14; characters that it leaves out have the class of the one before. tests/unicode.py makes
   this. */
static const char unicode_runs[] =
    "O9S5OiSP3YP6YP4NaP2Y3P2UqP3YPYLqPYPYO6SOqSPY5PY2TPYOY4N2YLP2YNTPN3PUnYU7LoYL8X1kLXgLX1aU2LX4L2U2LULU"
    "2LU3L2U4LU2LU3L3U2LU2LX4U2LUL2ULU2LU3LULU2L2TUL3T4U2LU2LU2LXgLXiLU2LULU3LX1mL6U2LU2L2ULU4LX8L1wTLrTi"
    "Y4TcYeT5Y7TYTYhM34X4TYUL3TL3PU5Y2UPU8LUrLzUL2U3L3XoL4ULYULU2L2U1fL1cXyYM7X1iU2LXcLX2oLU14TP6L15P4Y4M"
    "19PMPM2PM2PM9TzPdO6Y3P2YP2Y2MbPOP3T17MlNaP4T2MT2rPTM7OYM6T2M2YM4T2NaT3Y2TPfOTMTuMtT2hMbTfNaTxM9T2YP3"
    "T3MY2TmM4TM9TM3TM7PgTpM5P2T14YT7O8M8T16MoOMxT1iM3TMiTM7TaM2P2NaPTgM4T1jMTMgT9M5T6M4NaT2Y2N6Y2TPM7T1j"
    "MtTdNaM2T3MPbM4T1jMTMiTiM4NaPY8TMbT1jMTMuT6M4NaYTNgMT1nMiT7MfNdYdM5T1jMTMqTaM4NhPN7YTM3PT1jMTMvT5M4N"
    "bTfM4T1jM2TMgTY5T3MN7T3M4NjYT7M4T1xMsNcM2PdT1cMT2MbYT7M8PNaP13T1cMT2M9TbM8NcT11Y3PfYPY3M2Y6NkYMYMYMP"
    "4M2T1dMkPM2T5M1dY8MY9P5Y4P13T17MkTNaP6T6M4T4M3TM3T2M7T3M4TdMcTMNaM4Y2U1cL17PTL3TgtM3P9NnTgYgU2gL8PTh"
    "8YPThSTqP5T23P3N3TxMdTjM3PbTiMeTiMeT1gMwP3TP3YTM3NwPbM3OMNgT2tM2TyMT3aMwY4P2NaT3kNeYyTnM7P2T1hM17NwP"
    "7TP8M2dT1bMhTbNaP7YaM9Y9P3M3TuMdT2NaT18MmP4T10MnP5NdT3NaT10P2LgU1cPgM3PMlT4MT6MT2M3T6L18T1rLdTLyT11M"
    "1sX46L8X2qL8U8L8U8L8U8L8U8L8U8L9U7L8U8LoU8L8U8L8U8L8U5YLY3L6U5Y3L8U5Y3L8U5Y5L6U5Y3SbO5PoS2O5SPkYPdYP"
    "cSOgNT3N6Y3P2TNaY3P3TgY1cM1cY2UY4UY2LU3L2U3LYUY3U5Y6UYUYUYU4YLU4LT4LY2L2U2Y5UL4Y4LYN1fULN5YamP4YtP2Y"
    "8lN1oY26NmYh4PeNuY1dP2YvPaYb7PmY1rP4YwP2YeaU1cL1cULU3L2X6U4LUL2UL6T2U3LX2qLY6X4M3UL6P4NP2L1cT1sPfMT2"
    "oMwP1bTPwY2P1aYaoSP3YT2NPaY2PcYN9M6PT5Y2N3T2PY3T2gM2Y2T3PT2iPT44Y2N4YaTwY1cTgYwNaYuN8YNfYwNaY13NfY8w"
    "T534Y1sTh3kY1sT1aP2T7hP3TgNaTmX1aTM4PMaPTXsT2M2T1yNaM2PeYnT9Y2XeL2X1qTL8X4U2LX8TY2X4TX4L2XkU5LU5LXeU"
    "4LUL6UL5X4LoT3ULT3LT7MT3MT4MTnM5Y4M4N6YaT1gPcM2T1eMqP2NgMiT6P3TPT2MNaTsM8P2TnMoPTwM4T1bMePeTNeP2T5MT"
    "aNaT1bMnT3MT8M4NcP4TnY3TM3T1eMTM3T2M2T5M2TMTsP2TbM5P2T3McT1bL17YT4L9TY6L28TzM8PM4NgT8owO6ioTe8LtTMTa"
    "YT3sYxTa3P2YgT3jYxTcY4MgPgMgP1eYPY4PYP6T3zO2P3YP6YP4NaP2Y3P2UqP3YPYLqPYPYP7T3eYpO3Y4T74P7N1cY9N1lYhN"
    "2Y35M3nT2oMNvTwNdTkNT8N6T12MaTvPT1cPN1bU14L14T28NgU14L14T33PU13L2xTgnPN8TnY2N7T13N1lTrN5TmN9PTvP1tT1"
    "oN2T2N1sTMfT14M8NgPgTtN2PTtNzT8YTsM6N5PgT1lP7ToN8ToN8TpPgN2fT3kU1sL1mN6T10McN9cT17M2P3T31NaTvMbN4PrT"
    "iM4P16TlNrTwM3T1hMfPbNuMT2M2TaM4T19MbP2OP4MbO3TwNgM3T10MfNaP4TM2T18MP2TaM3T1cMeT4P4M4PM2NaTPTP4NvT18"
    "McP6M1uT15P7T1bMhNgM5T1iM2TMiT7M6T5M4eT1hMiT4P5NaP4MT29MkT2PT9N4wT1bMiPnT4M10T1cMhP3TcNgPwT17MdTP7N1"
    "sTtMjNcP3YT6kMfP2tUwLwNvT1dMfTMTM2PcN28T1dMgTPTMsTMaT14M7TM4P8M9TMbT1aMgP3TPiTanMhTPfNwP2TwM32T1dMlT"
    "M9NgT16MeT8N8wTjM4P55TgNlY16PTsgN34PgT29dPfTtsO34gT7kwNeP2T28NgTwM5PbT1cM7P5Y4T4PYbNjTkdUwLwNnP2xT27"
    "MTM1uT27PTMsTf4sYM2PO3moM28YetM5Y3M6O8M8Y2M7YuM4Y44M3Y4bNwY2oN4gUqLqUqLqUqLqUqLqUqLqUqLqUqLqUqLqUqLq"
    "UqLqUqLqUqLqUqLuUpYLpYL6UpYLpYL6UpYLpYL6UpYLpYL6UpYLpYL6UL3N1eYe8M1jY4M1eY8MYeMY2PkMv9LaTL6tM74T1cM7"
    "T9NeTY8xTuMiT18M4NfYypT6fN9M1cUyLyM7T5NePlvN1nYN3YN3hYN5tT6oYeoNdY25fNswTgutdO73M1edcO2t4w";
enum { UNICODE_RUNS = 1391 };

/* Fills start[UNICODE_RUNS]: the first character of each run, times 16, plus its class. */
static inline void unicode_read(uint32_t *start) {
    static const char letters[] = "OULTMNSXPY";
    const char *at = unicode_runs;
    uint32_t n = 0, c = 0, count;
    while (*at && n < UNICODE_RUNS) {
        start[n++] = c << 4 | (uint32_t)(strchr(letters, *at++) - letters);
        for (count = 0; *at && !(*at >= 'A' && *at <= 'Z'); at++)
            count = count * 36 + (uint32_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
        c += count ? count : 1;
    }
}

/* The class of a character. */
static inline uint32_t unicode_class(const uint32_t *start, uint32_t c) {
    uint32_t low = 0, high = UNICODE_RUNS, kind;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (start[middle] >> 4 <= c)
            low = middle;
        else
            high = middle;
    }
    kind = start[low] & 15;
    if (kind == UNICODE_TURNS) return (c - (start[low] >> 4)) & 1 ? UNICODE_LOWER : UNICODE_UPPER;
    return kind;
}

/* The character at s (n bytes, at least one) in UTF-8, and how many bytes it has; what is none is 0xfffd, of
   one byte. */
static inline uint32_t unicode_character(const char *s, size_t n, size_t *used) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char a = (unsigned char)s[0];
    size_t bytes = a < 0x80 ? 1 : a < 0xc2 ? 0 : a < 0xe0 ? 2 : a < 0xf0 ? 3 : a < 0xf5 ? 4 : 0, i;
    uint32_t c = bytes > 1 ? a & (0x7fu >> bytes) : a;
    *used = 1;
    if (!bytes || bytes > n) return 0xfffd;
    for (i = 1; i < bytes; i++) {
        if (((unsigned char)s[i] & 0xc0) != 0x80) return 0xfffd;
        c = c << 6 | ((unsigned char)s[i] & 63u);
    }
    if (c < least[bytes] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0xfffd;
    *used = bytes;
    return c;
}

#endif
