#!/usr/bin/env python3
"""Trains the small model of this folder, fables.gguf, from public-domain fairy tales, and writes it as GGUF.

    python3 -m venv v && v/bin/pip install "jax[cpu]" numpy
    v/bin/python tests/model/train.py fetch  --books build/books          # git clones, see BOOKS
    v/bin/python tests/model/train.py text   --books build/books --work build/model
    v/bin/python tests/model/train.py train  --work build/model           # resumes at its last checkpoint
    v/bin/python tests/model/train.py sample --work build/model --prompt "Once upon a time"
    v/bin/python tests/model/train.py export --work build/model --out tests/model/fables.gguf

Every random choice depends on SEED and the step alone, so that a run that is interrupted and taken up again
sees the batches that an uninterrupted one sees. README.md says how the committed model was trained.
"""
import argparse, collections, hashlib, heapq, os, pickle, re, struct, subprocess, sys, time, unicodedata
import numpy as np

SEED = 6
# The repository at github.com/GITenberg (it ends with Project Gutenberg's number), its commit, the text file
# in it, and where the tales begin (what stands before is a preface). Published before 1908, authors and
# editors dead since 1912 or earlier.
BOOKS = [
    ("Grimms-Fairy-Tales_2591", "9991a30953853be9b40751408c3ad0d3af314fb7",
     "2591-0.txt", "A certain king"),
    ("The-Blue-Fairy-Book_503", "4d594f378f0dcaa61acc1791fafc6e6b0053ea41",
     "503-0.txt", "Once upon a time"),
    ("The-Red-Fairy-Book_540", "d18e647375b7ea35355d72a032ea925b32b77e47",
     "540-0.txt", "ONCE upon a time"),
    ("The-Green-Fairy-Book_7277", "1177d3ea0e15d8792db31d20d817e182423ee098",
     "7277-0.txt", "Once upon a time"),
    ("The-Yellow-Fairy-Book_640", "9bf7714268e5d590d187e52b766ddec1a1ba1936",
     "640.txt", "A cat had made"),
    ("The-Violet-Fairy-Book_641", "7b50a1ff03d5f53aeca921214ffc49aa86f46a57",
     "641-0.txt", "Long, long ago"),
    ("The-Crimson-Fairy-Book_2435", "618e9523c383a74e98c6f2689977805040c6bdcc",
     "2435-0.txt", "Once upon a time"),
]
VOCAB, HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, FFN = 2048, 256, 5, 8, 4, 32, 768
CONTEXT, THETA, EPS = 512, 10000.0, 1e-5
UNK, BOS, EOS, FIRST_BYTE, FIRST_PIECE = 0, 1, 2, 3, 259
SPACE = "\u2581"


# --- text ---------------------------------------------------------------------------------------------------

def fetch(books):
    os.makedirs(books, exist_ok=True)
    for repository, commit, name, _ in BOOKS:
        to = os.path.join(books, repository)
        if not os.path.isdir(to):
            subprocess.check_call(["git", "clone", "-q", "https://github.com/GITenberg/" + repository, to])
        with open(os.path.join(books, name), "wb") as f:
            f.write(subprocess.check_output(["git", "-C", to, "show", commit + ":" + name]))


def plain_quotes(s):
    """Spoken text in straight double quotes, apostrophes straight: the books do it in three ways."""
    s = s.replace("\u201c", '"').replace("\u201d", '"').replace("\u2018", "'").replace("\u2019", "'")
    out, spoken = [], False
    for i, c in enumerate(s):
        before = s[i - 1] if i else " "
        after = s[i + 1] if i + 1 < len(s) else " "
        if c == "'" and not spoken and before in ' -("' and (after.isalpha() or after == '"'):
            c, spoken = '"', True
        elif c == "'" and spoken and not after.isalpha() and not (
                before == "s" and after == " " and "'" in s[i + 1:] and s[i + 1:i + 3].strip().islower()):
            c, spoken = '"', False
        out.append(c)
    return re.sub(r'"{2,}', '"', "".join(out))


