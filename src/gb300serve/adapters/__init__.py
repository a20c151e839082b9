"""What touches the outside: the Docker Engine, processes, HTTP, the clock. One importer for each library."""
