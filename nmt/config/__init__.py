"""The configuration: what each key may hold, and how a YAML node becomes an object."""
