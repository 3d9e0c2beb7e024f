// Words and regular expressions that are looked for in texts: run by test_segments.py, with the folder of the page's scripts.

import assert from "node:assert/strict";
import {test} from "node:test";
import {pathToFileURL} from "node:url";

const folder = pathToFileURL(process.env.TMNMT_PAGE + "/").href;
const {finderOf} = await import(`${folder}pattern.js`);

const found = (source, text, more = {}) => finderOf(source, {isPattern: true, ...more}).find(text).map(({groups}) => groups);

test("expressions find what the engine of the language finds", () => {
  const sources = [
    "a", "ab|cd", "a*", "a+?b", "(a|b)+c", "x{2}", "x{1,2}", "x{2,}?y", "^a", "a$", "\\bword\\b", "[a-c]+", "[^a-c]", "\\d{2,4}",
    "(\\d+)-(\\d+)", "a(?:b|c)d?", "(a)(b)?(c)", "\\.", ".", "a.c", "", "(a|ab)(c|bcd)(d*)", "\\p{Lu}\\w*", "é|É", "(x*)y", "(?:a|)b",
    "\\s+", "[\\]x]", "a{0}", "(a*)b", "\\u{1f600}", "/", "-", "}", "(ab)*?c",
  ];
  const texts = [
    "", "a", "abc", "aab cd", "xxy xxxy", "word swords word", "12-345 and 6-7", "acd abd ad", "Été à Paris, É é", "a😀b 😀", "abcd", "xxxxyb", "  a\tb ",
    "x]x/x-}", "ababc",
  ];
  for (const source of sources) {
    for (const text of texts) {
      const wanted = [...text.matchAll(new RegExp(source.replaceAll("\\w", "[\\p{L}\\p{N}_]").replace(/^[}]$/, "\\}"), "gu"))].map((match) => [...match].map((group) => group ?? ""));
      assert.deepEqual(found(source, text, {hasCase: true}), wanted, `${source} in ${text}`);
    }
  }
});

test("time goes with the length of the text", () => {
  const text = "a".repeat(3000), begin = process.cpuUsage();
  for (const source of ["(a*)*b", "(a|a)*b", "(a+)+$b", "a*a*a*a*a*b"]) assert.equal(finderOf(source, {isPattern: true}).has(text), false);
  const {user, system} = process.cpuUsage(begin);
  assert.ok(user + system < 5e6, `${user + system} µs`);
});

test("capitals count where a person says so", () => {
  assert.equal(found("straße", "STRASSE Straße").length, 1);
  assert.equal(finderOf("ÉTÉ").find("été Été").length, 2);
  assert.equal(finderOf("ÉTÉ", {hasCase: true}).find("été Été").length, 0);
});

test("what stands in a text is found as it stands", () => {
  assert.deepEqual(finderOf("a.(b)").find("xa.(b) a.(b)").map(({start, end}) => [start, end]), [[1, 6], [7, 12]]);
  assert.ok(finderOf("[$^{}|*+?\\]").has("a [$^{}|*+?\\]"));
  assert.ok(finderOf("a-b/c").has("a-b/c"));
});

test("what cannot be searched for is told in words", () => {
  const wrong = {
    "(a": "not closed", "a)": "closes nothing", "*a": "repeats nothing", "(?=a)": "look ahead", "(a)\\1": "refers to a group", "[a": "not closed",
    "\\": "at the end", "a{999}": "At most", "((a{200}){200})": "too long", "[b-a]": "not understood", "(?<n>a)": "Only",
  };
  for (const [source, reason] of Object.entries(wrong)) {
    assert.throws(() => finderOf(source, {isPattern: true}), (error) => error.message.includes(reason), source);
  }
});

test("groups go into what is put in their place", () => {
  const finder = finderOf("(\\d+) ?(€)", {isPattern: true});
  const [first] = finder.find("it costs 12 €");
  assert.equal(finder.replace(first, "$2$1 $$ $& $9"), "€12 $ 12 € ");
  assert.equal(finderOf("a").replace({}, "$1"), "$1");
});
