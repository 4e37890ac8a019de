// Shows the description of the API. This is a separate file, because the server's security policy
// forbids inline scripts.
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#api",
  deepLinking: true,
  displayRequestDuration: true,
  validatorUrl: null, // no requests to Swagger's own validation server
});
