/* unicode.h - classes of Unicode characters, as the words of byte pair encodings are cut by them. */
#ifndef EXAMPLES_UNICODE_H
#define EXAMPLES_UNICODE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    UNICODE_OTHER, /* O */
    UNICODE_UPPER, /* U: upper case and title case */
    UNICODE_LOWER, /* L */
    UNICODE_TEXT,  /* T: letters without case, modifiers */
    UNICODE_MARK,  /* M */
    UNICODE_DIGIT, /* N: numbers of any kind */
    UNICODE_SPACE, /* S: white space */
    UNICODE_TURNS  /* X: upper and lower case by turns; not a class of a character */
};

/* All characters from U+0000 on, in runs of one class: its letter, then how many in base 36; without a number
   one. Unicode 14; characters that it leaves out have the class of the one before. tests/unicode.py makes
   this. */
static const char unicode_runs[] =
    "O9S5OiSOfNaO7UqO6LqOaSOqSO9TO7N2OLO3NTON3OUnOU7LoOL8X1kLXgLX1aU2LX4L2U2LULU2LU3L2U4LU2LU3L3U2LU2LX4U"
    "2LUL2ULU2LU3LULU2L2TUL3T4U2LU2LU2LXgLXiLU2LULU3LX1mL6U2LU2L2ULU4LX8L1wTLrTiO4TcOeT5O7TOTOhM34X4TOUL3"
    "TL3OU5O2UOU8LUrLzUL2U3L3XoL4ULOULU2L2U1fL1cXyOM7X1iU2LXcLX2oLU14TO6L15O8M19OMOM2OM2OM9TzOtMbO5T17MlN"
    "aO4T2MT2rOTM7O2M6T2M2OM4T2NaT3O2TOgTMTuMtT2hMbTfNaTxM9T2O4T3MO2TmM4TM9TM3TM7OgTpM5O2T14OT7O8M8T16MoO"
    "MxT1iM3TMiTM7TaM2O2NaOTgM4T1jMTMgT9M5T6M4NaT2O2N6O2TOM7T1jMtTdNaM2T3MObM4T1jMTMiTiM4NaO9TMbT1jMTMuT6"
    "M4NaOTNgMT1nMiT7MfNdOdM5T1jMTMqTaM4NhON7OTM3OT1jMTMvT5M4NbTfM4T1jM2TMgTO5T3MN7T3M4NjOT7M4T1xMsNcM2Od"
    "T1cMT2MbOT7M8ONaO13T1cMT2M9TbM8NcT11OnM2O6NkOMOMOMO4M2T1dMkOM2T5M1dO8MO1lT17MkTNaO6T6M4T4M3TM3T2M7T3"
    "M4TdMcTMNaM4O2U1cL17OTL3TgtM3O9NnTgOgU2gL8OTh8O2ThSTqO5T23O3N3TxMdTjM3ObTiMeTiMeT1gMwO3TO4TM3NwObM3O"
    "MNgT2tM2TyMT3aMwO6NaT3kNeOyTnM7O2T1hM17NwO7TO8M2dT1bMhTbNaOhM9OcM3TuMdT2NaT18MmO4T10MnO5NdT3NaT10O2L"
    "gU1cOgM3OMlT4MT6MT2M3T6L18T1rLdTLyT11M1sX46L8X2qL8U8L8U8L8U8L8U8L8U8L9U7L8U8LoU8L8U8L8U8L8U5OLO3L6U5"
    "O3L8U5O3L8U5O5L6U5O3SbOtS2O5SO1bSOgNT3N6O5TNaO6TgO1cM1cO2UO4UO2LU3L2U3LOUO3U5O6UOUOUOU4OLU4LT4LO2L2U"
    "2O5UL4O4LON1fULN5Ok6N1oO26NmOhiNuOvgU1cL1cULU3L2X6U4LUL2UL6T2U3LX2qLO6X4M3UL6O4NO2L1cT1sOfMT2oMwO1bT"
    "OcwSO4T2NOpN9M6OT5O2N3T2O4T2gM2O2T3OT2iOT44O2N4OaTwO1cTgOwNaOuN8ONfOwNaO13NfO8wT534O1sTh3kO1sT1aO2T7"
    "hO3TgNaTmX1aTM4OMaOTXsT2M2T1yNaM2O11T9O2XeL2X1qTL8X4U2LX8TO2X4TX4L2XkU5LU5LXeU4LUL6UL5X4LoT3ULT3LT7M"
    "T3MT4MTnM5O4M4N6OaT1gOcM2T1eMqO2NgMiT6O3TOT2MNaTsM8O2TnMoOTwM4T1bMeOeTNeO2T5MTaNaT1bMnT3MT8M4NcO4TnO"
    "3TM3T1eMTM3T2M2T5M2TMTsO2TbM5O2T3McT1bL17OT4L9TO6L28TzM8OM4NgT8owO6ioTe8LtTMTaOT3sOxTa3OiT3jOxTcO4Mg"
    "OgMgO1sT3zOhNaO7UqO6LqObT3eOwT74O7N1cO9N1lOhN2O35M3nT2oMNvTwNdTkNT8N6T12MaTvOT1cON1bU14L14T28NgU14L1"
    "4T33OU13L2xTgnON8TnO2N7T13N1lTrN5TmN9OTvO1tT1oN2T2N1sTMfT14M8NgOgTtN2OTtNzT8OTsM6N5OgT1lO7ToN8ToN8Tp"
    "OgN2fT3kU1sL1mN6T10McN9cT17M2O3T31NaTvMbN4OrTiM4O16TlNrTwM3T1hMfObNuMT2M2TaM4T19MbO7MbO3TwNgM3T10MfN"
    "aO4TM2T18MO2TaM3T1cMeT4O4M4OM2NaTOTO4NvT18McO6M1uT15O7T1bMhNgM5T1iM2TMiT7M6T5M4eT1hMiT4O5NaO4MT29MkT"
    "2OT9N4wT1bMiOnT4M10T1cMhO3TcNgOwT17MdTO7N1sTtMjNcO4T6kMfO2tUwLwNvT1dMfTMTM2OcN28T1dMgTOTMsTMaT14M7TM"
    "4O8M9TMbT1aMgO3TOiTanMhTOfNwO2TwM32T1dMlTM9NgT16MeT8N8wTjM4O55TgNlO17TsgN34OgT29dOfTtsO34gT7kwNeO2T2"
    "8NgTwM5ObT1cM7O9T4OcNjTkdUwLwNnO2xT27MTM1uT27OTMsTf4sOM2O3mpM28OetM5O3M6O8M8O2M7OuM4O44M3O4bNwO2oN4g"
    "UqLqUqLqUqLqUqLqUqLqUqLqUqLqUqLqUqLqUqLqUqLqUqLqUqLuUpOLpOL6UpOLpOL6UpOLpOL6UpOLpOL6UpOLpOL6UL3N1eOe"
    "8M1jO4M1eO8MOeMOmMv9LaTL6tM74T1cM7T9NeTO8xTuMiT18M4NfOypT6fN9M1cUyLyM7T5NeOlvN1nON3ON3hON5tT6oOeoNdO"
    "25fNswTgutdO73M1edcO2t4w";
enum { UNICODE_RUNS = 1284 };

/* Fills start[UNICODE_RUNS]: the first character of each run, times 8, plus its class. */
static inline void unicode_read(uint32_t *start) {
    static const char letters[] = "OULTMNSX";
    const char *at = unicode_runs;
    uint32_t n = 0, c = 0, count;
    while (*at && n < UNICODE_RUNS) {
        start[n++] = c << 3 | (uint32_t)(strchr(letters, *at++) - letters);
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
        if (start[middle] >> 3 <= c)
            low = middle;
        else
            high = middle;
    }
    kind = start[low] & 7;
    if (kind == UNICODE_TURNS) return (c - (start[low] >> 3)) & 1 ? UNICODE_LOWER : UNICODE_UPPER;
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
