"""The program that takes a session's work out of its repository."""
