#!/usr/bin/env python3
"""Makes the runs of examples/unicode.h from Python's tables (Unicode 14: Python 3.11), one line."""
import unicodedata

SPACES = {9, 10, 11, 12, 13, 0x20, 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, *range(0x2000, 0x200B)}
LETTERS = {"Lu": "U", "Lt": "U", "Ll": "L", "Lm": "T", "Lo": "T"}
CHARACTERS = 0x110000


def class_of(character, before):
    if character in SPACES:
        return "S"
    category = unicodedata.category(chr(character))
    if category == "Cn":  # not assigned: as the one before, so that runs are few
        return before
    return LETTERS.get(category) or {"M": "M", "N": "N", "P": "P", "S": "Y"}.get(category[0], "O")


def base_36(number):
    text = ""
    while number:
        text = "0123456789abcdefghijklmnopqrstuvwxyz"[number % 36] + text
        number //= 36
    return text


classes = []
for c in range(CHARACTERS):
    classes.append(class_of(c, classes[-1] if classes else "O"))
text, i = "", 0
while i < CHARACTERS:
    same = i
    while same < CHARACTERS and classes[same] == classes[i]:
        same += 1
    turns = i
    while turns + 1 < CHARACTERS and classes[turns] == "U" and classes[turns + 1] == "L":
        turns += 2
    by_turns = turns - i >= 4 and same - i == 1
    end = turns if by_turns else same
    text += ("X" if by_turns else classes[i]) + (base_36(end - i) if end - i > 1 else "")
    i = end
print(text)
