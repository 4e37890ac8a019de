"""Measurements of training, translation and their parts on this machine."""
