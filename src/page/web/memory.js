// Facts that a person, or a model with the page's tools, wants kept: in this browser, all of them listed in the
// settings. Recall is BM25 over their words.

import * as store from "./store.js";

// About 600 tokens of facts go into a prompt at most, at four characters a token.
const kRecallCharacters = 2400;
const kFactLength = 500;

function wordsOf(text) {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}

// Facts by how well they fit the query, those without a common word left out. The constants are the usual ones.
export function rank(facts, query, k1 = 1.2, b = 0.75) {
  const documents = facts.map((fact) => wordsOf(fact.text));
  const mean = documents.reduce((sum, words) => sum + words.length, 0) / Math.max(documents.length, 1) || 1;
  const scores = facts.map(() => 0);
  for (const word of new Set(wordsOf(query))) {
    const counts = documents.map((words) => words.filter((each) => each === word).length);
    const holding = counts.filter((count) => count > 0).length;
    if (holding === 0) continue;
    const weight = Math.log(1 + (documents.length - holding + 0.5) / (holding + 0.5));
    counts.forEach((count, i) => {
      scores[i] += (weight * count * (k1 + 1)) / (count + k1 * (1 - b + (b * documents[i].length) / mean));
    });
  }
  return facts
    .map((fact, i) => ({ fact, score: scores[i] }))
    .filter(({ score }) => score > 0)
    .sort((x, y) => y.score - x.score)
    .map(({ fact }) => fact);
}

// Facts of a persona, and those of none.
export async function factsOf(persona) {
  return (await store.all("facts")).filter((fact) => !fact.persona || fact.persona === persona);
}

export async function remember(text, persona, turn = "") {
  const fact = { id: store.newId(), persona, text: text.slice(0, kFactLength), turn, at: Date.now() };
  await store.put("facts", fact);
  return fact;
}

export async function recall(query, persona) {
  const found = [];
  let room = kRecallCharacters;
  for (const fact of rank(await factsOf(persona), query)) {
    room -= fact.text.length + 4;
    if (room < 0) break;
    found.push(fact);
  }
  return found;
}
