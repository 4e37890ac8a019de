"""Attention maps as arrays and files, and the pictures, tables and page made from them."""