def tales_of(path, first):
    """Lists of paragraphs, one list a tale. A heading (short, no full stop, alone) ends a tale."""
    raw = open(path, "rb").read()
    try:
        s = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        s = raw.decode("latin-1")
    s = s.replace("\r", "")
    s = re.split(r"\*\*\* ?START OF TH[^\n]*\*\*\*|\*END\*?THE SMALL PRINT[^\n]*", s)[-1]
    s = re.split(r"\*\*\* ?END OF TH|\n\s*End of (?:the |this )?Project Gutenberg|\n\*\*\*\*\*\n", s)[0]
    s = s[s.index(first, s.index("Andrew Lang") if "Andrew Lang" in s[:3000] else 0):]
    tales, tale = [], []
    for block in re.split(r"\n[ \t]*\n", s):
        verse = block.startswith("  ")
        p = " ".join(block.split())
        p = unicodedata.normalize("NFKD", p.replace("\u00e6", "ae").replace("\u0153", "oe"))
        p = re.sub(r"\[[^\]]*\]|\(\d+\)|[_*{}]", "", p)
        p = plain_quotes(p).replace("\u2014", "--").replace("\u2013", "-")
        p = p.encode("ascii", "ignore").decode()
        p = re.sub(r"-{3,}", "--", " ".join(p.split()))
        letters = [c for c in p if c.isalpha()]
        if not letters:
            continue
        shouted = sum(c.isupper() for c in letters) > 0.6 * len(letters)
        if not re.search(r"[.!?:;,\"'-]\)?$", p) or (shouted and len(p) < 120):
            if not verse and not re.fullmatch(r"[IVX]+\.?", p) and tale:
                tales.append(tale)
                tale = []
            continue
        if len(letters) < 12 or p[0] == "(" or "Gutenberg" in p or "Fairy Book" in p:
            continue
        p = re.sub(r"^(\"?)([A-Z]{2,})\b", lambda m: m.group(1) + m.group(2).capitalize(), p)
        tale.append(p)
    tales.append(tale)
    return [t for t in tales if sum(map(len, t)) > 400]


WORD = re.compile(r" ?[A-Za-z]+| ?[^A-Za-z\s]+|\s")


def train_pieces(counts, many):
    """Byte pair encoding over words: joins the most frequent pair, until there are `many` pieces."""
    words = [list(w) for w in counts]
    freq = list(counts.values())
    pieces = sorted({c for w in words for c in w})
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, w in enumerate(words):
        for p in zip(w, w[1:]):
            pairs[p] += freq[i]
            where[p].add(i)
    heap = [(-n, p) for p, n in pairs.items()]
    heapq.heapify(heap)
    merges, known = [], set(pieces)
    while len(pieces) + len(merges) < many:
        n, p = heapq.heappop(heap)
        if pairs[p] != -n:
            if pairs[p] > 0:
                heapq.heappush(heap, (-pairs[p], p))
            continue
        joined = p[0] + p[1]
        if joined not in known:
            known.add(joined)
            merges.append(joined)
        changed = set()
        for i in list(where[p]):
            w, k = words[i], 0
            for q in zip(w, w[1:]):
                pairs[q] -= freq[i]
                changed.add(q)
            new = []
            while k < len(w):
                if k + 1 < len(w) and (w[k], w[k + 1]) == p:
                    new.append(joined)
                    k += 2
                else:
                    new.append(w[k])
                    k += 1
            words[i] = new
            for q in zip(new, new[1:]):
                pairs[q] += freq[i]
                where[q].add(i)
                changed.add(q)
        for q in changed:
            if pairs[q] > 0:
                heapq.heappush(heap, (-pairs[q], q))
    return merges + pieces


