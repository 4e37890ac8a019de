// @ts-check
// What the engine in the page says if it cannot answer a question.

/** @type {Record<string, Record<string, string>>} */
const TEXTS = {
  en: {
    emptySource: "The source is empty; write a sentence.",
    long: "The sentence or its translation has {0} pieces; shorten it to at most {1}.",
    serve: "This file cannot compute this. Serve the run with nmt.serve instead.",
    noSite: "The model has no attention layer or head {0}; choose one that it has.",
    badIds: "A piece of the translation is not in the vocabulary; use pieces of this run.",
    old: "This browser cannot read the file, because it has no DecompressionStream. Use a newer browser.",
  },
  vi: {
    emptySource: "Câu nguồn đang trống; hãy viết một câu.",
    long: "Câu hoặc bản dịch có {0} từ con; hãy rút ngắn còn nhiều nhất {1}.",
    serve: "Trang trong một tệp không tính được điều này. Hãy mở mô hình bằng nmt.serve.",
    noSite: "Mô hình không có tầng hay đầu chú ý {0}; hãy chọn tầng và đầu mà mô hình có.",
    badIds: "Một từ con của bản dịch không có trong bộ từ vựng; hãy dùng các từ con của mô hình này.",
    old: "Trình duyệt này không đọc được tệp vì không có DecompressionStream. Hãy dùng trình duyệt mới hơn.",
  },
};

/** A sentence for the user, in any language. */
export class Refusal extends Error {
  /** @param {string} name @param {(string | number)[]} values */
  constructor(name, ...values) {
    super(message("en", name, values));
    this.named = name;
    this.values = values;
  }
}

/** @param {string} language @param {string} name @param {(string | number)[]} values */
export function message(language, name, values) {
  const texts = TEXTS[language] ?? TEXTS.en;
  return texts[name].replace(/\{(\d)\}/g, (_, index) => String(values[index]));
}
