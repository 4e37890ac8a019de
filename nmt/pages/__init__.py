"""The pages that people open: the viewer of exported attention maps, and the parts of the lab's page."""