class Tokens:
    """SentencePiece's way: the adjacent pair whose joined piece has the best score, until none is a piece."""

    def __init__(self, pieces):
        self.pieces = pieces
        self.rank = {p: i for i, p in enumerate(pieces)}
        self.known = {}

    def word(self, w):
        ids = self.known.get(w)
        if ids is None:
            parts = list(w)
            while True:
                pairs = enumerate(zip(parts, parts[1:]))
                best = min(((self.rank.get(a + b, 1 << 30), i) for i, (a, b) in pairs), default=(1 << 30, 0))
                if best[0] == 1 << 30:
                    break
                parts[best[1]:best[1] + 2] = ["".join(parts[best[1]:best[1] + 2])]
            ids = []
            for p in parts:
                if p in self.rank:
                    ids.append(FIRST_PIECE + self.rank[p])
                else:
                    ids += [FIRST_BYTE + b for b in p.encode()]
            self.known[w] = ids
        return ids

    def encode(self, text):
        return [t for w in WORD.findall(text) for t in self.word(w.replace(" ", SPACE))]

    def decode(self, ids):
        out = b""
        for t in ids:
            if t >= FIRST_PIECE:
                out += self.pieces[t - FIRST_PIECE].replace(SPACE, " ").encode()
            elif t >= FIRST_BYTE:
                out += bytes([t - FIRST_BYTE])
        return out.decode("utf-8", "replace")


def make_text(books, work):
    os.makedirs(work, exist_ok=True)
    tales = []
    for _, _, name, first in BOOKS:
        path = os.path.join(books, name)
        mine = tales_of(path, first)
        digest = hashlib.sha256(open(path, "rb").read()).hexdigest()
        count = sum(len(p) for t in mine for p in t)
        print("%-12s %3d tales %8d characters  sha256 %s" % (name, len(mine), count, digest))
        tales += mine
    np.random.default_rng(SEED).shuffle(tales)
    texts = [" " + "\n".join(t) for t in tales]
    counts = collections.Counter(w.replace(" ", SPACE) for t in texts for w in WORD.findall(t) if w != "\n")
    pieces = train_pieces(counts, VOCAB - FIRST_PIECE)
    tok = Tokens(pieces)
    ids = []
    for t in texts:
        ids += [BOS] + tok.encode(t) + [EOS]
    np.save(os.path.join(work, "tokens.npy"), np.array(ids, np.int32))
    pickle.dump(pieces, open(os.path.join(work, "pieces.pickle"), "wb"))
    open(os.path.join(work, "text.txt"), "w").write("\n\n\n".join(texts))
    n = sum(map(len, texts))
    print("%d tales, %d characters, %d tokens: %.2f each" % (len(tales), n, len(ids), n / len(ids)))


# --- the model ----------------------------------------------------------------------------------------------

def shapes():
    kv = KV_HEADS * HEAD_DIM
    layer = {"attn_q": (HEADS * HEAD_DIM, HIDDEN), "attn_k": (kv, HIDDEN), "attn_v": (kv, HIDDEN),
             "attn_output": (HIDDEN, HEADS * HEAD_DIM), "ffn_gate": (FFN, HIDDEN), "ffn_up": (FFN, HIDDEN),
             "ffn_down": (HIDDEN, FFN), "attn_norm": (HIDDEN,), "ffn_norm": (HIDDEN,)}
    all_ = {"token_embd": (VOCAB, HIDDEN), "output_norm": (HIDDEN,)}
    for i in range(LAYERS):
        all_.update({"blk.%d.%s" % (i, n): s for n, s in layer.items()})
    return all_


def format_of(name):
    """Which block format a tensor is written in, as in GGUF's usual "medium" mixture."""
    if "norm" in name:
        return "f32"
    return "q6_K" if name == "token_embd" or name.endswith(("attn_v", "ffn_down")) else "q4_K"


def start(rng):
    p = {}
    for name, shape in shapes().items():
        if len(shape) == 1:
            p[name] = np.ones(shape, np.float32)
        else:
            std = 0.02 if name == "token_embd" else shape[1] ** -0.5
            if name.endswith(("attn_output", "ffn_down")):
                std /= (2 * LAYERS) ** 0.5
            p[name] = (rng.standard_normal(shape) * std).astype(np.float32)
    return p


