"""What each command does, one file a command; no command imports another."""
