// @ts-check
// What the engine in the page says if it cannot answer a question.

/** @type {Record<string, Record<string, string>>} */
const TEXTS = {
  en: {
    emptySource: "The source is empty; write a sentence.",
    long: "The sentence or its translation has {0} pieces; shorten it to at most {1}.",
    longTranslation: "The translation has {0} pieces, but the lab shows at most {1}; shorten the sentence.",
    gradients: "This page computes no gradients; choose occlusion or value zeroing, or serve the run with nmt.serve.",
    contrast: "'{0}' is not one piece of the vocabulary; name one, such as a row label of a map.",
    notAligned: "The alignment of this sentence is not known; choose one from the list.",
    badLink: "A link names a word that the sentence does not have; clear the guess.",
    noSite: "The model has no attention layer or head {0}; choose one that it has.",
    badIds: "A piece of the translation is not in the vocabulary; use pieces of this run.",
    badChange: "There is no kind of change called {0}; remove this change.",
    wholeLayer: "temperature, normalizer and half_width change all heads and steps of a layer: leave out head and steps.",
    crashed: "The page's engine has stopped; reload the page.",
    noRun: "This page has no run {0}; choose one of its runs.",
    badTemperature: "temperature is {0}; it must be a finite number above 0.",
    badWidth: "half_width is {0}; it must be at least {1}.",
    noWindow: "half_width needs a local window, which only cross attention can have, not {0}.",
    old: "This browser cannot read the file, because it has no DecompressionStream. Use a newer browser.",
  },
  vi: {
    emptySource: "Câu nguồn trống; hãy viết một câu.",
    long: "Câu hoặc bản dịch có {0} từ con; hãy rút ngắn còn nhiều nhất {1} từ con.",
    longTranslation: "Bản dịch có {0} từ con, nhưng phòng thực hành chỉ hiện được nhiều nhất {1} từ con; hãy rút ngắn câu.",
    gradients: "Trang này không tính được gradient; hãy chọn phương pháp occlusion hoặc value zeroing, hoặc chạy mô hình bằng nmt.serve.",
    contrast: "'{0}' không phải là một từ con trong từ vựng; hãy dùng một từ con, chẳng hạn nhãn của một hàng trong bản đồ.",
    notAligned: "Câu này không có đáp án gióng hàng từ; hãy chọn một câu trong danh sách.",
    badLink: "Một liên kết trỏ đến từ không có trong câu; hãy xóa phần đã đoán.",
    noSite: "Mô hình không có tầng hay đầu chú ý {0}; hãy chọn tầng và đầu mà mô hình có.",
    badIds: "Một từ con của bản dịch không có trong từ vựng; hãy dùng các từ con của mô hình này.",
    badChange: "Không có loại thay đổi {0}; hãy bỏ thay đổi này.",
    wholeLayer: "temperature, normalizer và half_width thay đổi mọi đầu chú ý và mọi bước của một tầng: hãy bỏ head và steps.",
    crashed: "Chương trình tính toán của trang đã dừng; hãy tải lại trang.",
    noRun: "Trang này không có mô hình {0}; hãy chọn một mô hình của trang.",
    badTemperature: "temperature là {0}; giá trị này phải là số hữu hạn lớn hơn 0.",
    badWidth: "half_width là {0}; giá trị này không được nhỏ hơn {1}.",
    noWindow: "half_width cần cửa sổ cục bộ, mà chỉ chú ý chéo (cross) mới có thể có; {0} thì không.",
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
