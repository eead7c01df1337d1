// Writes small.json: tokenizers made for our tests and what the Hugging Face crate computes with
// them. Run where `npm install @anush008/tokenizers@0.6.0` (crate 0.22.2) was done:
//   node generate.mjs > small.json
import { createRequire } from 'node:module';
const require = createRequire(process.cwd() + '/');
const { Tokenizer } = require('@anush008/tokenizers');

const TEXTS = [
  '', ' ', 'a', 'Hello, World! 123 45.6', '  two  spaces\tand\nnew lines \r\n ',
  'caf\u00e9 CAF\u00c9 na\u00efve cafe\u0301', '\ufb01ne \u00bd \uff21\uff22 \uff76\uff9e \ufdfa',
  '\u65e5\u672c\u8a9e text\u6f22\u5b57', "don't we'll I'M 'tis", '\u0130stanbul \u0391\u03a3',
  'x\u00b2+y\u00b3=10\u20ac', 'e\u0301\u0316\u0301 \u0316\u0301o', '\u0001\ufeff\u200b zero\u0085w\u00a0x',
  '\ud83e\udd9c\ud83d\udc69\u200d\ud83d\udc67 \u1e0b\u0323', '\u0663\u0664 \u2167 \u2460 7',
  'foo_bar-baz [x] (y)', '\u2026\u2014\u201cq\u201d $5', '\u2581x \u2581\u2581y', '\u3000wide\u3000',
  'ab--cd-e-', '--', 'line one\nline two\n\n three', '\u00b2\u2460\u00a2+x\u2460', 'xx \u0939\u093f\u0928\u094d\u0926\u0940', '\ud55c\uad6d\uc5b4 \u1112\u1161',
];
const SPECIAL_TEXTS = [
  '<s>hi</s>', 'a <mask> b', 'a<mask>b  <mask>  c', 'word <w> xwordx word word', 'Word WORD <W>',
  '<s><s> <s>', '  <mask>', '<mask>  ', '<s> lead', 'x<l><l>y', '<lo<long><lon', 'caf\u00e9<s>',
];

// Each character of these texts has an id, and another one where it ends a word: ids show where
// the words are.
const CHARACTERS = [...new Set([...'\u2581#<>/0123456789 .,abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ',
  ...[...TEXTS, ...SPECIAL_TEXTS].flatMap(t => [...t, ...t.normalize('NFC'), ...t.normalize('NFKD'), ...t.toLowerCase()]),
  ...Array.from({ length: 0x44 }, (_, i) => String.fromCharCode(0x100 + i))])].join('');
