// Shows the description of the API in the language of the lab: the one in the address (?lang=vi), or the browser's. This
// is a separate file, because the server's security policy forbids inline scripts.
const language = (new URLSearchParams(location.search).get("lang") ?? navigator.language).startsWith("vi") ? "vi" : "en";
document.documentElement.lang = language;
SwaggerUIBundle({
  url: `openapi.json?lang=${language}`,
  dom_id: "#api",
  deepLinking: true,
  displayRequestDuration: true,
  validatorUrl: null, // no requests to Swagger's own validation server
});
