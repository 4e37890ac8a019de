// Pages opened as files cannot read the pages that a search finds: it lists these without excerpts.
DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = location.protocol !== "file:";
// Sphinx's marking of the words searched for fails at the titles of the theme's icons.
for (const title of document.querySelectorAll("svg title")) title.classList.add("nohighlight");
