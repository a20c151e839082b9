"""What the simulated engine prints and answers as SGLang."""
