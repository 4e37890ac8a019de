// Shows the description of the interface. This is a separate file, because the server forbids inline scripts.
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#api",
  deepLinking: true,
  displayRequestDuration: true,
  validatorUrl: null, // no requests to Swagger's own validation server
});
