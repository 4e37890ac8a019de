// Ranks the results of a search: pages in the reader's language first, then by Sphinx's own weights, which a scorer has
// to repeat.
var Scorer = {
  score: ([page, , , , score]) => {
    const isVietnamese = page === "README.vi" || page.startsWith("docs/vi/");
    return isVietnamese === (new URLSearchParams(location.search).get("lang") === "vi") ? score + 1000 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

// A query without diacritics finds words with them: "cua so" finds "cửa sổ".
const setIndex = Search.setIndex;
Search.setIndex = (index) => {
  const stemmer = new Stemmer();
  for (const terms of [index.terms, index.titleterms]) {
    for (const [term, pages] of Object.entries(terms)) {
      const plain = term.normalize("NFD").replace(/\p{M}/gu, "").replaceAll("đ", "d");
      if (plain === term) continue;
      const stem = stemmer.stemWord(plain);
      terms[stem] = [...new Set([terms[stem] ?? [], pages].flat())];
    }
  }
  setIndex(index);
};
