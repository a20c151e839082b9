"""What a server says over HTTP: the models it serves, its metrics, who it is, one completion."""