function characterModel() {
  const vocab = { '<unk>': 0 };
  [...CHARACTERS].forEach((c, i) => { vocab[c] = 1 + 2 * i; vocab[c + '</w>'] = 2 + 2 * i; });
  return { type: 'BPE', unk_token: '<unk>', end_of_word_suffix: '</w>', fuse_unk: false, vocab, merges: [] };
}
const BYTES = (() => {  // GPT-2's alphabet by byte.
  let next = 0x100;
  return Array.from({ length: 256 }, (_, b) =>
    String.fromCharCode((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174 ? b : next++));
})();

// A vocabulary with a token for each prefix-built merge of `words`.
function bpe(alphabet, words, options = {}) {
  const vocab = {};
  const add = t => { if (!(t in vocab)) vocab[t] = Object.keys(vocab).length; };
  ['<unk>', ...alphabet].forEach(add);
  const merges = [];
  for (const word of words) {
    const parts = [...word];
    for (let i = 1; i < parts.length; ++i) {
      const left = parts.slice(0, i).join(''), merged = left + parts[i];
      if (!(merged in vocab)) { add(merged); merges.push(options.pairs ? [left, parts[i]] : left + ' ' + parts[i]); }
    }
  }
  const { pairs, ...rest } = options;
  return { type: 'BPE', ...rest, vocab, merges };
}
const HEX = Array.from({ length: 256 }, (_, b) => '<0x' + b.toString(16).toUpperCase().padStart(2, '0') + '>');
const LETTERS = [...'\u2581abcdefghijklmnopqrstuvwxyzHW.,!\u00e9'];
const WORDS = ['\u2581the', '\u2581then', 'ing', '\u2581two', 'paces', '\u2581s', '\u2581\u2581', '\u2581\u2581\u2581', 'Hello', 'lo', 'wor', 'ld'];
const llama = options => bpe([...HEX, ...LETTERS], WORDS, { unk_token: '<unk>', fuse_unk: true, byte_fallback: true, ...options });

function unigram(options = {}) {
  const pieces = { '\u2581': -2, '\u2581the': -3, '\u2581two': -4, 's': -3.5, 'pa': -5, 'ces': -5.5, '\u2581spaces': -6,
    'Hello': -7, ',': -3, '\u2581W': -6, 'orld': -6.5, '!': -4, 'an': -3, 'd': -4, '\u2581n': -5, 'ew': -5, 'lo': -4.5, 'ab': -5, 'abc': -6.1, 'bc': -5.2 };
  const vocab = [['<unk>', 0], ['<s>', 0], ['</s>', 0]];
  if (options.byte_fallback) HEX.forEach(h => vocab.push([h, -20]));
  for (const c of 'abcdefghilmnoprtuwHx.') if (!(c in pieces)) pieces[c] = -8 - c.charCodeAt(0) / 1000;
  Object.entries(pieces).forEach(p => vocab.push(p));
  return { type: 'Unigram', unk_id: 0, vocab, ...options };
}

// SentencePiece's precompiled_charsmap of some rules: a darts-clone double array.
function charsmap(rules) {
  const root = { next: new Map() };
  let pool = Buffer.alloc(0);
  for (const [from, to] of rules) {
    let node = root;
    for (const b of Buffer.from(from)) {
      if (!node.next.has(b)) node.next.set(b, { next: new Map() });
      node = node.next.get(b);
    }
    node.value = pool.length;
    pool = Buffer.concat([pool, Buffer.from(to + '\0')]);
  }
  const units = [], taken = new Set([0]);
  (function place(node, position, label) {
    const labels = [...node.next.keys(), ...(node.value === undefined ? [] : [0])];
    let base = 1;
    while (labels.some(l => taken.has(base ^ l))) ++base;
    labels.forEach(l => taken.add(base ^ l));
    units[position] = (((base ^ position) << 10) | (node.value === undefined ? 0 : 1 << 8) | label) >>> 0;
    if (node.value !== undefined) units[base] = (0x80000000 | node.value) >>> 0;
    for (const [l, child] of node.next) place(child, base ^ l, l);
  })(root, 0, 0);
  const size = Math.ceil(units.length / 256) * 256 * 4;
  const blob = Buffer.alloc(4 + size + pool.length);
  blob.writeUInt32LE(size, 0);
  units.forEach((u, i) => blob.writeUInt32LE(u, 4 + i * 4));
  pool.copy(blob, 4 + size);
  return blob.toString('base64');
}

const entries = [];
const add = (name, parts, texts = TEXTS) => entries.push({ name, parts, texts });
const BYTE_LEVEL = { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true };
const S = (...normalizers) => ({ type: 'Sequence', normalizers });
const P = (...pretokenizers) => ({ type: 'Sequence', pretokenizers });
const split = (pattern, behavior, invert = false) => ({ type: 'Split', pattern, behavior, invert });
const spaces = { type: 'WhitespaceSplit' };

for (const type of ['NFC', 'NFD', 'NFKC', 'NFKD', 'Lowercase', 'StripAccents', 'Nmt']) add(type, { normalizer: { type } });
add('NFD StripAccents', { normalizer: S({ type: 'NFD' }, { type: 'StripAccents' }, { type: 'Lowercase' }) });
for (const [l, r] of [[true, true], [true, false], [false, true]])
  add(`Strip ${l} ${r}`, { normalizer: { type: 'Strip', strip_left: l, strip_right: r } });
add('Prepend Replace', { normalizer: S({ type: 'Prepend', prepend: '\u2581' }, { type: 'Replace', pattern: { String: ' ' }, content: '\u2581' }) });
add('Replace regex', { normalizer: { type: 'Replace', pattern: { Regex: '\\s+|\\d' }, content: '#' } });
add('Replace by nothing', { normalizer: { type: 'Replace', pattern: { Regex: '[a-e]+' }, content: '' } });
add('Replace empty matches', { normalizer: { type: 'Replace', pattern: { Regex: 'a*' }, content: '/' } });
add('Bert', { normalizer: { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true }, pre_tokenizer: { type: 'BertPreTokenizer' } });
add('Bert cased', { normalizer: { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: false, strip_accents: false, lowercase: false }, pre_tokenizer: { type: 'BertPreTokenizer' } });
add('Normalizer ByteLevel', { normalizer: { type: 'ByteLevel' } });
add('Charsmap', { normalizer: { type: 'Precompiled', precompiled_charsmap: charsmap([['\ufb01', 'fi'], ['\u00bd', '1/2'], ['\t', ' '], ['A', 'a'], ['e\u0301', '\u00e9'], ['\u3000', ' '], ['\u200b', ''], ['co', 'k'], ['\uff76\uff9e', '\u30ac'], ['\u00e9', 'e']]) } });

for (const behavior of ['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous'])
  for (const invert of [false, true]) {
    add(`Split string ${behavior} ${invert}`, { pre_tokenizer: split({ String: '-' }, behavior, invert) }, ['ab--cd-e-', '--', '', 'a', '-a--b', 'a---']);
    add(`Split regex ${behavior} ${invert}`, { pre_tokenizer: split({ Regex: '[0-9]|o+|\\s' }, behavior, invert) }, TEXTS.slice(0, 6).concat('foo  bar1 2'));
    if (!invert) add(`Punctuation ${behavior}`, { pre_tokenizer: { type: 'Punctuation', behavior } }, TEXTS);
  }
const REGEXES = {
  gpt2: "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
  cl100k: "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
  intersection: '[\\p{Han}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}&&[^\\p{Han}]]+|\\p{N}|\\s+|.',
  classes: '\\w+|\\h|[[:punct:]]+|[^[:alnum:]\\s]', 'negated classes': '[\\W]|[^\\S ]+|[a-c[x-z]]+|\\D',
  anchors: '^.|.$|\\A\\s|\\bo|\\Be', dot: '(?m:.)o|.e', escapes: '\\u00e9|\\x6f|\\x{6c}|\\t|\\.|[\\]\\-\\[]|\\n',
  intervals: 'l{2}|e{,2}x|o{1,}|(?:ab){1}+|-{2}?', names: '\\p{Letter}\\p{^Lu}|\\p{Greek}|\\p{space}|\\P{ascii}|\\p{Word}',
  groups: '(?<n>o)|(?=w)|(?<=l)o|(?>a|ab)c|(?#note)z', 'character ranges': '[\\u4e00-\\u9fa5]+|[\\x61-\\x63]|[+--]|[a\\-z]|[]x]',
  posix: '[[:punct:]]+', word: '\\w+', 'punct property': '\\p{Punct}+', 'word border': '\\b',
  caseless: '(?i)hello|(?-i:W)|CAF\u00c9', 'empty matches': 'x*', lookbehind: '(?<![a-z])[a-z]|\\s+(?=\\S)',
};
for (const [name, Regex] of Object.entries(REGEXES))
  add(`Regex ${name}`, { pre_tokenizer: split({ Regex }, name === 'intersection' ? 'Isolated' : 'Contiguous') });
for (const individual_digits of [false, true]) add(`Digits ${individual_digits}`, { pre_tokenizer: { type: 'Digits', individual_digits } });
for (const type of ['Whitespace', 'WhitespaceSplit', 'BertPreTokenizer']) add(type, { pre_tokenizer: { type } });
for (const prepend_scheme of ['always', 'first', 'never'])
  for (const doSplit of [true, false])
    add(`Metaspace ${prepend_scheme} ${doSplit}`, { pre_tokenizer: { type: 'Metaspace', replacement: '\u2581', prepend_scheme, split: doSplit }, decoder: { type: 'Metaspace', replacement: '\u2581', prepend_scheme, split: doSplit } },
      TEXTS.concat(SPECIAL_TEXTS));
const metaspaceFirst = { type: 'Metaspace', replacement: '\u2581', prepend_scheme: 'first', split: true };
add('Metaspace first after Strip', { normalizer: { type: 'Strip', strip_left: true, strip_right: true }, pre_tokenizer: metaspaceFirst });
add('Metaspace first after Replace', { normalizer: { type: 'Replace', pattern: { Regex: ' {2,}' }, content: ' ' }, pre_tokenizer: metaspaceFirst });
add('Spaces then Metaspace', { pre_tokenizer: P(spaces, { type: 'Metaspace', replacement: '\u2581', add_prefix_space: true }) });
add('Spaces then Metaspace first', { pre_tokenizer: P(spaces, metaspaceFirst) });
for (const [space, regex] of [[true, true], [true, false], [false, true]])
  add(`ByteLevel ${space} ${regex}`, { pre_tokenizer: { type: 'ByteLevel', add_prefix_space: space, trim_offsets: true, use_regex: regex }, decoder: BYTE_LEVEL });
add('Digits ByteLevel', { pre_tokenizer: P({ type: 'Digits', individual_digits: true }, { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true }) });
add('CharDelimiterSplit', { pre_tokenizer: { type: 'CharDelimiterSplit', delimiter: '-' } });

const token = (id, content, flags = {}) => ({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true, ...flags });
const first = 2 * [...CHARACTERS].length + 1;
const ADDED = [token(first, '<s>'), token(first + 1, '</s>'), token(first + 2, '<mask>', { lstrip: true }), token(first + 3, '<w>', { rstrip: true, special: false }),
  token(first + 4, 'word', { single_word: true, special: false, normalized: true }), token(first + 5, '<l>'), token(first + 6, '<lo'), token(first + 7, '<long>', { special: false })];
add('Added', { added_tokens: ADDED }, SPECIAL_TEXTS);
add('Added lower', { added_tokens: ADDED, normalizer: { type: 'Lowercase' }, pre_tokenizer: spaces }, SPECIAL_TEXTS);
add('Added Metaspace', { added_tokens: ADDED, pre_tokenizer: metaspaceFirst }, SPECIAL_TEXTS);
add('Added Prepend', { added_tokens: ADDED.map(t => ({ ...t, normalized: true })), normalizer: { type: 'Prepend', prepend: '\u2581' } }, SPECIAL_TEXTS);
add('Added rstrip lstrip', { added_tokens: ADDED.map(t => ({ ...t, lstrip: true, rstrip: true })) }, SPECIAL_TEXTS);
const template = { type: 'TemplateProcessing', single: [{ SpecialToken: { id: '<s>', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }, { SpecialToken: { id: '</s>', type_id: 0 } }], pair: [],
  special_tokens: { '<s>': { id: '<s>', ids: [first], tokens: ['<s>'] }, '</s>': { id: '</s>', ids: [first + 1], tokens: ['</s>'] } } };
add('Template', { added_tokens: ADDED, post_processor: { type: 'Sequence', processors: [{ type: 'ByteLevel', add_prefix_space: true, trim_offsets: false }, template] } }, SPECIAL_TEXTS);
add('Roberta', { added_tokens: ADDED, post_processor: { type: 'RobertaProcessing', sep: ['</s>', first + 1], cls: ['<s>', first], trim_offsets: true, add_prefix_space: true } }, SPECIAL_TEXTS);

const llamaDecoder = { type: 'Sequence', decoders: [{ type: 'Replace', pattern: { String: '\u2581' }, content: ' ' }, { type: 'ByteFallback' }, { type: 'Fuse' }, { type: 'Strip', content: ' ', start: 1, stop: 0 }] };
const llamaNormalizer = S({ type: 'Prepend', prepend: '\u2581' }, { type: 'Replace', pattern: { String: ' ' }, content: '\u2581' });
const MORE = TEXTS.concat('Hello world, the then thing   spaces the', 'the the\u2581the  two  ', 'abcabcbc xx\u0939the');
add('Llama', { model: llama(), normalizer: llamaNormalizer, decoder: llamaDecoder }, MORE);
add('Llama pairs', { model: llama({ pairs: true }), normalizer: llamaNormalizer, decoder: llamaDecoder }, MORE);
add('Llama ignore_merges', { model: llama({ ignore_merges: true }), pre_tokenizer: { type: 'Metaspace', replacement: '\u2581', prepend_scheme: 'always' }, decoder: { type: 'Metaspace', replacement: '\u2581', prepend_scheme: 'always' } }, MORE);
add('No byte fallback', { model: llama({ byte_fallback: false }), normalizer: llamaNormalizer, decoder: llamaDecoder }, MORE);
add('Unknown not fused', { model: llama({ byte_fallback: false, fuse_unk: false }), normalizer: llamaNormalizer, decoder: llamaDecoder }, MORE);
add('Unknown dropped', { model: llama({ byte_fallback: false, unk_token: null }), normalizer: llamaNormalizer, decoder: llamaDecoder }, MORE);
add('Some byte tokens', { model: bpe([...HEX.slice(0, 0xc0), ...LETTERS], WORDS, { unk_token: '<unk>', fuse_unk: true, byte_fallback: true }), normalizer: llamaNormalizer, decoder: llamaDecoder }, MORE);
add('Subword prefix', { model: bpe([...'abcdefghijklmnopqrstuvwxyz'].flatMap(c => [c, '##' + c]), [], { unk_token: '<unk>', continuing_subword_prefix: '##', end_of_word_suffix: '' }), normalizer: { type: 'Lowercase' }, pre_tokenizer: spaces, decoder: { type: 'WordPiece', prefix: '##', cleanup: true } }, MORE);
add('No decoder', { model: llama(), normalizer: llamaNormalizer }, MORE);
add('BPE decoder', { decoder: { type: 'BPEDecoder', suffix: '</w>' }, pre_tokenizer: spaces }, MORE.filter(t => t.trim()));
for (const byte_fallback of [false, true])
  add(`Unigram ${byte_fallback}`, { model: unigram({ byte_fallback }), pre_tokenizer: { type: 'Metaspace', replacement: '\u2581', prepend_scheme: 'always' }, decoder: { type: 'Metaspace', replacement: '\u2581', prepend_scheme: 'always' } }, MORE);
add('Unigram whole text', { model: unigram(), normalizer: llamaNormalizer, decoder: llamaDecoder }, MORE.concat('<unk>\u0939<s> <unk>'));
add('Byte level BPE', { model: bpe(BYTES, ['\u0120the', 'ing', '\u00c3\u00a9', '\u0120\u0120', 'llo'], {}), pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true }, decoder: BYTE_LEVEL }, MORE);

// A stream of bytes that are no characters: decoding only.
const BROKEN = [[0xe6, 0x97], [0xff, 0x41], [0xe6, 0x41], [0xf0, 0x9f, 0xa6], [0xe6, 0x97, 0xa5, 0xe6], [0xc3, 0xa9], [0x80, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]];

const result = { characters: CHARACTERS, tokenizers: [] };
for (const { name, parts, texts } of entries) {
  const json = { version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null, ...parts };
  let tokenizer;
  try { tokenizer = Tokenizer.fromString(JSON.stringify({ ...json, model: parts.model ?? characterModel() })); } catch (e) { throw new Error(name + ': ' + e.message); }
  const cases = [];
  for (const text of texts) {
    const ids = (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds();
    const special = (await tokenizer.encode(text, null, { addSpecialTokens: true })).getIds();
    const c = { text, ids, decoded: ids.length ? await tokenizer.decode(ids, false) : '' };
    if (JSON.stringify(special) !== JSON.stringify(ids)) c.with_special = special;
    if (parts.added_tokens) c.skipped = await tokenizer.decode(special, true);
    cases.push(c);
  }
  const names = { 'Llama': HEX, 'Byte level BPE': BYTES }[name];
  if (names)
    for (const bytes of BROKEN) {
      const ids = [0x61, ...bytes, 0x62].map((b, i, all) => tokenizer.tokenToId(names === HEX && (i === 0 || i === all.length - 1) ? String.fromCharCode(b) : names[b]));
      cases.push({ ids, decoded: await tokenizer.decode(ids, false) });
    }
  result.tokenizers.push({ name, parts, cases });
}
console.log('{"characters": ' + JSON.stringify(result.characters) + ',\n"tokenizers": [\n' +
  result.tokenizers.map(t => `{"name": ${JSON.stringify(t.name)}, "parts": ${JSON.stringify(t.parts)}, "cases": [\n` + t.cases.map(c => JSON.stringify(c)).join(',\n') + ']}').join(',\n') + '\n]}');
