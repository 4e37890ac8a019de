// @ts-check
// The terms that the lab and the viewer both explain, and the list that explains them.

import { make } from "./dom.js";

/** The labels that both pages have. @type {Record<"en" | "vi", Record<string, string>>} */
export const GLOSSARY = {
  en: {
    glossary: "Glossary", aboutCross: "What the decoder, which writes the translation, looks at in the source sentence.",
    aboutHead: "One of several attentions side by side in a layer; each has weights of its own.",
    aboutPieces: "Words and parts of words, which the model reads and writes one at a time; ▁ marks the beginning of a word.",
    aboutEnd: "The end of the sentence. The model stops once it predicts this.",
  },
  vi: {
    glossary: "Bảng thuật ngữ", aboutCross: "Những chỗ trong câu nguồn mà bộ giải mã (phần viết ra bản dịch) nhìn vào.",
    aboutHead: "Một trong nhiều cơ chế chú ý chạy song song trong một tầng; mỗi đầu có trọng số riêng.",
    aboutPieces: "Từ hoặc một phần của từ; mô hình đọc và viết từng từ con một. ▁ đánh dấu chỗ bắt đầu một từ.",
    aboutEnd: "Dấu kết thúc câu. Mô hình dừng lại khi dự đoán dấu này.",
  },
};

/** @param {HTMLElement} list @param {string[][]} entries each term with its explanation */
export function fillTerms(list, entries) {
  list.replaceChildren(...entries.flatMap(([term, explanation]) => [make("dt", {}, term), make("dd", {}, explanation)]));
}
