"""The program that saves and restores a workspace."""
