// Pages opened as files cannot read the pages that a search finds: it lists these without excerpts.
DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = location.protocol !== "file:";
// Sphinx's marking of the words searched for fails at the titles of the theme's icons.
for (const title of document.querySelectorAll("svg title")) title.classList.add("nohighlight");
// Sphinx makes one page for searching, in English. A search from a Vietnamese page asks for its messages in Vietnamese.
if (document.documentElement.lang === "vi" || new URLSearchParams(location.search).get("lang") === "vi") {
  for (const form of document.querySelectorAll("form[role=search]")) {
    form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "lang", value: "vi" }));
  }
  for (const field of document.querySelectorAll("input[name=q]")) {
    field.placeholder = field.ariaLabel = "Tìm kiếm";
    field.lang = "vi";
  }
  const results = document.querySelector("#search-results");
  if (results) {
    results.lang = "vi";
    // The page's own navigation is in English.
    const contents = Object.assign(document.createElement("a"), { href: "docs/vi/README.html", textContent: "Mục lục", className: "reference" });
    document.querySelector(".sidebar-tree")?.replaceChildren(contents);
  }
  Documentation.addTranslations({
    locale: "vi",
    plural_expr: "0",
    messages: {
      "Hide Search Matches": "Bỏ đánh dấu các từ đã tìm",
      "Searching": "Đang tìm",
      "Preparing search...": "Đang chuẩn bị tìm kiếm ...",
      "Search Results": "Kết quả tìm kiếm",
      ", in ": ", trong ",
      "Your search did not match any documents. Please make sure that all words are spelled correctly and that you've selected enough categories.":
        "Không tìm thấy trang nào. Hãy kiểm tra chính tả, hoặc thử những từ khác.",
      "Search finished, found one page matching the search query.": ["Tìm thấy ${resultCount} trang."],
    },
  });
}
