// Shows the description of the interface. A script of its own, because the server allows none inside a page.
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#api",
  deepLinking: true,
  displayRequestDuration: true,
  validatorUrl: null, // a server of Swagger's makers
});
