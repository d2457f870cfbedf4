"""What runs inside a container: the supervisor, and programs for one purpose each. Its modules use the standard library only."""