def model(jnp, jax):
    def norm(x, g):
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + EPS) * g

    def rope(x):              # [batch, seq, heads, dim], pairs (i, i + dim / 2); export interleaves them
        angle = jnp.arange(x.shape[1])[:, None] * THETA ** (-jnp.arange(0, HEAD_DIM, 2) / HEAD_DIM)[None]
        c, s = jnp.cos(angle)[None, :, None], jnp.sin(angle)[None, :, None]
        a, b = x[..., :HEAD_DIM // 2], x[..., HEAD_DIM // 2:]
        return jnp.concatenate([a * c - b * s, a * s + b * c], -1)

    def fake4(w):                                  # what Q4_K keeps of w; the gradient passes through
        b = w.reshape(-1, 8, 32)
        low = jnp.minimum(b.min(-1), 0)
        d = (b.max(-1) - low) / 15
        D, M = d.max(-1, keepdims=True) / 63, (-low).max(-1, keepdims=True) / 63
        d = jnp.round(d / jnp.maximum(D, 1e-12)) * D
        m = jnp.round(-low / jnp.maximum(M, 1e-12)) * M
        q = jnp.clip(jnp.round((b + m[..., None]) / jnp.maximum(d, 1e-12)[..., None]), 0, 15)
        return w + jax.lax.stop_gradient((d[..., None] * q - m[..., None]).reshape(w.shape) - w)

    def logits(p, ids, quantised):
        if quantised:
            p = {n: fake4(w) if format_of(n) == "q4_K" else w for n, w in p.items()}
        B, S = ids.shape
        x = jax.nn.one_hot(ids, VOCAB) @ p["token_embd"]  # a product: its gradient is faster than a gather's
        mask = jnp.tril(jnp.ones((S, S), bool))
        for i in range(LAYERS):
            w = lambda n: p["blk.%d.%s" % (i, n)]
            h = norm(x, w("attn_norm"))
            q = rope((h @ w("attn_q").T).reshape(B, S, HEADS, HEAD_DIM))
            k = rope((h @ w("attn_k").T).reshape(B, S, KV_HEADS, HEAD_DIM))
            v = (h @ w("attn_v").T).reshape(B, S, KV_HEADS, HEAD_DIM)
            g = HEADS // KV_HEADS
            q = q.reshape(B, S, KV_HEADS, g, HEAD_DIM).transpose(0, 2, 3, 1, 4)
            q = q.reshape(B * KV_HEADS, g * S, HEAD_DIM)
            k = k.transpose(0, 2, 3, 1).reshape(B * KV_HEADS, HEAD_DIM, S)
            v = v.transpose(0, 2, 1, 3).reshape(B * KV_HEADS, S, HEAD_DIM)
            a = (q @ k).reshape(-1, g, S, S) * HEAD_DIM ** -0.5
            a = jax.nn.softmax(jnp.where(mask, a, -1e30), -1).reshape(-1, g * S, S)
            o = (a @ v).reshape(B, KV_HEADS, g, S, HEAD_DIM).transpose(0, 3, 1, 2, 4)
            o = o.reshape(B, S, HEADS * HEAD_DIM)
            x = x + o @ w("attn_output").T
            h = norm(x, w("ffn_norm"))
            x = x + (jax.nn.silu(h @ w("ffn_gate").T) * (h @ w("ffn_up").T)) @ w("ffn_down").T
        return norm(x, p["output_norm"]) @ p["token_embd"].T

    def loss(p, ids, quantised):
        l = logits(p, ids[:, :-1], quantised)
        t = ids[:, 1:]
        nll = jax.nn.logsumexp(l, -1) - jnp.sum(l * jax.nn.one_hot(t, VOCAB), -1)
        return jnp.mean(nll)

    return logits, loss


def is_matrix(name):
    return "norm" not in name and name != "token_embd"


def stepper(jnp, jax, loss, quantised):
    """Muon for the matrices (momentum, its direction made orthogonal), AdamW for the rest."""
    def orthogonal(g):
        x = g if g.shape[0] <= g.shape[1] else g.T
        x = x / (jnp.linalg.norm(x) + 1e-7)
        for _ in range(5):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        return x if g.shape[0] <= g.shape[1] else x.T

    def step(p, m, v, ids, lr, t):
        value, grad = jax.value_and_grad(loss)(p, ids, quantised)
        np_, nm, nv = {}, {}, {}
        for n, w in p.items():
            g = grad[n]
            if is_matrix(n):
                nm[n], nv[n] = 0.95 * m[n] + g, v[n]
                u = orthogonal(g + 0.95 * nm[n]) * max(1.0, w.shape[0] / w.shape[1]) ** 0.5
                np_[n] = w * (1 - 0.02 * lr * 0.5) - 0.02 * lr * u
            else:
                nm[n], nv[n] = 0.9 * m[n] + 0.1 * g, 0.95 * v[n] + 0.05 * g * g
                u = nm[n] / (1 - 0.9 ** t) / (jnp.sqrt(nv[n] / (1 - 0.95 ** t)) + 1e-9)
                np_[n] = w - 0.003 * lr * u
        return np_, nm, nv, value

    return jax.jit(step, donate_argnums=(0, 1, 2))


def train(work, steps, batch, short):
    """Warm-up, constant rate, then linearly to zero over the last 7/40, where every third step takes windows
    of CONTEXT tokens and the Q4_K tensors are rounded in the forward pass."""
    import jax
    import jax.numpy as jnp
    data = np.load(os.path.join(work, "tokens.npy"))
    held, data = data[-20000:], data[:-20000]
    _, loss = model(jnp, jax)
    path = os.path.join(work, "checkpoint.pickle")
    if os.path.exists(path):
        at, p, m, v = pickle.load(open(path, "rb"))
    else:
        at, p = 0, start(np.random.default_rng(SEED))
        m = {n: np.zeros_like(w) for n, w in p.items()}
        v = {n: np.zeros_like(w) for n, w in p.items()}
    p, m, v = jax.tree.map(jnp.asarray, (p, m, v))
    last = steps * 33 // 40
    step = {q: stepper(jnp, jax, loss, q) for q in (False, True)}
    judge = jax.jit(loss, static_argnums=2)
    began, mean = time.time(), None
    for s in range(at, steps):
        late = s >= last
        length = CONTEXT if late and s % 3 == 0 else short
        rows = batch // length
        rng = np.random.default_rng([SEED, s])
        ids = np.stack([data[o:o + length + 1] for o in rng.integers(0, len(data) - length - 1, rows)])
        ids[:, 0] = BOS
        lr = min(1.0, (s + 1) / 100) * min(1.0, (steps - s) / (steps - last))
        p, m, v, value = step[late](p, m, v, ids, np.float32(lr), np.float32(s + 1))
        value = float(value)
        mean = value if mean is None else 0.98 * mean + 0.02 * value
        if (s + 1) % 50 == 0 or s == at + 4:
            each = (time.time() - began) / (s + 1 - at)
            print("step %d of %d, loss %.3f, %.2f s a step" % (s + 1, steps, mean, each), flush=True)
        if (s + 1) % 100 == 0 or s + 1 == steps:
            h = np.stack([held[o:o + 257] for o in range(0, 19000, 1024)])
            print("    held out: %.3f" % float(judge(p, h, late)), flush=True)
            pickle.dump((s + 1, *jax.tree.map(np.asarray, (p, m, v))), open(path + ".new", "wb"))
            os.replace(path + ".new", path)


def sample(work, prompt, many, temperature):
    import jax
    import jax.numpy as jnp
    pieces = pickle.load(open(os.path.join(work, "pieces.pickle"), "rb"))
    at, p, _, _ = pickle.load(open(os.path.join(work, "checkpoint.pickle"), "rb"))
    tok = Tokens(pieces)
    logits, _ = model(jnp, jax)
    f = jax.jit(lambda ids: logits(p, ids, True))
    ids = [BOS] + tok.encode(" " + prompt)
    rng = np.random.default_rng(SEED)
    size = len(ids) + many
    while len(ids) < size:
        row = np.zeros((1, min(CONTEXT, size)), np.int32)
        row[0, :len(ids)] = ids
        l = np.asarray(f(row))[0, len(ids) - 1].astype(np.float64)
        if temperature > 0:
            e = np.exp((l - l.max()) / temperature)
            ids.append(int(rng.choice(VOCAB, p=e / e.sum())))
        else:
            ids.append(int(l.argmax()))
        if ids[-1] == EOS:
            break
    print("step %d:%s" % (at, tok.decode(ids)))


# --- the file -----------------------------------------------------------------------------------------------

def half(x):
    return x.astype(np.float16)


def to_q4_K(w):
    """As the forward pass rounds them (fake4), with the factors in f16."""
    b = w.reshape(-1, 8, 32).astype(np.float64)
    low = np.minimum(b.min(-1), 0)
    d, m = (b.max(-1) - low) / 15, -low
    D, M = half(d.max(-1) / 63), half(m.max(-1) / 63)
    wide = lambda h: np.maximum(h.astype(np.float64), 1e-30)[:, None]
    sc = np.clip(np.rint(d / wide(D)), 0, 63).astype(np.uint8)
    mn = np.clip(np.rint(m / wide(M)), 0, 63).astype(np.uint8)
    scale, minimum = sc * D.astype(np.float64)[:, None], mn * M.astype(np.float64)[:, None]
    q = np.rint((b + minimum[..., None]) / np.maximum(scale, 1e-30)[..., None])
    q = np.where(scale[..., None] > 0, np.clip(q, 0, 15), 0).astype(np.uint8)
    twelve = np.zeros((len(b), 12), np.uint8)
    for j in range(4):
        twelve[:, j] = sc[:, j] | sc[:, j + 4] >> 4 << 6
        twelve[:, j + 4] = mn[:, j] | mn[:, j + 4] >> 4 << 6
        twelve[:, j + 8] = sc[:, j + 4] & 15 | (mn[:, j + 4] & 15) << 4
    quants = (q[:, 0::2] | q[:, 1::2] << 4).reshape(-1, 128)
    return b"".join(np.concatenate([D[:, None].view(np.uint8), M[:, None].view(np.uint8), twelve, quants], 1))


def to_q6_K(w):
    b = w.reshape(-1, 16, 16).astype(np.float64)
    far = np.take_along_axis(b, np.abs(b).argmax(-1)[..., None], -1)[..., 0]
    s = far / -32                                           # the largest of a group becomes -32
    D = half(np.abs(s).max(-1) / 127)
    wide = np.maximum(D.astype(np.float64), 1e-30)[:, None]
    sc = np.clip(np.rint(s / wide), -128, 127).astype(np.int8)
    scale = sc * D.astype(np.float64)[:, None]
    q = np.rint(b / np.where(scale == 0, 1, scale)[..., None])
    q = (np.where(scale[..., None] == 0, 0, np.clip(q, -32, 31)) + 32).astype(np.uint8).reshape(-1, 2, 4, 32)
    low, high = q & 15, q >> 4
    ql = np.concatenate([low[:, :, 0] | low[:, :, 2] << 4, low[:, :, 1] | low[:, :, 3] << 4], -1)
    ql = ql.reshape(-1, 128)
    qh = (high[:, :, 0] | high[:, :, 1] << 2 | high[:, :, 2] << 4 | high[:, :, 3] << 6).reshape(-1, 64)
    return b"".join(np.concatenate([ql, qh, sc.view(np.uint8), D[:, None].view(np.uint8)], 1))


def string(s):
    s = s.encode()
    return struct.pack("<Q", len(s)) + s


def value(key, kind, x):
    kinds = {"u32": (4, "<I"), "f32": (6, "<f"), "bool": (7, "<?"), "string": (8, None), "i32": (5, "<i")}
    one = lambda x: string(x) if kind == "string" else struct.pack(kinds[kind][1], x)
    if isinstance(x, list):
        return string(key) + struct.pack("<IIQ", 9, kinds[kind][0], len(x)) + b"".join(map(one, x))
    return string(key) + struct.pack("<I", kinds[kind][0]) + one(x)


def export(work, out):
    pieces = pickle.load(open(os.path.join(work, "pieces.pickle"), "rb"))
    at, p, _, _ = pickle.load(open(os.path.join(work, "checkpoint.pickle"), "rb"))
    names = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)] + pieces
    kinds = [2, 3, 3] + [6] * 256 + [1] * len(pieces)
    meta = [
        value("general.architecture", "string", "llama"),
        value("general.name", "string", "fables"),
        value("general.license", "string", "Unlicense OR MIT"),
        value("general.description", "string", "Trained on public-domain fairy tales, %d steps" % at),
        value("llama.vocab_size", "u32", VOCAB),
        value("llama.context_length", "u32", CONTEXT),
        value("llama.embedding_length", "u32", HIDDEN),
        value("llama.block_count", "u32", LAYERS),
        value("llama.feed_forward_length", "u32", FFN),
        value("llama.attention.head_count", "u32", HEADS),
        value("llama.attention.head_count_kv", "u32", KV_HEADS),
        value("llama.attention.layer_norm_rms_epsilon", "f32", EPS),
        value("llama.rope.dimension_count", "u32", HEAD_DIM),
        value("llama.rope.freq_base", "f32", THETA),
        value("tokenizer.ggml.model", "string", "llama"),
        value("tokenizer.ggml.tokens", "string", names),
        value("tokenizer.ggml.scores", "f32", [0.0] * FIRST_PIECE + [float(-i) for i in range(len(pieces))]),
        value("tokenizer.ggml.token_type", "i32", kinds),
        value("tokenizer.ggml.unknown_token_id", "u32", UNK),
        value("tokenizer.ggml.bos_token_id", "u32", BOS),
        value("tokenizer.ggml.eos_token_id", "u32", EOS),
        value("tokenizer.ggml.add_bos_token", "bool", True),
        value("tokenizer.ggml.add_space_prefix", "bool", True),
    ]
    infos, data = [], b""
    for name, shape in shapes().items():
        w = p[name]
        if name.endswith(("attn_q", "attn_k")):   # halves to neighbours, the pairing of this architecture
            w = w.reshape(-1, 2, HEAD_DIM // 2, HIDDEN).transpose(0, 2, 1, 3).reshape(shape)
        kind = format_of(name)
        number, blocks = {"f32": (0, lambda w: w.astype("<f4").tobytes()), "q4_K": (12, to_q4_K),
                          "q6_K": (14, to_q6_K)}[kind]
        data += b"\0" * (-len(data) % 32)
        infos.append(string(name + ".weight") + struct.pack("<I", len(shape)) +
                     struct.pack("<%dQ" % len(shape), *shape[::-1]) + struct.pack("<IQ", number, len(data)))
        data += blocks(w)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(meta)) + b"".join(meta) + b"".join(infos)
    with open(out, "wb") as f:
        f.write(head + b"\0" * (-len(head) % 32) + data + b"\0" * (-len(data) % 32))
    print("%s: %d bytes, step %d" % (out, os.path.getsize(out), at))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("what", choices=["fetch", "text", "train", "sample", "export"])
    a.add_argument("--books", default="build/books")
    a.add_argument("--work", default="build/model")
    a.add_argument("--out", default="tests/model/fables.gguf")
    a.add_argument("--steps", type=int, default=1200)
    a.add_argument("--batch", type=int, default=4096, help="tokens of a step")
    a.add_argument("--short", type=int, default=256, help="the window's length but in the end")
    a.add_argument("--prompt", default="Once upon a time")
    a.add_argument("--tokens", type=int, default=200)
    a.add_argument("--temperature", type=float, default=0.7)
    o = a.parse_args()
    if o.what == "fetch":
        fetch(o.books)
    elif o.what == "text":
        make_text(o.books, o.work)
    elif o.what == "train":
        train(o.work, o.steps, o.batch, o.short)
    elif o.what == "sample":
        sample(o.work, o.prompt, o.tokens, o.temperature)
    else:
        export(o.work, o.out)


if __name__ == "__main__":
    main()
