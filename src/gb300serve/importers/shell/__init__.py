"""Shell text: words, expansion, scripts."""
