"""The command line: arguments as typed -> configuration -> validated job -> command -> exit code."""
