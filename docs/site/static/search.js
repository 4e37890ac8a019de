// Pages opened as files cannot read the pages that a search finds: it lists these without excerpts.
DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = location.protocol !== "file:";
